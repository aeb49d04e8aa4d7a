"""Checkpoints in a real S3 server: whole or not there, and of two that change at once none lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.rank_pod import RankPod
from tests.support.s3 import S3, SECRET, USER, Bucket

from lockstep.train import storage
from lockstep.train.catalogue import KEPT, Catalogue, Entry, NotStored, manifest, write_manifest
from lockstep.train.remote import Remote

SCRIPT = """
import sys, torch, torch.distributed as dist
from lockstep.train import Checkpointer
dist.init_process_group("gloo")
model = torch.nn.Linear(64, 64)
with torch.no_grad():
    model.weight.fill_(1.0)
ckpt = Checkpointer(model=model)
start = ckpt.restore()
print(start, int(model.weight.sum()))
with torch.no_grad():
    model.weight.fill_(5.0)
for step in range(start, int(sys.argv[1])):
    ckpt.step(step + 1)
dist.destroy_process_group()
"""


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    server = S3(tmp_path / "s3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    storage._store.cache_clear()
    yield server.bucket("models")
    storage._store.cache_clear()
    server.close()


@pytest.mark.torch
def test_ranks_go_on_from_an_object_store(bucket: Bucket, tmp_path: Path) -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    url = f"s3://{bucket.name}/runs/job-1"
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    pod = RankPod(tmp_path / "first", url)
    pod.saving.replicated = True
    assert pod.run(script, 2, "2") == ["0 4096\n"] * 2
    pod.saving.save_all()
    assert pod.saving.problem == ""
    assert [one["step"] for one in pod.saving.stored()] == [2, 1]
    # Another number of ranks, in a pod that has nothing in memory.
    later = RankPod(tmp_path / "second", url)
    assert later.run(script, 1, "2", resume="2") == ["2 20480\n"]


def test_two_that_commit_at_once_are_both_there(bucket: Bucket) -> None:
    books = Catalogue(storage.at(f"s3://{bucket.name}/job-2"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: books.add(Entry(n, f"step-{n}", 1, True, 0.0)), range(1, KEPT + 1)))
    assert [one.step for one in books.entries()] == list(range(KEPT, 0, -1))
    storage.put(storage.at(f"s3://{bucket.name}/job-2/step-1/receipt"), b"{}")
    books.add(Entry(9, "step-9", 1, True, 0.0))
    assert [one.step for one in books.entries()] == [9, 3, 2]
    with pytest.raises(FileNotFoundError):
        storage.read(storage.at(f"s3://{bucket.name}/job-2/step-1/receipt"))


def test_the_first_manifest_stays(bucket: Bucket) -> None:
    directory = storage.at(f"s3://{bucket.name}/job-3/step-4")
    for size in (1, 2):
        write_manifest(directory, {"job": "job-3", "step": 4, "size": size})
    assert manifest(directory, 4)["size"] == 1


def test_a_store_that_does_not_answer_is_named(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Remote(f"s3://{bucket.name}/job-4", "")
    remote.look(1)
    assert (remote.problem, remote.entries()) == ("", [])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    remote.look(1)
    assert remote.problem.startswith(f"s3://{bucket.name}/job-4: ")
    with pytest.raises(NotStored, match="has no checkpoint of step 3"):
        remote.find(3)
