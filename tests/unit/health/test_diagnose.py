"""From lines to a verdict."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.node_health import Finding
from lockstep.health.core.diagnose import diagnose, with_findings
from lockstep.health.core.lines import Line
from lockstep.health.core.reading import lines_of

XID = "kernel: NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
PEER = "socketProgress: Connection closed by remote peer node-2<43210>"

MODULE = "ModuleNotFoundError: No module named 'apex'"

CASES = [
    ("memory of the GPU", [OOM], "user", "stop_and_tell_user"),
    ("a cascade does not hide the cause", [PEER, OOM], "user", "stop_and_tell_user"),
    ("a fault of the machine precedes", [OOM, XID], "hardware", "isolate_node"),
    ("a cascade that nothing precedes", [PEER], "network", "restart_in_place"),
    ("a wrapper alone cannot be told", ["ncclSystemError: System call"], "unknown", "observe"),
    ("a missing module is the user's", [XID, MODULE, MODULE], "user", "stop_and_tell_user"),
    ("a killed rank precedes a lost peer", [PEER, "exitcode  : -9"], "unknown", "restart_in_place"),
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


def test_a_log_wrapped_in_json_is_unwrapped():
    wrapped = {
        "log": f"x\n[rank3]: {OOM}\n",
        "kubernetes": {"host": "n7"},
        "time": "2025-05-01T10:00:00Z",
    }
    found = diagnose(lines_of("x", json.dumps(wrapped).encode()))
    assert (found.class_, found.place.nodes, found.place.ranks) == ("user", ["n7"], [3])


def test_the_first_failing_rank_in_time_decides():
    late = "2025-05-01 10:00:09 [rank1]: ValueError: bad batch"
    early = "2025-05-01 10:00:02 [rank6]: KeyError: 'labels'"
    found = diagnose(lines_of("all.log", f"{late}\n{early}\n".encode()))
    assert (found.place.ranks, found.evidence[0]) == ([1, 6], early)


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ("RuntimeError: 显存不足", "user"),
        ("bash: torchrun: 未找到命令", "user"),
        ("OSError: [Errno 5] 输入/输出错误: '/data/a'", "storage"),
        ("connect: 没有到主机的路由", "network"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_chinese_messages_are_read(line, class_, encoding):
    assert diagnose(lines_of("x", (line + "\n").encode(encoding) * 20)).class_ == class_


def test_watchdogs_name_the_rank_that_is_behind():
    text = (
        "[Rank {}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=1)"
    )
    found = diagnose(Line(text.format(rank)) for rank in (0, 1, 3, 4))
    assert (found.place.ranks, found.class_) == ([2], "software")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("n1:71:99 [3] NCCL WARN NET/IB : Got completion with error 12", (["n1"], ["gpu/3"])),
        ("mlx5_core 0000:1a:00.0 ens1: TX timeout detected", ([], ["0000:1a:00", "ens1"])),
        ("May  1 10:00:00 n4 kernel: md/raid:md2: Disk failure on sdb6", (["n4"], ["md2", "sdb6"])),
    ],
)
def test_places_are_named_where_a_line_has_them(line, place):
    found = diagnose(lines_of("x", line.encode()))
    assert (found.place.nodes, found.place.devices) == place
    assert found.action == "isolate_node"


def test_nothing_is_isolated_where_no_place_is_known():
    assert diagnose([Line("GPU is lost")]).action.startswith("observe: no line names the node")
    assert diagnose(lines_of("a.log", b"GPU is lost")).action.endswith("wrote a.log")


def test_a_missing_script_is_named_with_the_fix():
    found = diagnose([Line("python: can't open file '/app/train.py': [Errno 2] No such file")])
    assert found.cause.startswith("the script /app/train.py is not in the container: check")


@pytest.mark.parametrize(
    ("end", "class_", "action"),
    [
        ("exit code 137 (signal 9)", "unknown", "restart_in_place"),
        ("exit code 139 (signal 11)", "software", "restart_in_place"),
        ("exit code 134 (signal 6)", "software", "restart_in_place"),
        ("exit code 135 (signal 7)", "user", "stop_and_tell_user"),
        ("exit code 127: its command was not found", "user", "stop_and_tell_user"),
        ("exit code 126: its command cannot be executed", "user", "stop_and_tell_user"),
        ("exit code 143 (signal 15)", "unknown", "observe"),
        ("exit code 1", "unknown", "observe"),
    ],
)
def test_an_end_without_a_log_has_a_verdict(end, class_, action):
    found = diagnose([Line("Error"), Line(f"w-0 failed with {end}", "n1")])
    assert (found.class_, found.action) == (class_, action)


def test_long_lines_and_binary_are_bounded():
    data = b"a" * 4_000_000 + b"\n" + bytes(range(256)) * 1000 + b"\nValueError: bad batch\n"
    lines = list(lines_of("x", data))
    assert max(len(one.text) for one in lines) <= 64 << 10
    assert diagnose(lines).class_ == "user"


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


@pytest.mark.parametrize(
    "line",
    [
        "n1:71:99 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open "
        "shared object file: No such file or directory : when loading libnccl-net.so",
        "n1:71:99 [0] NCCL INFO socket.cc: peer 3 failed, tries another interface",
        "UserWarning: Setuptools is replacing distutils.",
        "kernel: EXT4-fs (md127p3): re-mounted f0b62db6 r/w. Quota mode: none.",
        "kernel: mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link ACTIVE",
        "kernel: workqueue: ib_cache_event_task [ib_core] hogged CPU for >10000us 4 times",
        "kernel: mlx4_en: eth1: Link Up",
        "iter 83592: loss 1.5455, time: 4401.19ms, speed: 5766 toks/s/device",
        "[INFO] 2021-09-14 14:02:29,309 api: [default] Rendezvous'ing worker group",
    ],
)
def test_lines_of_healthy_logs_blame_none(line):
    assert diagnose([Line(line)]).confidence == 0
