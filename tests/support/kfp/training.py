import json

from kfp import compiler, dsl

TRAINING = {
    "apiVersion": "lockstep.dev/v1alpha1",
    "kind": "TrainingJob",
    "spec": {
        "framework": "plain",
        "roles": [
            {
                "name": "worker",
                "replicas": "{{$.inputs.parameters['ranks']}}",
                "template": {
                    "spec": {
                        "nodeSelector": {"lockstep.dev/node": "process"},
                        "containers": [
                            {
                                "name": "main",
                                "image": "none",
                                "command": ["test", "{{$.inputs.parameters['word']}}", "=", "go"],
                            }
                        ],
                    }
                },
            }
        ],
    },
}


@dsl.container_component
def train(ranks: int, word: str, name: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="lockstep/object",
        args=["--output", "name=object.metadata.name", json.dumps(TRAINING)],
    )


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def tell(job: str) -> str:
    return f"{job} is done"


@dsl.pipeline(name="training")
def training(ranks: int = 2, word: str = "go") -> str:
    return tell(job=train(ranks=ranks, word=word).outputs["name"]).output


compiler.Compiler().compile(training, "training.yaml")
