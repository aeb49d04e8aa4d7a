import functools

from kfp import compiler, dsl, kubernetes
from kfp.dsl import Artifact, Input

component = functools.partial(dsl.component, base_image="python:3.11", install_kfp_package=False)


@component
def note_end(status: dsl.PipelineTaskFinalStatus, reason: str):
    import os

    print(f"{status.state}: {status.error_message} ({reason}, {os.environ['GREETING']})")


@component
def read(found: Input[Artifact], wrong: bool) -> str:
    with open(found.path) as file:
        text = file.read()
    if wrong:
        raise RuntimeError("this goes wrong")
    return text


@component
def after(text: str) -> str:
    return text


@dsl.pipeline(name="endings")
def endings(uri: str, wrong: bool = True):
    ended = note_end(reason="the end")
    kubernetes.use_config_map_as_env(ended, "words", {"greeting": "GREETING"})
    kubernetes.add_pod_label(ended, "team", "blue")
    with dsl.ExitHandler(ended):
        found = dsl.importer(artifact_uri=uri, artifact_class=Artifact, reimport=False)
        after(text=read(found=found.output, wrong=wrong).output)


compiler.Compiler().compile(endings, "endings.yaml")
