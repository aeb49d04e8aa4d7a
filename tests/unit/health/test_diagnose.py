"""From lines to a verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.node_health import Finding
from lockstep.health.core.diagnose import Line, diagnose, with_findings
from lockstep.health.core.reading import lines_of

XID = "kernel: NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
PEER = "socketProgress: Connection closed by remote peer node-2<43210>"

CASES = [
    ("memory of the GPU", [OOM], "user", "stop_and_tell_user"),
    ("a cascade does not hide the cause", [PEER, OOM], "user", "stop_and_tell_user"),
    ("a fault of the machine precedes", [OOM, XID], "hardware", "isolate_node"),
    ("a cascade alone cannot be told", [PEER], "unknown", "observe"),
    ("nothing cannot be told", ["all is well"], "unknown", "observe"),
    ("a program's error", ["ValueError: bad batch"], "user", "stop_and_tell_user"),
    (
        "a watchdog's line gives way to a traceback",
        ["Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8)", "KeyError: 'x'"],
        "user",
        "stop_and_tell_user",
    ),
]


@pytest.mark.parametrize(("rule", "lines", "class_", "action"), CASES, ids=[c[0] for c in CASES])
def test_verdicts(rule, lines, class_, action):
    found = diagnose(Line(one) for one in lines)
    assert (found.class_, found.action) == (class_, action)


def test_what_is_missing_is_named():
    assert "missing: " in diagnose([]).cause


def test_ranks_come_from_names_and_lines():
    lines = [*lines_of("logs/rank3.log", OOM.encode()), *lines_of("x", f"[rank5]: {OOM}".encode())]
    assert diagnose(lines).place.ranks == [3, 5]


def test_a_sure_fault_of_the_node_outranks_the_log():
    fault = Finding(cause="Xid 79", class_="hardware", action="isolate_node", confidence=0.98)
    verdict = with_findings(diagnose([Line("ValueError: x", "n", 2)]), [("n", fault)])
    assert (verdict.class_, verdict.place.nodes, verdict.place.ranks) == ("hardware", ["n"], [2])


@given(st.binary(max_size=4000))
def test_any_bytes_get_an_answer(data):
    found = diagnose(lines_of("x", data))
    assert found.cause
    assert 0 <= found.confidence < 1
