"""What ranks lack is said before they start; what must fail keeps them from it."""

from __future__ import annotations

import pytest

from lockstep.health.core.signatures import match
from lockstep.train.preflight import SAID, Machine, machine, problems
from lockstep.train.ranks import Seat

SEAT = Seat(node=0, nodes=2, first=0, local=4, size=8)
GOOD = Machine(shm=1 << 34, memlock=None, files=1 << 20, gpus=4, rdma=True)
SMALL = 64 << 20
CASES = [
    ("nothing is wrong", GOOD, {}, [], False),
    ("shared memory is small for GPUs", Machine(SMALL, None, 4096, 4), {}, ["MiB free"], True),
    ("NCCL does without it", Machine(SMALL, None, 4096, 4), {"NCCL_SHM_DISABLE": "1"},
     ["MiB free"], False),
    ("shared memory is small for CPUs", Machine(SMALL, None, 4096), {}, ["MiB free"], False),
    ("RDMA cannot pin", Machine(1 << 40, 65536, 4096, 0, True), {}, ["locked"], True),
    ("RDMA is off", Machine(1 << 40, 65536, 4096, 0, True), {"NCCL_IB_DISABLE": "1"}, [], False),
    ("few files", Machine(1 << 40, None, 256), {}, ["files"], False),
    ("fewer GPUs than ranks", Machine(1 << 40, None, 4096, 2), {}, ["share 2 GPUs"], False),
    ("another number of ranks", GOOD, {"PET_NPROC_PER_NODE": "8"}, ["PET_NPROC"], True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "here", "env", "words", "fatal"), CASES, ids=[c[0] for c in CASES]
)
def test_before_the_start(
    rule: str, here: Machine, env: dict[str, str], words: list[str], fatal: bool
) -> None:
    found = list(problems(here, env, SEAT))
    assert len(found) == len(words)
    assert all(word in one.text for word, one in zip(words, found, strict=True))
    assert any(one.fatal for one in found) is fatal
    for one in found:
        # The job's diagnosis is made of this line.
        assert not one.fatal or match(SAID + one.text) is not None


def test_this_machine_is_read() -> None:
    here = machine()
    assert here.shm is not None and here.shm > 0
    assert here.files is None or here.files > 0
