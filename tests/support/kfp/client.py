"""Start a run through the real kfp client and print how it ended, as JSON."""

import json
import sys

import kfp

host, package, arguments = sys.argv[1:]
client = kfp.Client(host=host)
made = client.create_run_from_pipeline_package(
    package, arguments=json.loads(arguments), experiment_name="Squares of numbers"
)
ended = client.wait_for_run_completion(made.run_id, timeout=200, sleep_duration=1)
listed = client.list_runs(experiment_id=ended.experiment_id)
tasks = {one.display_name: one.state for one in ended.run_details.task_details}
ids = [one.run_id for one in listed.runs]
print(json.dumps({"id": made.run_id, "state": ended.state, "tasks": tasks, "listed": ids}))
