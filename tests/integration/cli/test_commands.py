"""The commands against a whole control plane."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.waiting import eventually_sync

from lockstep import __version__

FAILS_ONCE = """
import sys, pathlib, time
flag = pathlib.Path(sys.argv[1])
print("attempt", 1 if flag.exists() else 0, flush=True)
if not flag.exists():
    flag.touch()
    time.sleep(2)
    sys.exit(3)
"""
GANG = """
apiVersion: lockstep.dev/v1alpha1
kind: Gang
metadata: {name: big}
spec: {minMember: 5, topology: {required: leaf}}
---
apiVersion: v1
kind: List
items:
%s
"""
POD = """
- apiVersion: v1
  kind: Pod
  metadata: {name: big-%d, labels: {lockstep.dev/gang: big}}
  spec:
    schedulerName: lockstep
    nodeSelector: {lockstep.dev/node: simulated}
    tolerations: [{key: lockstep.dev/simulated, operator: Exists}]
    containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
"""


def test_a_job_from_flags_is_followed_to_its_good_end(plane: ControlPlane) -> None:
    code = "import os; print('rank', os.environ['LOCKSTEP_RANK_FOR_TEST'])"
    done = plane.run(
        *("submit", "plain", "--name", "good", "--workers", "2", "--follow"),
        *("--env", "LOCKSTEP_RANK_FOR_TEST=7", "--", "python", "-c", code),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("job/good created\n")
    assert sorted(done.stdout.splitlines()) == ["[worker-0] rank 7", "[worker-1] rank 7"]
    assert plane.ok("logs", "good", "--index", "1") == "rank 7\n"
    assert plane.phase("good") == "Succeeded"
    row = plane.ok("list").splitlines()[-1].split()
    assert row[:4] == ["good", "plain", "Succeeded", "-"]


def test_logs_of_one_pod_by_last_lines_with_times(plane: ControlPlane) -> None:
    plane.ok(*("submit", "plain", "--name", "lines", "--wait", "--"), "seq", "1", "5")
    assert plane.ok("logs", "pod/lines-worker-0", "--tail", "2") == "4\n5\n"
    (line,) = plane.ok("logs", "lines", "--tail", "1", "--timestamps").splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z 5", line)
    nothing = plane.run("logs", "lines", "--previous")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "has made no attempt before this one" in nothing.stderr


def test_a_job_that_fails_fails_the_command(plane: ControlPlane) -> None:
    done = plane.run(
        *("submit", "plain", "--name", "bad", "--max-restarts", "0", "--wait"),
        *("--", "python", "-c", "import sys; print('why: 42'); sys.exit(3)"),
    )
    assert done.returncode == 1
    assert "error: job bad failed" in done.stderr
    assert "lockstep describe bad" in done.stderr
    assert plane.ok("logs", "bad") == "why: 42\n"
    explained = plane.ok("explain", "bad")
    assert "has failed" in explained
    assert "exit code 3" in explained


def test_logs_go_on_through_a_restart(plane: ControlPlane, tmp_path: Path) -> None:
    done = plane.run(
        *("submit", "plain", "--name", "again", "--follow"),
        *("--", "python", "-c", FAILS_ONCE, str(tmp_path / "flag")),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["attempt 0", "attempt 1"]
    assert plane.get("again")["status"]["restarts"] == 1


def test_a_suspended_job_gives_its_place_back_and_resumes(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "nap", "--", "sleep", "600")
    plane.eventually_phase("nap", "Running")
    assert plane.ok("suspend", "nap") == "job/nap suspended\n"
    plane.eventually_phase("nap", "Suspended")
    assert "suspended" in plane.ok("explain", "nap")
    assert plane.ok("resume", "nap") == "job/nap resumed\n"
    plane.eventually_phase("nap", "Running")
    assert plane.ok("delete", "nap") == "job/nap deleted\n"
    assert plane.run("get", "nap").returncode == 1
    assert plane.ok("list", "pods", "-l", "lockstep.dev/job=nap", "-o", "name") == ""


def test_a_gang_that_cannot_fit_says_why(plane: ControlPlane) -> None:
    manifest = GANG % "".join(POD % i for i in range(5))
    assert plane.ok("submit", "-f", "-", stdin=manifest).splitlines() == [
        "gang/big created",
        *(f"pod/big-{i} created" for i in range(5)),
    ]
    again = plane.ok("submit", "-f", "-", stdin=manifest).splitlines()
    assert {line.split()[1] for line in again} == {"unchanged"}

    def explained() -> str | None:
        text = plane.ok("explain", "big")
        return text if "GPU" in text else None

    text = eventually_sync(explained, 60, "the gang says why it waits")
    assert "needs 5 pods x 4 GPUs under one leaf" in text
    assert "5 pods x 4 GPUs" in plane.ok("list", "gangs")
    assert "0 of 32 GPUs used" in plane.ok("top")
    plane.ok("delete", "gang/big", *(f"pod/big-{i}" for i in range(5)))


def test_objects_print_whole_as_json_and_yaml(plane: ControlPlane) -> None:
    queue = yaml.safe_load(plane.ok("get", "queue/default", "-o", "yaml"))
    assert (queue["kind"], queue["metadata"]["name"]) == ("Queue", "default")
    listed = json.loads(plane.ok("list", "queues", "-o", "json"))
    assert listed["kind"] == "List"
    assert [q["metadata"]["name"] for q in listed["items"]] == ["default"]
    assert listed["items"][0]["apiVersion"] == "lockstep.dev/v1alpha1"


def test_a_dry_run_sends_nothing_and_prints_a_submittable_manifest(plane: ControlPlane) -> None:
    given = ("submit", "plain", "--name", "dry", "--dry-run", "-o", "json", "--", "true")
    printed = plane.ok(*given)
    assert plane.run("get", "dry").returncode == 1
    done = plane.run("submit", "-f", "-", "--wait", stdin=printed)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("get", "nope"), 1, '"nope" not found'),
        (("get", "nope/x"), 2, "'nope' is not a kind"),
        (("list", "nopes"), 2, "'nopes' is not a kind"),
        (("list", "--watch", "-o", "json"), 2, "rows of a table"),
        (("explain", "queue/default"), 2, "does not wait"),
        (("logs", "gang/x"), 2, "writes no logs"),
        (("delete", "nope"), 1, "not found"),
        (("submit",), 2, "pytorch, mpi, plain"),
        (("submit", "plain"), 2, "nothing to run"),
        (("submit", "plain", "--workers", "0", "--", "true"), 2, "--workers"),
        (("submit", "plain", "-f", "x.yaml"), 2, "leave out framework, or write it into x.yaml"),
        (("submit", "-f", "x.yaml", "--gpus", "2", "-e", "A=B"), 2, "--gpus, --env would change"),
        (("submit", "-f", "x.yaml", "--queue", "default"), 2, "leave out --queue"),
        (("submit", "-f", "/nowhere.yaml"), 2, "/nowhere.yaml: No such file"),
        (("submit", "plain", "--name", "No_good", "--", "true"), 2, "metadata.name"),
        (("queue", "create", "q", "--limit", "gpu=many"), 2, "'many' is not a quantity"),
        (("sumbit",), 2, "Did you mean 'submit'"),
    ],
)
def test_wrong_input_is_named(
    plane: ControlPlane, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = plane.run(*arguments)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_wrong_field_is_named_before_anything_is_sent(plane: ControlPlane) -> None:
    job = yaml.safe_load(plane.ok("submit", "plain", "--name", "typo", "--dry-run", "--", "true"))
    job["spec"]["framwork"] = job["spec"].pop("framework")
    job["spec"]["roles"][0]["replicas"] = 0
    done = plane.run("submit", "-f", "-", stdin=yaml.safe_dump(job))
    assert done.returncode == 2
    assert "spec.framwork" in done.stderr
    assert "did you mean framework?" in done.stderr
    assert "spec.roles[0].replicas" in done.stderr
    assert plane.run("get", "typo").returncode == 1


def test_a_node_is_cordoned_drained_and_opened_again(plane: ControlPlane) -> None:
    name = next(
        node["metadata"]["name"]
        for node in json.loads(plane.ok("node", "list", "-o", "json"))["items"]
        if node["metadata"]["labels"]["lockstep.dev/node"] == "process"
    )
    plane.ok("submit", "plain", "--name", "stays", "--", "sleep", "600")
    plane.eventually_phase("stays", "Running")
    assert plane.ok("node", "drain", name).splitlines() == [
        f"node/{name} cordoned",
        f"node/{name} drained",
    ]
    assert "Cordoned" in plane.ok("node", "get", name)
    assert plane.ok("node", "uncordon", name) == f"node/{name} uncordoned\n"
    plane.eventually_phase("stays", "Running")
    plane.ok("delete", "stays")


def test_queues_are_created_listed_and_deleted(plane: ControlPlane) -> None:
    plane.ok("queue", "create", "lab", "--guaranteed", "gpu=8", "--weight", "3")
    row = plane.ok("queue", "list").splitlines()[-1].split()
    assert row[:4] == ["lab", "-", "3", "gpu=8"]
    again = plane.run("queue", "create", "lab")
    assert (again.returncode, "queue lab exists already" in again.stderr) == (1, True)
    assert "Weight:" in plane.ok("describe", "queue/lab")
    assert "lab" in plane.ok("top", "queues")
    assert plane.ok("queue", "delete", "lab") == "queue/lab deleted\n"


def test_a_watch_prints_rows_as_they_change(plane: ControlPlane) -> None:
    with subprocess.Popen(
        [*LOCKSTEP, "list", "queues", "--watch"],
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:
        try:
            assert watch.stdout is not None
            head = [watch.stdout.readline().split()[0] for _ in range(2)]
            assert head == ["NAME", "default"]
            plane.ok("queue", "create", "seen")
            assert watch.stdout.readline().split()[0] == "seen"
        finally:
            watch.terminate()
    plane.ok("queue", "delete", "seen")


def test_versions_of_client_server_and_kinds(plane: ControlPlane) -> None:
    client, server, kinds = plane.ok("version").splitlines()
    assert client == f"client {__version__}"
    assert server.split()[1].endswith(f"+lockstep-{__version__}")
    assert kinds == f"kinds  {__version__}"


def test_no_server_is_said_with_what_to_do(tmp_path: Path) -> None:
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    env.pop("KUBECONFIG", None)
    done = subprocess.run([*LOCKSTEP, "list"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "lockstep up" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_completion_knows_the_commands() -> None:
    env = {**os.environ, "_LOCKSTEP_COMPLETE": "complete_bash", "COMP_WORDS": "lockstep su"}
    env["COMP_CWORD"] = "1"
    done = subprocess.run([*LOCKSTEP], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["submit", "suspend"]


def test_the_manifests_are_those_of_the_kinds() -> None:
    done = subprocess.run(
        [*LOCKSTEP, "manifests", "crds"], capture_output=True, text=True, check=True
    )
    names = [crd["spec"]["names"]["kind"] for crd in yaml.safe_load_all(done.stdout)]
    assert {"TrainingJob", "Gang", "Queue", "Topology"} <= set(names)
