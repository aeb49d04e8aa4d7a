"""MLflow's own client: a run with its metrics, data and files, and a model version out of it."""

import json
import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow.entities import Dataset, DatasetInput
from mlflow.exceptions import MlflowException


def main(host: str) -> None:
    mlflow.set_tracking_uri(host)
    mlflow.set_registry_uri(host)
    mlflow.set_experiment("digits")
    with mlflow.start_run(run_name="first") as run:
        mlflow.log_params({"rate": 0.1, "odd/name": "x y"})
        mlflow.log_metric("accuracy", 0.5, step=1)
        mlflow.log_metric("accuracy", 0.75, step=2)
        mlflow.set_tag("team", "vision")
        with tempfile.TemporaryDirectory() as place:
            Path(place, "weights").write_text("0110")
            mlflow.log_artifacts(place, "model")
    client = mlflow.MlflowClient()
    images = Dataset("images", "v7", "lockstep", "lockstep://default/images")
    client.log_inputs(run.info.run_id, [DatasetInput(images, [])])
    kept = client.get_run(run.info.run_id)
    client.create_registered_model("digits")
    source = f"{run.info.artifact_uri}/model"
    versions = [client.create_model_version("digits", source, run.info.run_id) for _ in range(2)]
    client.transition_model_version_stage("digits", "1", "Production")
    [best] = client.get_latest_versions("digits", ["Production"])
    fetched = mlflow.artifacts.download_artifacts("models:/digits/Production")
    try:
        client.get_model_version("digits", "9")
        missing = ""
    except MlflowException as error:
        missing = str(error)
    told = {
        "params": kept.data.params,
        "metrics": kept.data.metrics,
        "team": kept.data.tags["team"],
        "status": kept.info.status,
        "versions": [one.version for one in versions],
        "best": best.version,
        "searched": [one.version for one in client.search_model_versions("name='digits'")],
        "weights": Path(fetched, "weights").read_text(),
        "missing": missing,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
