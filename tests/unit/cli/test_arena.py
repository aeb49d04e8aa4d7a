"""Arena's command lines: all of its documentation's are read, and what they ask for is there."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.cli.arena import commands
from lockstep.cli.arena.build import objects
from lockstep.cli.arena.flags import GLOBAL, TYPES, Flag
from lockstep.cli.arena.parse import key, parse
from lockstep.cli.failure import BadInput
from lockstep.jobs.validate import problems

Json = dict[str, Any]
LINES = (Path(__file__).parent / "arena_lines.txt").read_text().splitlines()
SUBMITS = [line for line in LINES if "submit" in line.split()[:5] and "--help" not in line.split()]
REFUSED: dict[str, int] = {}
"""What of its documentation is not served, and in how many of its lines."""


def submit(line: str, tmp_path: Path) -> list[Json]:
    file = tmp_path / "test-config.json"
    file.write_text("{}")
    words = shlex.split(line.replace("/tmp/test-config.json", str(file)))  # noqa: S108
    printed = io.StringIO()
    with redirect_stdout(printed):
        commands.run([*words[1:], "--dry-run"])
    return list(yaml.safe_load_all(printed.getvalue()))


@pytest.mark.parametrize("line", SUBMITS)
def test_a_documented_job_is_built_or_refused_by_name(line: str, tmp_path: Path) -> None:
    try:
        found = submit(line, tmp_path)
    except BadInput as error:
        assert any(word in str(error) for word in REFUSED), error
        return
    jobs = [convert(one, TrainingJob) for one in found if one["kind"] == "TrainingJob"]
    assert jobs
    assert [str(problem) for job in jobs for problem in problems(job)] == []


def test_nineteen_of_twenty_are_made(tmp_path: Path) -> None:
    refused = [line for line in SUBMITS if any(word in line.split() for word in REFUSED)]
    assert len(refused) == sum(REFUSED.values())
    assert len(refused) <= len(SUBMITS) / 20


@pytest.mark.parametrize("line", [line for line in LINES if line not in SUBMITS])
def test_any_other_line_is_read(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[object] = []
    monkeypatch.setattr(commands, "_lockstep", lambda values, *words: done.append(words))
    for name in ("show_list", "show_one", "delete", "prune", "change_size", "show_claims"):
        monkeypatch.setattr(f"lockstep.cli.arena.views.{name}", lambda *a: done.append(a))
    try:
        commands.run(shlex.split(line)[1:])
    except BadInput as error:
        assert "--since must be set" in str(error)
        return
    assert done or capsys.readouterr().out


def values(type_: str, *args: str) -> Json:
    image = ["--image=i"] * (type_ not in ("volcanojob", "sparkjob"))
    return parse(["--name=t", *image, *args], TYPES[type_])[0]


SAMPLE = {
    "text": "5m",
    "number": "3",
    "switch": "true",
    "list": "k=v",
    "time": "5m",
}
OWN = {
    "shell": "bash",
    "data": "claim:/data",
    "data-dir": "/data",
    "toleration": "k=v:NoSchedule",
    "role-sequence": "ps,worker",
    "success-policy": "AllWorkers",
    "job-restart-policy": "OnFailure",
    "nproc-per-node": "2",
    "scheduler": "default-scheduler",
    "scheduler-name": "other",
    "min-workers": "2",
    "max-workers": "7",
    "logdir": "/logs",
    "clean-task-policy": "None",
}
WITH = {
    "sync-source": ("--sync-mode=git", "--sync-source=other"),
    "sync-image": ("--sync-mode=git", "--sync-source=s"),
    "sync-mode": ("--sync-source=s",),
    "tensorboard-image": ("--tensorboard",),
    "logdir": ("--tensorboard",),
    "job-backoff-limit": ("--job-restart-policy=OnFailure",),
    "min-workers": ("--workers=3",),
    "max-workers": ("--workers=3",),
    "mounts-on-launcher": ("--data=c:/data",),
}
FLAGS = [(type_, flag) for type_, flags in TYPES.items() for flag in flags]


def own(type_: str, flag: Flag) -> str:
    if flag.name == "sync-mode":
        return "git"
    if (type_, flag.name) == ("etjob", "job-restart-policy"):
        return "Never"
    return OWN.get(flag.name, SAMPLE[flag.kind])


@pytest.mark.parametrize(("type_", "flag"), FLAGS, ids=lambda v: getattr(v, "name", v))
def test_no_flag_is_dropped_in_silence(type_: str, flag: Flag, tmp_path: Path) -> None:
    """A flag changes the job, or is refused, or its row says why it means nothing."""
    roles = ("--ps=1", "--chief", "--evaluator") if type_ == "tfjob" else ()
    if flag.name in ("ps", "chief", "evaluator"):
        roles = ()
    text = own(type_, flag)
    if flag.name == "config-file":
        (tmp_path / "f").write_text("x")
        text = f"{tmp_path}/f:/f"
    more = WITH.get(flag.name, ())
    before = objects(type_, values(type_, *roles, *more), "run")
    given = f"--{flag.name}={text}"
    if not flag.becomes:
        with pytest.raises(BadInput, match=f"--{flag.name}"):
            objects(type_, values(type_, *roles, *more, given), "run")
        return
    after = objects(type_, values(type_, *roles, *more, given), "run")
    assert (after == before) is flag.becomes.startswith(("(nothing", "(met"))


BAD = [
    ("pytorchjob", "--gpus=many", "--gpus"),
    ("pytorchjob", "--no-such", "--no-such"),
    ("pytorchjob", "--workers", "--workers"),
    ("pytorchjob", "--env=novalue", "--env"),
    ("pytorchjob", "--data=claim", "--data"),
    ("pytorchjob", "--data-dir=relative", "--data-dir"),
    ("pytorchjob", "--toleration=a:Never", "--toleration"),
    ("pytorchjob", "--gang=perhaps", "--gang"),
    ("pytorchjob", "--shell=fish", "--shell"),
    ("pytorchjob", "--nproc-per-node=some", "--nproc-per-node"),
    ("pytorchjob", "--running-timeout=soon", "--running-timeout"),
    ("pytorchjob", "--sync-mode=git", "--sync-mode"),
    ("pytorchjob", "--config-file=/no/such/file", "--config-file"),
    ("pytorchjob", "--scheduler=yunikorn", "--scheduler"),
    ("tfjob", "--role-sequence=ps,ps", "--role-sequence"),
    ("tfjob", "--success-policy=Most", "--success-policy"),
    ("etjob", "--workers=9 --max-workers=8", "--workers"),
    ("etjob", "--job-restart-policy=Maybe", "--job-restart-policy"),
]


@pytest.mark.parametrize(("type_", "args", "flag"), BAD)
def test_what_makes_no_sense_names_the_flag(type_: str, args: str, flag: str) -> None:
    with pytest.raises(BadInput, match=flag):
        objects(type_, values(type_, *args.split()), "run")


def test_older_spellings_are_the_same() -> None:
    for type_, flags in TYPES.items():
        mine = {flag.name for flag in flags}
        for flag in (*flags, *(one for one in GLOBAL if one.name not in mine)):
            text = own(type_, flag)
            spelled = [values(type_, f"--{n}={text}")[key(flag)] for n in (flag.name, *flag.also)]
            assert all(one == spelled[0] for one in spelled)


def test_a_job_that_could_not_run_is_not_sent() -> None:
    with pytest.raises(BadInput, match=r"metadata\.name"):
        commands.run(["submit", "pytorch", "--name=9", "--image=i", "--dry-run", "run"])


VERBS = (
    "list, get, logs, delete, prune, attach, top node, data, data list, whoami, scalein etjob, "
    "scaleout etjob, version, submit tfjob, serve custom, serve list, serve ls, serve attach, "
    "serve update custom, serve traffic-split"
)


@pytest.mark.parametrize("line", VERBS.split(", "))
def test_help_of_every_verb_names_its_flags(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands.run([*line.split(), "--help"])
    told = capsys.readouterr().out
    assert told.startswith(f"arena {' '.join(line.split()[:2])}")
    assert "--namespace" in told


def test_logs_since_a_moment_are_those_of_the_time_since(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, ...]] = []
    monkeypatch.setattr(commands, "_lockstep", lambda values, *words: done.append(words))
    monkeypatch.setattr("time.time", lambda: 1_767_225_660.0)
    commands.run(["logs", "job", "--since-time=2026-01-01T00:00:00Z"])
    assert done == [("logs", "job", "--since=60s")]


def test_rdma_asks_for_a_nic_and_its_memory() -> None:
    (job,) = objects("pytorchjob", values("pytorchjob", "--rdma"), "run")
    main = job["spec"]["roles"][0]["template"]["spec"]["containers"][0]
    assert main["resources"]["limits"] == {"rdma/hca": 1}
    assert main["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
