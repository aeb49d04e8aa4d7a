"""An acknowledged write was synced to the disk before its answer was sent."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually_sync

SYNCED = r"sync(\(\d+<.*store\.db-wal| resumed)"
# Answers of this size are this request's: the object is sent back whole.
ANSWERED = r"(write|sendto|sendmsg|writev)\(\d+<(TCP|socket).* = \d{5,}$"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_log_is_synced_between_request_and_answer(server: ApiServer, tmp_path: Path) -> None:
    assert server.process is not None
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-o", str(trace), "-p", str(server.process.pid)]
    tracer = subprocess.Popen(
        [*command, "-e", "trace=fsync,fdatasync,pwrite64,sendto,sendmsg,write,writev"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert tracer.stderr is not None
        if "attached" not in (line := tracer.stderr.readline()):
            pytest.skip(f"strace may not trace here: {line.strip()}")
        marker = "x" * 50_000
        body = {"metadata": {"name": "synced"}, "data": {"a": marker}}
        answer = server.request("POST", "/api/v1/namespaces/default/configmaps", body)
        assert answer.status == 201
        eventually_sync(lambda: _seen(trace.read_text().splitlines()))
    finally:
        tracer.terminate()
        tracer.wait(20)
    calls = trace.read_text().splitlines()
    written = [i for i, call in enumerate(calls) if "store.db-wal" in call and "pwrite64" in call]
    synced = [i for i, call in enumerate(calls) if re.search(SYNCED, call)]
    answered = [i for i, call in enumerate(calls) if re.search(ANSWERED, call) and i > written[-1]]
    assert written
    assert answered
    assert any(written[-1] < sync < answered[0] for sync in synced)


def _seen(calls: list[str]) -> bool:
    """Say whether the trace has come as far as the answer after the write."""
    written = [i for i, call in enumerate(calls) if "store.db-wal" in call and "pwrite64" in call]
    return bool(written) and any(re.search(ANSWERED, call) for call in calls[written[-1] :])
