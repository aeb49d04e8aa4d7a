"""Checkpoints in DCP's format: whole or not there, for any number of ranks, readable anywhere."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.rank_pod import RankPod

from lockstep.train import catalogue
from lockstep.train.catalogue import KEPT, Catalogue, Entry, NotStored
from lockstep.train.saving import LONGEST, SHORTEST, best_interval, steps_between

if find_spec("torch") is None:
    pytest.skip("needs torch (the train extra)", allow_module_level=True)

from lockstep.train import export

FSDP = """
import hashlib, os, sys, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from lockstep.train import Checkpointer

torch.manual_seed(7)
dist.init_process_group("gloo")
model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
ckpt = Checkpointer(model=model, optimizer=optimizer)
start = ckpt.restore()
for step in range(start, int(sys.argv[1])):
    torch.manual_seed(step)
    model(torch.randn(4, 5)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    ckpt.step(step + 1)
state = {**model.state_dict()}
for number, kept in optimizer.state_dict()["state"].items():
    state |= {f"{number}.{key}": value for key, value in kept.items()}
total = hashlib.sha256()
for key in sorted(state):
    whole = state[key].full_tensor() if hasattr(state[key], "full_tensor") else state[key]
    total.update(whole.numpy().tobytes())
print(start, total.hexdigest(), flush=True)
dist.destroy_process_group()
# Threads of gloo that are left may abort the interpreter's end.
os._exit(0)
"""


def test_sharded_ranks_of_another_number_go_on(tmp_path: Path) -> None:
    script = tmp_path / "fsdp.py"
    script.write_text(FSDP)
    books = tmp_path / "job-1"
    pod = RankPod(tmp_path / "first", books)
    pod.saving.replicated = True
    two = pod.run(script, 2, "3")
    pod.saving.save_all()
    assert pod.saving.problem == ""
    assert [one.step for one in Catalogue(books).entries()] == [3, 2]
    assert Catalogue(books).entries()[0].free
    three = RankPod(tmp_path / "second", books).run(script, 3, "3", resume="3")
    assert {line.split()[0] for line in three} == {"3"}
    assert {line.split()[1] for line in two} == {line.split()[1] for line in three}
    read_by_dcp(books / "step-000000000003-1")
    out = tmp_path / "model.safetensors"
    assert export.main([str(books), str(out)]) == 0
    exported = read_by_format(out)
    assert exported.keys() == {"0.weight", "0.bias", "2.weight", "2.bias"}
    as_dcp_reads_it(exported, books / "step-000000000003-1")


OWN = """
import hashlib, os, sys, torch, torch.distributed as dist
from lockstep.train import Checkpointer

class Order:
    def __init__(self, rank): self.generator = torch.Generator().manual_seed(rank)
    def state_dict(self): return {"order": self.generator.get_state()}
    def load_state_dict(self, state): self.generator.set_state(state["order"])

dist.init_process_group("gloo")
torch.manual_seed(7)
model = torch.nn.Linear(5, 7)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
order = Order(dist.get_rank())
ckpt = Checkpointer(model=model, optimizer=optimizer, order=order)
start = ckpt.restore()
for step in range(start, int(sys.argv[1])):
    torch.randn(3, generator=order.generator)
    model(torch.ones(4, 5)).square().sum().backward()
    optimizer.step()
    ckpt.step(step + 1)
kept = [*model.state_dict().values(), order.generator.get_state()]
digest = hashlib.sha256(b"".join(one.numpy().tobytes() for one in kept))
print(start, digest.hexdigest(), flush=True)
dist.destroy_process_group()
os._exit(0)
"""


def test_what_ranks_share_is_stored_once_beside_their_own(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(OWN)
    books = tmp_path / "job-1"
    pod = RankPod(tmp_path / "first", books)
    pod.saving.shared = True
    first = pod.run(script, 2, "3")
    pod.saving.save_all()
    assert pod.saving.problem == ""
    newest = Catalogue(books).entries()[0]
    assert (newest.step, newest.free) == (3, False)
    stored = {one["key"] for one in catalogue.manifest(books / newest.directory, 3)["tensors"]}
    assert {"model.weight", "ranks.0.order.order", "ranks.1.order.order"} <= stored
    assert "ranks.0.model.weight" not in stored
    again = RankPod(tmp_path / "second", books).run(script, 2, "3", resume="3")
    assert [line.split()[1] for line in again] == [line.split()[1] for line in first]
    assert len({line.split()[1] for line in first}) == 2


def read_by_format(path: Path) -> dict[str, Any]:
    """Read a safetensors file of 32-bit floats by the words of the format."""
    import torch

    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    assert header.pop("__metadata__")["format"] == "pt"
    assert begin % 8 == 0
    assert max(one["data_offsets"][1] for one in header.values()) == len(data) - begin
    found = {}
    for key, one in header.items():
        start, end = (begin + offset for offset in one["data_offsets"])
        assert one["dtype"] == "F32"
        found[key] = torch.frombuffer(bytearray(data[start:end]), dtype=torch.float32)
        found[key] = found[key].reshape(one["shape"])
    return found


def as_dcp_reads_it(exported: dict[str, Any], directory: Path) -> None:
    """Compare *exported* with what torch loads, bit by bit."""
    import torch
    import torch.distributed.checkpoint as dcp

    model = {key: torch.zeros_like(tensor) for key, tensor in exported.items()}
    dcp.load({"model": model}, checkpoint_id=directory)
    assert all(torch.equal(exported[key], model[key]) for key in model)


def read_by_dcp(directory: Path) -> None:
    """Load the checkpoint as anybody does who knows nothing of Lockstep."""
    import torch
    import torch.distributed.checkpoint as dcp

    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 3))
    state = {"model": model.state_dict()}
    before = state["model"]["0.weight"].clone()
    dcp.load(state, checkpoint_id=directory)
    assert not torch.equal(state["model"]["0.weight"], before)


PLAIN = """
import sys, torch
from lockstep.train import Checkpointer
model = torch.nn.Linear(64, 64)
ckpt = Checkpointer(model=model)
print(ckpt.restore())
with torch.no_grad():
    model.weight.fill_(5.0)
ckpt.step(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of one rank after step 4."""
    home = tmp_path_factory.mktemp("stored")
    script = home / "plain.py"
    script.write_text(PLAIN)
    pod = RankPod(home / "pod", home / "job-1")
    pod.run(script, 1, "4")
    pod.saving.save_all()
    assert pod.saving.problem == ""
    return home / "job-1"


def restored(books: Path, size: int = 1) -> Any:
    import torch

    from lockstep.train.loading import Stored

    state = Stored(Catalogue(books).find(4), 4, 0, size).state({})
    assert torch.equal(state["model"]["weight"], torch.full((64, 64), 5.0))
    return state


def test_a_rank_alone_gets_back_what_it_saved(stored: Path) -> None:
    assert "random" in restored(stored)


@pytest.mark.parametrize(
    ("name", "at"),
    [("manifest.json", 40), ("receipt-00000.json", 30), ("__0_0.distcp", 9000)],
)
def test_a_flipped_byte_is_never_loaded(stored: Path, tmp_path: Path, name: str, at: int) -> None:
    copy = tmp_path / "job-1"
    shutil.copytree(stored, copy)
    path = copy / "step-000000000004-1" / name
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(NotStored):
        restored(copy)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--part", "modle"], "step 4 has no tensors of 'modle' (--part): it has model"),
        (["--step", "5"], "has no checkpoint of step 5 (steps in its index.json: 4)"),
        (["--rank", "1"], "--rank 1: 1 ranks wrote step 4"),
    ],
)
def test_what_cannot_be_exported_is_named(
    stored: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    assert export.main([str(stored), str(tmp_path / "out"), *arguments]) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_flipped_byte_is_never_exported(stored: Path, tmp_path: Path) -> None:
    copy = tmp_path / "job-1"
    shutil.copytree(stored, copy)
    data = copy / "step-000000000004-1" / "__0_0.distcp"
    data.write_bytes(bytes(one ^ 1 for one in data.read_bytes()))
    assert export.main([str(copy), str(tmp_path / "out")]) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["job-1"]


def test_another_jobs_checkpoint_is_named(stored: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other-2"
    shutil.copytree(stored, copy)
    with pytest.raises(NotStored, match="belongs to the job job-1"):
        restored(copy)


def test_ranks_whose_states_differ_need_their_number(stored: Path, tmp_path: Path) -> None:
    copy = tmp_path / "job-1"
    shutil.copytree(stored, copy)
    directory = copy / "step-000000000004-1"
    manifest = catalogue.manifest(directory, 4)
    manifest["tensors"][0]["key"] = "ranks.0.model.weight"
    catalogue.write_manifest(directory, manifest)
    with pytest.raises(NotStored, match=r"1 ranks whose states differ .*: 2 ranks cannot go on"):
        restored(copy, size=2)


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    script = tmp_path / "plain.py"
    script.write_text(PLAIN)
    pod = RankPod(tmp_path / "pod", tmp_path / "file" / "job-1")
    pod.run(script, 1, "4")
    pod.saving.save_all()
    assert pod.saving.problem.startswith("step 4 of rank 0 is not saved: ")
    assert "Not a directory" in pod.saving.problem


def test_the_newest_few_are_kept(tmp_path: Path) -> None:
    books = Catalogue(tmp_path)
    for step in range(1, KEPT + 3):
        (tmp_path / f"step-{step}").mkdir()
        books.add(Entry(step, f"step-{step}", 1, True, 0.0))
    assert [one.step for one in books.entries()] == [5, 4, 3]
    assert sorted(one.name for one in tmp_path.glob("step-*")) == ["step-3", "step-4", "step-5"]


@pytest.mark.parametrize("index", ["", "[", "{}", '[{"directory": "../x", "step": 1}]', "[1]"])
def test_an_index_that_cannot_be_read_says_nothing(tmp_path: Path, index: str) -> None:
    (tmp_path / "index.json").write_text(index)
    assert Catalogue(tmp_path).entries() == []


@pytest.mark.parametrize(
    ("rate", "interval", "expected"),
    [(1.0, 60.0, 64), (1.1, 60.0, 128), (10.0, 60.0, 1024), (0.01, 60.0, 1), (100.0, 0.001, 1)],
)
def test_saves_are_a_power_of_two_steps_apart(rate: float, interval: float, expected: int) -> None:
    assert steps_between(rate, interval) == expected


@pytest.mark.parametrize(
    ("cost", "nodes", "seconds", "failures", "expected"),
    [
        # The root of twice 10 s and 6,300 h / 1,000 nodes.
        (10.0, 1000, 0.0, 0, 673.5),
        (0.01, 1000, 0.0, 0, SHORTEST),
        (60.0, 2, 0.0, 0, LONGEST),
        # A job that fails hourly saves more often than its nodes alone would have it.
        (10.0, 8, 36e4, 99, 799.4),
    ],
)
def test_without_a_stated_interval_it_follows_from_cost_and_failures(
    cost: float, nodes: int, seconds: float, failures: int, expected: float
) -> None:
    assert best_interval(cost, nodes, seconds, failures) == pytest.approx(expected, rel=1e-3)
