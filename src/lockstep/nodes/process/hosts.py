"""The names that resolve inside a pod, as the text of its ``/etc/hosts``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstep.nodes.process.spec import HostAlias

DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True)
class Peer:
    """A pod as far as names go."""

    namespace: str
    name: str
    ip: str
    labels: Mapping[str, str] = field(default_factory=dict)
    hostname: str = ""
    subdomain: str = ""
    ready: bool = False


@dataclass(frozen=True, slots=True)
class Backing:
    """A service as far as names go."""

    namespace: str
    name: str
    selector: Mapping[str, str]
    headless: bool
    unready_too: bool = False
    address: str = ""
    """Where its name leads, when it is another name of something that has one address."""

    def selects(self, peer: Peer) -> bool:
        """Tell whether *peer* stands behind the service and may be named."""
        return (
            bool(self.selector)
            and peer.namespace == self.namespace
            and bool(peer.ip)
            and (peer.ready or self.unready_too)
            and all(peer.labels.get(key) == value for key, value in self.selector.items())
        )


def spellings(name: str, namespace: str, *, near: str) -> list[str]:
    """Return the ways to write the service name *name* as seen from the namespace *near*."""
    full = [f"{name}.{namespace}.svc.{DOMAIN}", f"{name}.{namespace}.svc", f"{name}.{namespace}"]
    return [*full, name] if namespace == near else full


def hosts_file(
    me: Peer,
    aliases: Iterable[HostAlias],
    peers: Iterable[Peer],
    services: Iterable[Backing],
    extra: Iterable[tuple[str, str]] = (),
) -> str:
    """Return the text of the hosts file of the pod *me*.

    A headless service gives each of its pods ``hostname.service``, and its own name to all of
    them; a plain service gives its name to one pod, for want of anything that spreads.
    """
    known = sorted(peers, key=lambda peer: (peer.namespace, peer.name))
    lines = ["# Kept by the node; do not edit.", "127.0.0.1\tlocalhost", "::1\tlocalhost"]
    hostname = me.hostname or me.name
    own = [hostname]
    if me.subdomain:
        own = spellings(f"{hostname}.{me.subdomain}", me.namespace, near=me.namespace) + own
    if me.ip:
        lines.append(_line(me.ip, own))
    for service in sorted(services, key=lambda one: (one.namespace, one.name)):
        lines += _service_lines(service, known, me)
    lines += [_line(address, [name]) for address, name in extra]
    lines += [_line(alias.ip, alias.hostnames) for alias in aliases if alias.hostnames]
    return "\n".join(lines) + "\n"


def _service_lines(service: Backing, peers: list[Peer], me: Peer) -> list[str]:
    behind = [peer for peer in peers if service.selects(peer)]
    names = spellings(service.name, service.namespace, near=me.namespace)
    if service.address:
        return [_line(service.address, names)]
    if not service.headless:
        return [_line(behind[0].ip, names)] if behind else []
    lines = []
    for peer in behind:
        if peer.subdomain == service.name and not _same(peer, me):
            host = f"{peer.hostname or peer.name}.{service.name}"
            own = spellings(host, service.namespace, near=me.namespace)
            lines.append(_line(peer.ip, own))
    return lines + [_line(peer.ip, names) for peer in behind]


def _same(peer: Peer, me: Peer) -> bool:
    return (peer.namespace, peer.name) == (me.namespace, me.name)


def _line(address: str, names: Iterable[str]) -> str:
    return address + "\t" + " ".join(names)
