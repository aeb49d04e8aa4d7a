"""The names that resolve inside a pod."""

from __future__ import annotations

import pytest

from lockstep.nodes.process.hosts import Backing, Peer, hosts_file
from lockstep.nodes.process.spec import HostAlias

ME = Peer("n", "w-0", "127.1.0.1", {"job": "j"}, "w-0", "j", ready=True)
OTHER = Peer("n", "w-1", "127.1.0.2", {"job": "j"}, "w-1", "j", ready=True)
UNREADY = Peer("n", "w-2", "127.1.0.3", {"job": "j"}, "w-2", "j")
ELSEWHERE = Peer("m", "w-1", "127.1.0.4", {"job": "j"}, "w-1", "j", ready=True)
HEADLESS = Backing("n", "j", {"job": "j"}, headless=True)


def names(*peers: Peer, services: tuple[Backing, ...] = (HEADLESS,)) -> dict[str, list[str]]:
    """Return the addresses that each name resolves to, in order."""
    found: dict[str, list[str]] = {}
    for line in hosts_file(ME, [], peers, services).splitlines():
        if not line.startswith("#"):
            address, *spelled = line.split()
            for name in spelled:
                found.setdefault(name, []).append(address)
    return found


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("localhost", ["127.0.0.1", "::1"]),
        ("w-0", ["127.1.0.1"]),
        ("w-0.j", ["127.1.0.1"]),
        ("w-0.j.n.svc.cluster.local", ["127.1.0.1"]),
        ("w-1.j", ["127.1.0.2"]),
        ("w-1.j.n", ["127.1.0.2"]),
        ("w-1.j.n.svc", ["127.1.0.2"]),
        ("w-1.j.n.svc.cluster.local", ["127.1.0.2"]),
        ("j", ["127.1.0.1", "127.1.0.2"]),
        ("j.n.svc", ["127.1.0.1", "127.1.0.2"]),
        ("w-1", None),
        ("w-2.j", None),
        ("w-1.j.m", None),
    ],
)
def test_headless_service(name: str, wanted: list[str] | None) -> None:
    assert names(ME, OTHER, UNREADY, ELSEWHERE).get(name) == wanted


def test_unready_pods_are_named_where_the_service_wants_them() -> None:
    eager = Backing("n", "j", {"job": "j"}, headless=True, unready_too=True)
    assert names(ME, UNREADY, services=(eager,))["w-2.j"] == ["127.1.0.3"]


@pytest.mark.parametrize(
    ("service", "name", "wanted"),
    [
        (Backing("n", "web", {"job": "j"}, headless=False), "web", ["127.1.0.1"]),
        (Backing("n", "web", {"job": "x"}, headless=False), "web", None),
        (Backing("n", "web", {}, headless=False), "web", None),
        (Backing("m", "web", {"job": "j"}, headless=False), "web.m.svc", ["127.1.0.4"]),
        (Backing("m", "web", {"job": "j"}, headless=False), "web", None),
    ],
)
def test_plain_service_is_one_pod(service: Backing, name: str, wanted: list[str] | None) -> None:
    assert names(ME, OTHER, ELSEWHERE, services=(service,)).get(name) == wanted


def test_pod_that_is_over_has_no_name() -> None:
    over = Peer("n", "w-1", "", {"job": "j"}, "w-1", "j", ready=True)
    assert "w-1.j" not in names(ME, over)


def test_aliases_and_extra_names_are_added() -> None:
    alias = HostAlias(ip="10.0.0.1", hostnames=["db", "db.local"])
    text = hosts_file(ME, [alias], [], [], [("127.0.0.1", "kubernetes.default.svc")])
    assert "10.0.0.1\tdb db.local\n" in text
    assert "127.0.0.1\tkubernetes.default.svc\n" in text
