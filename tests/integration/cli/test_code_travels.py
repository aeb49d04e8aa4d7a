"""A directory goes with a job: sent once, unpacked in each pod, recorded, gone with the job."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.process_node import needs_mounts
from tests.support.waiting import eventually_sync, stretched

TRAIN = """
import os
import torch.distributed as dist
from pkg.model import WORD

dist.init_process_group("gloo")
ranks = [None] * dist.get_world_size()
dist.all_gather_object(ranks, dist.get_rank())
print(WORD, os.getcwd(), ranks, sorted(os.listdir(".")))
open("written", "w").close()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a script, a package, a lock file and what must stay behind."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "model.py").write_text('WORD = "first"\n')
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "say.py").write_text("from pkg.model import WORD\nprint(WORD)\n")
    (tmp_path / "requirements.txt").write_text(f"torch  # {tmp_path}\n")
    (tmp_path / ".lockstepignore").write_text("data/\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large").write_text("x")
    return tmp_path


def submit(plane: ControlPlane, here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``lockstep submit`` in a directory."""
    return subprocess.run(
        [*LOCKSTEP, "submit", *arguments],
        cwd=here,
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=stretched(200),
        check=False,
    )


def parts(plane: ControlPlane) -> dict[str, list[str]]:
    """Return the parts that the cluster holds, each with the jobs that own it."""
    path = "api/v1/namespaces/default/configmaps?labelSelector=lockstep.dev/code"
    metas: list[dict[str, Any]] = [one["metadata"] for one in plane.read(path)["items"]]
    return {
        one["name"]: [owner["name"] for owner in one.get("ownerReferences", ())] for one in metas
    }


def test_a_directory_trains_on_two_workers(plane: ControlPlane, project: Path) -> None:
    needs_mounts()
    given = ("--workers", "2", "--code", ".", "--follow", "--", "python", "train.py")
    done = submit(plane, project, "pytorch", "--name", "two", *given)
    there = "['.lockstepignore', 'pkg', 'requirements.txt', 'say.py', 'train.py']"
    assert sorted(done.stdout.splitlines()) == [
        f"[worker-{i}] first /lockstep/code [0, 1] {there}" for i in (0, 1)
    ], done.stderr
    assert re.search(r"code: 5 files, [\d.]+ kB; [\d.]+ kB sent", done.stderr)
    assert not (project / "written").exists()
    page = plane.ok("describe", "two")
    assert re.search(r"Code: +5 files, \d+ bytes, sha256:[0-9a-f]{64}\n", page)
    assert re.search(r"Packages: +requirements.txt, kept in configmap/code-[0-9a-f]{40}\n", page)


def test_a_part_is_sent_once_and_ends_with_its_jobs(plane: ControlPlane, project: Path) -> None:
    needs_mounts()
    run = ("--code", ".", "--follow", "--", "python", "say.py")
    before = set(parts(plane))
    assert "kB sent" in submit(plane, project, "plain", "--name", "once", *run).stderr
    new = set(parts(plane)) - before
    again = submit(plane, project, "plain", "--name", "again", *run)
    assert (again.stdout, "the cluster has it" in again.stderr) == ("first\n", True)
    assert {tuple(sorted(parts(plane)[one])) for one in new} == {("again", "once")}
    (project / "pkg" / "model.py").write_text('WORD = "second"\n')
    changed = submit(plane, project, "plain", "--name", "changed", *run)
    assert (changed.stdout, "kB sent" in changed.stderr) == ("second\n", True)
    plane.ok("delete", "once")
    eventually_sync(
        lambda: {tuple(parts(plane)[one]) for one in new} >= {("again",)}, 90, "one job less"
    )
    plane.ok("delete", "again", "changed")
    eventually_sync(lambda: not new & set(parts(plane)), 90, "the parts are gone")


def test_an_image_and_code_go_together(plane: ControlPlane, project: Path) -> None:
    needs_mounts()
    given = ("--image", "python:3.12", "--follow", "--", "python", "-m", "say")
    done = submit(plane, project, "plain", "--name", "image", *given)
    assert (done.stdout, "kB sent" in done.stderr) == ("first\n", True), done.stderr
    given = ("--image", "x", "--working-dir", "/srv/app", "--code", ".", "--follow")
    done = submit(plane, project, "plain", "--name", "placed", *given, "--", "sh", "-c", "pwd; ls")
    assert done.stdout.split() == ["/srv/app", "pkg", "requirements.txt", "say.py", "train.py"]


def test_a_job_of_a_file_takes_code_too(plane: ControlPlane, project: Path) -> None:
    needs_mounts()
    manifest = plane.ok("submit", "plain", "--name", "filed", "--dry-run", "--", "python", "say.py")
    (project / "job.yaml").write_text(re.sub(r" +workingDir: .*\n", "", manifest))
    done = submit(plane, project, "-f", "job.yaml", "--code", ".", "--follow")
    assert done.stdout == "first\n", done.stderr


def test_a_job_on_this_machine_runs_in_its_directory(plane: ControlPlane, project: Path) -> None:
    done = submit(plane, project, "plain", "--name", "direct", "--follow", "--", "python", "say.py")
    assert (done.stdout, "sent" in done.stderr) == ("first\n", False)
    code = plane.get("job/direct")["spec"]["code"]
    assert (code["files"], "parts" in code) == (5, False)
    bare = submit(plane, project, "plain", "--name", "bare", "--no-code", "--", "python", "say.py")
    assert bare.returncode == 0
    assert "code" not in plane.get("job/bare")["spec"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--code", "nowhere"), "is no directory"),
        (("--code", ".", "--no-code"), "cannot be combined with --code"),
        (("--code", "large"), "large/weights.bin (120.0 MB)"),
    ],
)
def test_bad_code_is_refused_by_name(
    plane: ControlPlane, project: Path, given: tuple[str, ...], told: str
) -> None:
    (project / "large" / "large").mkdir(parents=True)
    with (project / "large" / "large" / "weights.bin").open("wb") as file:
        file.truncate(120_000_000)
    done = submit(plane, project, "plain", "--name", "bad", *given, "--", "python", "say.py")
    assert done.returncode == 2
    assert told in re.sub(r"[\s│]+", " ", done.stderr)
    assert plane.run("get", "job/bad").returncode == 1
