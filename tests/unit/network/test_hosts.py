"""Hosts that become a cluster: what the file says, and which steps are planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.cli.failure import BadInput
from lockstep.cli.hosts import steps
from lockstep.cli.hosts.file import Host, Site, chosen, read, whole
from lockstep.cli.hosts.steps import Facts

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIJ5xUhVSDhvd2AdIpcL2Yq7mPzXHcWvJv0F6vZ8VqH8L"
SITE = whole(Site(hosts=(Host(name="a", address="10.0.0.1"), Host(name="b", address="10.0.0.2"))))
A, B = SITE.hosts
SOUND = {"system": "Linux", "uid": "0", "python": "3.12", "interpreter": "python3", "ip": "yes"}
FILES = {"node.key": "secret"}


def running(planned: list[steps.Step], facts: dict[str, str]) -> dict[str, str]:
    """Return the facts of a host on which the planned services run."""
    found = dict(facts)
    for step in planned:
        if step.name in steps.SERVICES:
            text = step.script.partition(".run <<'END'\n")[2].partition("END\n")[0]
            found[f"service.{step.name}"] = steps.digest(text)
    return found


def test_example_is_read_with_what_all_hosts_share() -> None:
    site = read(Path("examples/network/hosts.yaml"))
    assert [(one.name, one.port, one.pods) for one in site.hosts] == [
        ("gpu-1", 22, "10.77.0.0/24"),
        ("gpu-2", 22, "10.77.1.0/24"),
        ("gpu-3", 2222, "10.77.2.0/24"),
    ]
    assert site.hosts[0].program == "/var/lib/lockstep/venv/bin/lockstep"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hosts: []", "hosts: there is none"),
        ("hosts: [{name: A_b, address: 10.0.0.1}]", "hosts[0].name: 'A_b'"),
        ("hosts: [{name: a, address: far}]", "hosts[0].address: 'far'"),
        ("hosts: [{name: a, address: 10.0.0.1, user: 'a;b'}]", "hosts[0].user: 'a;b'"),
        ("hosts: [{name: a, address: 10.0.0.1, directory: /}]", "hosts[0].directory: '/'"),
        ("hosts: [{name: a, address: 10.0.0.1, directory: /a/../b}]", "hosts[0].directory"),
        ("hosts: [{name: a, address: 10.0.0.1, hostKey: ab}]", "hosts[0].hostKey"),
        ("hosts: [{name: a, address: 10.0.0.1, colour: red}]", "unknown field `colour`"),
        ("hosts: [{name: a}]", "missing required field `address`"),
        (
            "pods: 10.0.0.0/24\nhosts: [{name: a, address: 1.1.1.1}, {name: b, address: 1.1.1.2}]",
            "pods: 10.0.0.0/24 has no /24 for host 2",
        ),
        ("hosts: [{name: a, address: 1.1.1.1}, {name: a, address: 1.1.1.2}]", "'a' is there twice"),
        ("hosts: [{name: a, address: 1.1.1.1, pods: 10.0.0.0/8}]", "hosts[0].pods: 10.0.0.0/8"),
        ("hosts: [", "expected"),
    ],
)
def test_a_wrong_file_is_told_by_field_and_value(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        read(file)
    assert told in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"system": "Darwin"}, "it runs Darwin"),
        ({"uid": "1000"}, "may not use sudo"),
        ({"ip": ""}, "iproute2"),
        ({"python": "3.9"}, "Python is 3.9"),
        ({"python": ""}, "Python is not there"),
    ],
)
def test_what_a_host_lacks_is_said_with_what_mends_it(changed: dict[str, str], told: str) -> None:
    assert steps.missing(Facts(SOUND), A, "1.0", True) == []
    (one,) = steps.missing(Facts(SOUND | changed), A, "1.0", True)
    assert told in one


def test_lockstep_is_installed_where_its_version_is_not_there() -> None:
    there = Facts(SOUND | {"program": "lockstep 1.0"})
    assert steps.program(A, there, "1.0", "x") == []
    for found in (Facts(SOUND), Facts(SOUND | {"program": "lockstep 0.9"})):
        (one,) = steps.program(A, found, "1.0", "lockstep[agent]==1.0")
        assert "python3 -m venv /var/lib/lockstep/venv" in one.script
        assert "pip install -q 'lockstep[agent]==1.0'" in one.script
    (told,) = steps.missing(Facts(SOUND), A, "1.0", False)
    assert "is not there, not 1.0" in told


def test_what_runs_already_is_not_planned_again() -> None:
    first = steps.plane(SITE, Facts(SOUND))
    assert [one.name for one in first] == ["control-plane", "answer"]
    assert steps.plane(SITE, Facts(running(first, SOUND))) == []
    planned = steps.node(SITE, B, Facts(SOUND), FILES)
    assert [one.name for one in planned] == ["credentials", "process-node", "agent"]
    there = running(planned, SOUND) | {"file.node.key": steps.digest("secret")}
    assert steps.node(SITE, B, Facts(there), FILES) == []


@pytest.mark.parametrize(
    ("gone", "planned"),
    [
        ("service.agent", ["agent"]),
        ("service.process-node", ["process-node"]),
        ("file.node.key", ["credentials", "process-node", "agent"]),
    ],
)
def test_a_broken_run_is_taken_up_where_it_ended(gone: str, planned: list[str]) -> None:
    whole_ = running(steps.node(SITE, B, Facts(SOUND), FILES), SOUND)
    whole_["file.node.key"] = steps.digest("secret")
    del whole_[gone]
    assert [one.name for one in steps.node(SITE, B, Facts(whole_), FILES)] == planned


def test_an_added_host_gives_others_routes_to_its_pods() -> None:
    known = running(steps.node(SITE, A, Facts(SOUND), {}), SOUND)
    longer = whole(Site(hosts=(A, B, Host(name="c", address="10.0.0.3"))))
    (one,) = steps.node(longer, A, Facts(known), {})
    assert one.name == "process-node"
    assert "ip route replace 10.77.2.0/24 via 10.0.0.3" in one.script
    assert "addr replace 10.77.0.&/32 dev lo" in one.script


def test_secrets_are_in_no_command_and_only_our_folder_goes() -> None:
    script = steps.node(SITE, B, Facts(SOUND), FILES)[0].script
    assert "secret" not in script
    assert "umask 077" in script
    removed = steps.removed(SITE, B).script
    assert '[ ! -d "$D/service" ] || rm -rf "$D"' in removed
    assert "addr del 10.77.1.&/32 dev lo" in removed


def test_the_host_key_is_the_named_one() -> None:
    scanned = f"# a SSH-2.0\n10.0.0.1 ssh-ed25519 {KEY}\n10.0.0.1 ssh-rsa nonsense!\nhalf a\n"
    _, seen = chosen(scanned, "SHA256:other")
    (shown,) = [one.partition(" ")[0] for one in seen if "ed25519" in one]
    assert chosen(scanned, shown)[0] == f"10.0.0.1 ssh-ed25519 {KEY}"
    assert chosen(scanned, "SHA256:other")[0] == ""
