"""Into pods of jobs, and commands about jobs as a whole, against a real control plane."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

from tests.support.control_plane import LOCKSTEP, ControlPlane
from tests.support.waiting import eventually_sync

LISTENS = """
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"heard " + self.rfile.readline())
with socketserver.TCPServer(("", 0), Echo) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


def test_a_command_runs_inside_and_files_go_both_ways(plane: ControlPlane, tmp_path: Path) -> None:
    plane.ok("submit", "plain", "--name", "inn", "--", "sleep", "600")
    plane.ok("wait", "inn", "--for", "running", "--timeout", "60s")
    done = plane.run("exec", "inn", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert plane.ok("exec", "inn", "-i", "--", "tr", "a-z", "A-Z", stdin="shout") == "SHOUT"
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "note.txt").write_text("hello")
    plane.ok("cp", str(tmp_path / "note.txt"), f"inn:{there}")
    assert (there / "note.txt").read_text() == "hello"
    plane.ok("cp", f"inn:{there}", str(tmp_path / "back"))
    assert (tmp_path / "back" / "note.txt").read_text() == "hello"
    lost = plane.run("cp", "inn:/nowhere/x", str(tmp_path / "x"))
    assert lost.returncode == 1
    plane.ok("delete", "inn")


def test_a_port_is_forwarded(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "srv", "--", "python", "-u", "-c", LISTENS)
    eventually_sync(lambda: plane.run("logs", "srv").stdout.strip().isdigit(), 60, "it listens")
    port = plane.ok("logs", "srv").strip()
    process = subprocess.Popen(
        [*LOCKSTEP, "port-forward", "srv", f"0:{port}"],
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        local = int(process.stdout.readline().split()[1].rpartition(":")[2])
        for word in (b"one\n", b"two\n"):
            with socket.create_connection(("127.0.0.1", local), 30) as there:
                there.sendall(word)
                assert there.makefile("rb").readline() == b"heard " + word
    finally:
        process.terminate()
        process.wait(30)
    plane.ok("delete", "srv")


def test_jobs_are_chosen_for_deletion(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "arr", "--array", "2", "--label", "k=v", "--",
             "echo", "said")  # fmt: skip
    assert plane.ok("wait", "arr", "--timeout", "60s").count("succeeded") == 2
    wrote = plane.ok("logs", "arr").splitlines()
    assert wrote == ["[arr-0] said", "[arr-1] said"]
    plane.ok("submit", "plain", "--name", "stays", "--", "sleep", "600")
    assert plane.ok("delete", "-l", "k=v", "--ended").count("deleted") == 2
    assert plane.ok("list", "-o", "name") == "job/stays\n"
    assert plane.run("delete").returncode == 2
    plane.ok("wait", "stays-worker-0", "--for", "running", "--timeout", "60s")
    assert plane.ok("exec", "stays-worker-0", "--", "echo", "hi") == "hi\n"
    assert plane.ok("logs", "stays-worker-0") == ""
    plane.ok("submit", "plain", "--name", "two", "--array", "2", "--suspend", "--", "true")
    assert plane.ok("delete", "two") == "job/two-0 deleted\njob/two-1 deleted\n"
    assert "not found: job/two" in plane.run("delete", "two").stderr
    assert plane.ok("delete", "--all") == "job/stays deleted\n"
    assert plane.run("delete", "--ended").stderr == "nothing to delete\n"


def test_scale_and_status(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "el", "--min", "1", "--max", "3", "--", "sleep", "600")
    plane.ok("wait", "el", "--for", "running", "--timeout", "60s")
    assert plane.ok("scale", "el", "--workers", "2") == "job/el scaled: worker from 1 to 2\n"
    eventually_sync(lambda: plane.gangs()["el"].get("bound") == 2, 60, "it has two")
    assert plane.run("scale", "el", "--workers", "4").returncode == 2
    scaled = plane.run("scale", "el-worker-1", "1")
    assert scaled.stdout == "job/el scaled: worker from 2 to 1\n"
    assert "pod el-worker-1 is of job el" in scaled.stderr
    found = json.loads(plane.ok("status", "-o", "json"))
    assert found["nodes"] == {"Ready": 5}
    assert sum(found["jobs"].values()) == 1
    plane.ok("delete", "el")


def test_every_command_takes_names_of_pods_and_arrays(plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "seen", "--array", "2", "--", "sleep", "600")
    plane.ok("wait", "seen-1-worker-0", "--for", "running", "--timeout", "60s")
    assert plane.ok("get", "seen-1-worker-0", "-o", "name") == "pod/seen-1-worker-0\n"
    assert plane.ok("get", "seen", "-o", "name") == "job/seen-0\njob/seen-1\n"
    assert "State:" in plane.ok("describe", "seen-1-worker-0")
    page = json.loads(plane.ok("describe", "seen-1-worker-0", "-o", "json"))
    assert page["object"]["kind"] == "Pod"
    told = json.loads(plane.ok("explain", "seen-1-worker-0", "-o", "json"))
    assert told["name"] == "pod/seen-1-worker-0"
    for command in ("describe", "explain", "scale"):
        more = ("2",) if command == "scale" else ()
        refused = plane.run(command, "seen", *more)
        assert "seen is an array of 2 jobs" in refused.stderr
        assert "seen-0, seen-1" in refused.stderr
    assert plane.run("get", "job/seen-1-worker-0").returncode == 1
    plane.ok("delete", "seen")
