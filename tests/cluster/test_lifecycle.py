"""A cluster is found again, replaced where it is broken, and ends without a trace."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tools.cluster import cluster as clusters
from tools.cluster import layout
from tools.cluster.cluster import ClusterError
from tools.cluster.layout import CONTROL

NAME = "trace"


def traces() -> list[str]:
    """Return what the host shows of the cluster."""
    marks = (f"lockstep-cluster-{NAME}", f"{layout.DATA}/{NAME}")
    found = [str(one) for one in Path("/sys/fs/cgroup").glob(f"*/{marks[0]}")]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if marks[1] in line]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        found += [words] if marks[1] in words else []
    return found + [str(one) for one in layout.DATA.glob(NAME)]


def links() -> list[str]:
    return sorted(one.name for one in Path("/sys/class/net").iterdir())


@pytest.mark.usefixtures("bare_cluster")
def test_killed_cluster_is_replaced_and_leaves_no_trace() -> None:
    before = links()
    try:
        first, found = clusters.up(NAME, nodes=1)
        assert not found
        assert links() == before
        assert clusters.up(NAME, nodes=1)[1], "the second call finds it"
        os.kill(first.process(CONTROL), signal.SIGKILL)
        second, found = clusters.up(NAME, nodes=1)
        assert not found
        assert second.healthy()
        os.kill(second.process("node-1"), signal.SIGKILL)
    finally:
        clusters.down(NAME)
    assert (traces(), links()) == ([], before)


def test_user_without_root_reads_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match=r"needs root.*Run: sudo -E make cluster"):
        clusters.up(NAME)
