"""What lines of a kernel log make of a node's findings."""

import pytest
from msgspec.structs import replace
from tests.support.signatures import SAMPLES

from lockstep.api.node_health import MOST_FINDINGS, Finding
from lockstep.health.core.findings import added, finding_of, findings_of, key, merged

DEVICES = {"0000:17:00": "gpu/3", "0000:1a:00": "nic/0"}

CASES = [
    ("NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.", "hardware", "gpu/3"),
    ("NVRM: Xid (PCI:0000:17:00.0): 79, GPU lost", "hardware", "gpu/3"),
    ("6,1,2,-;NVRM: Xid (0000:17:00): 48, DBE", "hardware", "gpu/3"),
    ("[ 12.5] NVRM: Xid (PCI:0000:99:00): 79, x", "hardware", "0000:99:00"),
    ("NVRM: Xid (PCI:0000:17:00): 31, pid=9, Ch 8, MMU Fault", "user", "gpu/3"),
    ("mlx5_core 0000:1a:00.0 ens1f0: Link down", "network", "nic/0"),
    ("pcieport 0000:16:00.0: AER: Uncorrected (Fatal) error: 0000:17:00.0", "hardware", "gpu/3"),
]


@pytest.mark.parametrize(("line", "class_", "device"), CASES, ids=[c[0][:40] for c in CASES])
def test_a_line_names_class_and_device(line, class_, device):
    found = finding_of(line, DEVICES)
    assert found is not None
    assert (found.class_, found.device) == (class_, device)


def test_cleaning_up_after_an_error_is_no_finding():
    assert finding_of("NVRM: Xid (PCI:0000:17:00): 45, pid=1, Ch 8", DEVICES) is None


def test_the_same_again_is_counted_and_keeps_its_beginning():
    one = Finding(cause="x", device="gpu/0")
    first = merged([], [one], "t1")
    (again,) = merged(first, [replace(one, count=4)], "t2")
    assert (again.since, again.last, again.count) == ("t1", "t2", 5)


def test_no_count_is_lost_before_the_write():
    pending = {}
    for _ in range(1000):
        added(pending, Finding(cause="x", device="gpu/0"))
    assert [one.count for one in pending.values()] == [1000]


def test_what_is_only_observed_gives_way():
    many = [Finding(cause=f"c{i}", action="observe", last=f"{i:03}") for i in range(200)]
    bad = Finding(cause="bad", action="isolate_node")
    found = merged([bad, *many], [], "t")
    assert len(found) == MOST_FINDINGS
    assert key(bad) in {key(one) for one in found}


def test_many_lines_say_the_same_together_as_one_by_one() -> None:
    some = [one.line for one in SAMPLES if one.where == "kernel"]
    lines = [line for one in some for line in ("usb 1-1: new device", one, "", "x" * 9000)]
    alone = [found for line in lines if (found := finding_of(line, {})) is not None]
    assert list(findings_of(lines, {})) == alone
    assert len(alone) > 20
