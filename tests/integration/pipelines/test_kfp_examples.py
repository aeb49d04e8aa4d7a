"""KFP's own compiled examples, run on a process node; needs a checkout of kubeflow/pipelines.

`LOCKSTEP_KFP_EXAMPLES` names its directory ``test_data/sdk_compiled_pipelines/valid``. Steps run
in a copy of the environment with the SDK, whatever version of it they were compiled with.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.kfp_examples import BAR, NAMED, PLACES, SHELLS, Example, arguments, examples
from tests.support.pipelines import Pipelines
from tools.kfp import build

from lockstep.cli import pipeline_file
from lockstep.cli.failure import BadInput

AT_ONCE, LONGEST = 6, 400.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipelines]:
    """A control plane whose steps on ``python:*`` run in a copy of the SDK's environment."""
    place = tmp_path_factory.mktemp("kfp-examples")
    made = build.find()
    if not NAMED or made is None:
        pytest.skip("needs LOCKSTEP_KFP_EXAMPLES, and `make kfp`")
    # Not below /tmp, of which a pod sees its own.
    copy = made.with_name(f"{made.name}-{os.getpid()}")
    shutil.copytree(made, copy, symlinks=True)
    path = f"{copy}/bin:/usr/local/bin:/usr/bin:/bin"
    shells = [f"{one}*" for one in SHELLS]
    entries = [
        {
            "image": f"{image}*",
            "python": str(copy),
            "command": ["{python}"],
            "env": {"PATH": path, "HOME": str(place)},
        }
        for image in (*PLACES, *shells)
    ]
    table = place / "images.yaml"
    table.write_text(yaml.safe_dump(entries))
    world = Pipelines(place, table)
    yield world
    world.close()
    shutil.rmtree(copy)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kfps_own_examples_come_to_their_ends(cluster: Pipelines, tmp_path: Path) -> None:
    found = list(examples())
    local = [one for one in found if not one.left_out]
    begun: dict[str, tuple[Example, float]] = {}
    waiting = list(enumerate(local))
    while waiting or begun:
        while waiting and len(begun) < AT_ONCE:
            number, one = waiting.pop(0)
            if _start(cluster, one, f"kfp-{number}", tmp_path):
                begun[f"kfp-{number}"] = one, time.monotonic()
        for name, (one, since) in list(begun.items()):
            status = cluster.status(name)
            one.phase, one.said = status.get("phase", ""), status.get("message", "")
            if status.get("completionTime") or time.monotonic() - since > LONGEST:
                del begun[name]
        time.sleep(0.2)
    for one in found:
        end = f"left out: {one.left_out}" if one.left_out else f"{one.phase}: {one.said}"
        print(f"{'ok' if one.as_wished else '--'} {one.name} {end[:300]}", file=sys.stderr)
    share = sum(one.as_wished for one in local) / len(local)
    print(f"{len(local)} of {len(found)} need no cloud; {share:.3f} end as wished", file=sys.stderr)
    assert share >= BAR


def _start(cluster: Pipelines, one: Example, name: str, place: Path) -> bool:
    """Start an example; where it is refused, note why."""
    file = place / f"{name}.yaml"
    file.write_text(yaml.safe_dump_all(one.documents))
    wanted = {"root": "s3://runs/p", "storageSecret": "store", "maxWait": "60s"}
    try:
        run = pipeline_file.read(file, arguments(one.documents[0], place), name, wanted)
    except BadInput as refused:
        one.phase, one.said = "Refused", str(refused)
        return False
    cluster.submit(run)
    return True
