"""Upload a pipeline through the real kfp client, run it by its name and on a schedule; say how."""

import json
import sys
import time

import kfp

host, package, arguments = sys.argv[1:]
given = json.loads(arguments)
client = kfp.Client(host=host)
kept = client.upload_pipeline(package, pipeline_name="Kept squares")
second = client.upload_pipeline_version(
    package, pipeline_version_name="second", pipeline_id=kept.pipeline_id
)
versions = client.list_pipeline_versions(pipeline_id=kept.pipeline_id).pipeline_versions
found = client.get_pipeline_id("Kept squares")
experiment = client.create_experiment("Kept")
run = client.run_pipeline(
    experiment.experiment_id,
    "by-name",
    pipeline_id=kept.pipeline_id,
    version_id=versions[-1].pipeline_version_id,
    params=given,
)
ended = client.wait_for_run_completion(run.run_id, timeout=60, sleep_duration=1)
recurring = client.create_recurring_run(
    experiment.experiment_id,
    "each second",
    interval_second=1,
    pipeline_id=kept.pipeline_id,
    version_id=second.pipeline_version_id,
    params=given,
)
end = time.monotonic() + 60
made: list[str] = []
while not made and time.monotonic() < end:
    runs = client.list_runs(experiment_id=experiment.experiment_id).runs
    made = [one.run_id for one in runs if one.run_id.startswith(recurring.recurring_run_id)]
    time.sleep(0.5)
client.disable_recurring_run(recurring.recurring_run_id)
mode = client.get_recurring_run(recurring.recurring_run_id).mode
client.delete_recurring_run(recurring.recurring_run_id)
client.delete_pipeline(kept.pipeline_id)
left = client.list_pipelines().pipelines or []
print(
    json.dumps(
        {
            "found": found == kept.pipeline_id,
            "versions": [one.display_name for one in versions],
            "state": ended.state,
            "recurred": bool(made),
            "mode": mode,
            "left": len(left),
        }
    )
)
