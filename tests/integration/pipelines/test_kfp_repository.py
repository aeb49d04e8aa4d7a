"""Examples of the SDK's repository: compiled here, and held against ``kfp.local`` in one run.

`LOCKSTEP_KFP_EXAMPLES` names ``test_data/sdk_compiled_pipelines/valid`` of a checkout of
kubeflow/pipelines. What a container alone can run, ``kfp.local`` leaves out without Docker.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.control_plane import ControlPlane
from tests.support.kfp_examples import EXAMPLES, NAMED, PLACES, needs
from tests.support.pipelines import KFP, RUNS
from tests.support.waiting import eventually_sync
from tools.kfp import build

LONGEST = 1200.0
BY_CHANCE = ("flip-coin", "if-else", "if-elif", "condition")
"""Parts of the names of examples that throw coins: their ends are theirs, not to be compared."""


@pytest.fixture(scope="module")
def environment() -> Iterator[Path]:
    """A copy of the environment with the SDK, in which examples may install what they like."""
    made = build.find()
    if not NAMED or made is None:
        pytest.skip("needs LOCKSTEP_KFP_EXAMPLES, and `make kfp`")
    # Not below /tmp, of which a pod sees its own.
    copy = made.with_name(f"{made.name}-{os.getpid()}-repository")
    shutil.copytree(made, copy, symlinks=True)
    yield copy
    shutil.rmtree(copy)


def told(environment: Path, place: Path) -> dict[str, Any]:
    """Return what ``kfp.local`` says of each example, by its name."""
    words = [str(environment / "bin" / "python"), "-W", "ignore", str(KFP / "repository.py")]
    env = {**os.environ, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([*words, str(EXAMPLES.parents[2]), str(place)], check=True, env=env)
    files = sorted(place.glob("*.json"))
    return {one.stem: json.loads(one.read_text()) | {"at": str(one)} for one in files}


def images(environment: Path, place: Path) -> Path:
    path = f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    home = {"PATH": path, "HOME": str(place)}
    program = {"command": ["{python}"], "python": str(environment), "env": home}
    entries = [{"image": f"{one}*", **program} for one in PLACES]
    table = place / "images.yaml"
    table.write_text(yaml.safe_dump(entries))
    return table


@pytest.mark.soak
@pytest.mark.timeout(4000)
def test_examples_of_the_repository_end_as_kfp_local_says(
    environment: Path, tmp_path: Path
) -> None:
    known = told(environment, tmp_path)
    wanted = {name: one for name, one in known.items() if "outputs" in one and not _lacks(one)}
    plane = ControlPlane(tmp_path / "up", "--images", str(images(environment, tmp_path))).start()

    def status(name: str) -> dict[str, Any]:
        found: dict[str, Any] = plane.read(f"{RUNS}/{name}").get("status", {})
        return found

    missed: dict[str, Any] = {}
    try:
        begun = {}
        for number, (name, one) in enumerate(wanted.items()):
            values = {**one["arguments"]}
            for path in [key for key in values if key.endswith("_path")]:
                values[path] = str(tmp_path / f"{name}.given")
            shown = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
            words = [word for k, v in shown.items() for word in ("-p", f"{k}={v}")]
            file = Path(one["at"]).with_suffix(".yaml")
            said = plane.run("pipeline", "run", str(file), "--name", f"sdk-{number}", *words)
            if said.returncode:
                missed[name] = said.stderr
            else:
                begun[name] = f"sdk-{number}"

        def over() -> bool:
            return all(status(run).get("completionTime") for run in begun.values())

        eventually_sync(over, LONGEST, "every run is over")
        for name, run in begun.items():
            found = status(run)
            outputs = {k: v for k, v in (found.get("outputs") or {}).items() if not _artefact(v)}
            same = outputs == wanted[name]["outputs"]
            if found["phase"] != "Succeeded" or not (same or _by_chance(name)):
                missed[name] = (found["phase"], found.get("message"), outputs, wanted[name])
    finally:
        plane.stop()
    for name, one in known.items():
        end = missed.get(name, "as kfp.local") if name in wanted else one.get("local") or one
        print(f"{name}: {end}"[:400], file=sys.stderr)
    print(f"{len(wanted) - len(missed)} of {len(wanted)} end as kfp.local says", file=sys.stderr)
    assert wanted
    assert not missed


def _lacks(one: dict[str, Any]) -> str:
    """Return what an example needs and this machine has not: a GPU, an image, a cloud."""
    text = Path(one["at"]).with_suffix(".yaml").read_text()
    return needs(next(yaml.safe_load_all(text)), text)


def _by_chance(name: str) -> bool:
    return any(part in name for part in BY_CHANCE)


def _artefact(value: Any) -> bool:
    several = value if isinstance(value, list) else [value]
    return any(isinstance(one, dict) and "uri" in one for one in several)
