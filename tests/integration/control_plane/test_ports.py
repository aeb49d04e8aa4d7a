"""Every port of a part stands in docs/security.md, and answers strangers as it says."""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401  another user may not read where Python lies
import http.client
import os
import re
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.support.control_plane import ControlPlane, processes
from tests.support.waiting import eventually_sync

from lockstep.cli.up.parts import RECORDS

ROOT = Path(__file__).parents[3]
NOBODY = 65534


class Row(NamedTuple):
    """A line of the table."""

    part: str
    where: str
    address: str
    speaks: str
    stranger: str

    @property
    def asked(self) -> tuple[str, str]:
        """Return the path that a stranger asks for, and the answer."""
        path, _, answer = self.stranger.partition(" ")
        return path.strip("`"), answer


def row_of(rows: list[Row], part: str, address: str) -> Row | None:
    """Return the line of a part's address: the router takes the next one where it is taken."""
    first, _, last = address.rpartition(".")
    known = "127.0.0.80" if first == "127.0.0" and 80 < int(last) < 100 else address
    return next((r for r in rows if (r.part, r.address.partition(":")[0]) == (part, known)), None)


def table() -> list[Row]:
    text = (ROOT / "docs/security.md").read_text().partition("<!-- ports:")[2]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    known = [Row(*cells[:5]) for cells in rows if len(cells) == 6]
    return [row for row in known if row.where in ("machine", "cluster")]


def listening(data: Path) -> set[tuple[str, str, int]]:
    """Return part, address and port of every socket at which the plane's processes listen."""
    sockets = {**_sockets("tcp"), **_sockets("tcp6")}
    found = set()
    for pid, command in processes(data):
        part = re.search(r"-m lockstep ([a-z-]+)", command)
        with suppress(OSError):
            for fd in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inode = re.fullmatch(r"socket:\[(\d+)\]", str(fd.readlink()))
                    if inode and (at := sockets.get(inode[1])):
                        found.add((part[1] if part else command, *at))
    return found


def _sockets(table: str) -> dict[str, tuple[str, int]]:
    found = {}
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            address, _, port = fields[1].partition(":")
            words = bytes.fromhex(address)
            turned = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
            found[fields[9]] = (str(ip_address(turned)), int(port, 16))
    return found


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(tmp_path_factory.mktemp("up") / "data", "--simulate", "1x8").start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def ports(plane: ControlPlane) -> list[tuple[Row | None, str, str, int]]:
    """What the running plane listens at, with its lines of the table, once all are there."""
    rows = [row for row in table() if row.where == "machine"]

    def found() -> list[tuple[Row | None, str, str, int]]:
        there = listening(plane.data)
        return [(row_of(rows, part, address), part, address, port) for part, address, port in there]

    eventually_sync(lambda: {row for row, *_ in found()} >= set(rows), 60, "every row listens")
    return found()


def test_every_port_of_a_running_plane_is_in_the_table(
    ports: list[tuple[Row | None, str, str, int]],
) -> None:
    unknown = [rest for row, *rest in ports if row is None]
    assert not unknown, "add these to the table of docs/security.md, or close them"


def test_stranger_gets_what_the_table_says(
    ports: list[tuple[Row | None, str, str, int]],
) -> None:
    for row, _, address, port in ports:
        assert row is not None
        path, answer = row.asked
        told = by_another_user(partial(_asked, address, port, path, tls=row.speaks == "TLS"))
        assert told == answer, row


def by_another_user(work: Callable[[], str]) -> str:
    """Do what opens sockets as the user `nobody`; Linux keeps this user by thread."""
    if os.geteuid() != 0:
        pytest.skip("acts as another user: run it as root")

    def call() -> str:
        assert ctypes.CDLL(None).setfsuid(NOBODY) == 0
        return work()

    with ThreadPoolExecutor(max_workers=1) as one:
        return one.submit(call).result()


def _asked(address: str, port: int, path: str, *, tls: bool) -> str:
    """Return the status that a request without a credential gets; ``closed`` where none comes."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection: Any = (
        http.client.HTTPSConnection(address, port, timeout=30, context=context)
        if tls
        else http.client.HTTPConnection(address, port, timeout=30)
    )
    try:
        connection.request("GET", path)
        return str(connection.getresponse().status)
    except (TimeoutError, ssl.SSLError, ConnectionError, http.client.HTTPException):
        return "closed"
    finally:
        connection.close()


def test_its_own_user_reads_metrics_without_a_token(
    ports: list[tuple[Row | None, str, str, int]],
) -> None:
    asked = [(address, port) for row, _, address, port in ports if row and "/metrics" in row.asked]
    assert asked
    for address, port in asked:
        assert _asked(address, port, "/metrics", tls=False) == "200"


def test_logs_and_records_are_read_by_their_user_alone(plane: ControlPlane) -> None:
    kept = [*(plane.data / "log").iterdir(), plane.data / RECORDS, plane.data / "store.db"]
    for path in kept:
        assert path.stat().st_mode & 0o037 == 0, path


def test_every_port_of_the_manifests_is_in_the_table() -> None:
    rows = {(row.part, row.address) for row in table() if row.where == "cluster"}
    found = set()
    for path in (ROOT / "deploy").glob("*.yaml"):
        for obj in filter(None, yaml.safe_load_all(path.read_text())):
            spec = obj.get("spec") or {}
            template = (spec.get("template") or {}).get("spec") or {}
            for container in template.get("containers", []):
                part = obj["metadata"]["name"].removeprefix("lockstep-")
                found |= {(part, str(p["containerPort"])) for p in container.get("ports", [])}
    assert found, "the manifests have ports"
    assert found <= rows, "add these to the table of docs/security.md, or close them"
