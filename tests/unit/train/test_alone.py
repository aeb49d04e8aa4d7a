"""One process is a rank under torchrun alone, as programs tell by their variables."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from tests.support.waiting import stretched

from lockstep.train.place import Place
from lockstep.train.ranks import Ranks, node_variables, torchrun_directory

pytestmark = pytest.mark.torch

SCRIPT = """
import os, sys
if int(os.environ.get("RANK", -1)) == -1 and "LOCAL_RANK" not in os.environ:
    said = f"alone {'WORLD_SIZE' in os.environ} {'MASTER_ADDR' in os.environ}"
else:
    import torch.distributed as dist
    dist.init_process_group("gloo")
    said = f"rank {dist.get_rank()} of {dist.get_world_size()}"
with open(sys.argv[1], "w") as file:
    file.write(said)
"""


@pytest.mark.parametrize(
    ("command", "alone", "said"),
    [
        ("python SCRIPT OUT", True, "alone False False"),
        ("python SCRIPT OUT", False, "rank 0 of 1"),
        ("torchrun SCRIPT OUT", True, "rank 0 of 1"),
        ("sh -c 'torchrun SCRIPT OUT'", True, "rank 0 of 1"),
        ("sh -c 'python SCRIPT OUT'", True, "alone False False"),
    ],
)
def test_one_process_is_a_rank_only_where_asked(
    tmp_path: Path, command: str, alone: bool, said: str
) -> None:
    pytest.importorskip("torch")
    script, out = tmp_path / "train.py", tmp_path / "said"
    script.write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = Place("default", "w-0", "u", "", "w-world", 0, 1, "s:1", tmp_path, alone)
    world = {"generation": 1, "master": "127.0.0.1", "port": port}
    world |= {"parts": [{"role": "w", "pods": 1, "processes": 1}]}
    bare = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    # The Python that has torch is not everywhere the first on the path.
    path = (torchrun_directory(tmp_path), Path(sys.executable).parent, os.environ["PATH"])
    env = {**bare, **node_variables(place, world, ""), "PATH": os.pathsep.join(map(str, path))}
    words = command.replace("SCRIPT", str(script)).replace("OUT", str(out))
    program, _, rest = words.partition(" ")
    arguments = ["-c", rest[4:-1]] if program == "sh" else rest.split()
    gone = threading.Event()
    failures: list[tuple[int, int, str]] = []
    Ranks([program, *arguments], env, ended=lambda *one: failures.append(one), gone=gone.set)
    assert gone.wait(stretched(120))
    assert failures == []
    assert out.read_text() == said
