"""Brings a node's addresses, rules, routes and settings to what is wanted, through netlink.

What Lockstep made carries its protocol number in the kernel, so that nothing else is touched, and a
process that was killed between two calls finds what it left behind. Settings that are changed are
first written down, as they were, in a file.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from lockstep.devices.network.core.wanted import Route, Wanted
from lockstep.keys.files import replace_file

PROTOCOL: Final = 213
"""Marks what is Lockstep's; a number that no routing program has in /etc/iproute2/rt_protos."""
PRIORITY: Final = 20100
"""Of its rules: before those of the main table."""
ARP: Final = 0x0806
_FRAME: Final = struct.Struct("!6s6sHHHBBH6s4s6s4s")
Step = tuple[str, Callable[[Any], None]]


@contextmanager
def _opened() -> Iterator[Any]:
    from pyroute2 import IPRoute

    ipr = IPRoute()
    try:
        yield ipr
    finally:
        ipr.close()


def before_file() -> Path:
    """Return where this network namespace's settings are written down as they were."""
    return Path(f"/run/lockstep/network-{Path('/proc/self/ns/net').stat().st_ino}.json")


def bring(wanted: Wanted, before: Path) -> list[str]:
    """Make the kernel hold what is wanted and nothing else of Lockstep's; return what was done.

    Raises:
        OSError: when the kernel refuses, or a setting cannot be written.
    """
    with _opened() as ipr:
        netlink = _steps(ipr, wanted)
        done = []
        for words, act in netlink:
            act(ipr)
            done.append(words)
    done += _set(wanted, before)
    for netdev, address in sorted(wanted.addresses):
        if any(words == f"add {address} to {netdev}" for words in done) and ":" not in address:
            announce(netdev, address.partition("/")[0])
    return done


def _steps(ipr: Any, wanted: Wanted) -> list[Step]:
    """Return the calls that lead from what is to what is wanted, each harmless alone."""
    links = {link.get_attr("IFLA_IFNAME"): link["index"] for link in ipr.get_links()}
    names = {index: name for name, index in links.items()}
    addresses = _addresses(ipr, names)
    rules, routes = _rules(ipr), _routes(ipr, names)
    steps: list[Step] = []
    # What goes is taken in the order in which nothing points to what is gone.
    for rule in sorted(rules - wanted.rules):
        steps.append((f"drop rule from {rule[0]}", _rule("del", rule)))
    for route in sorted(routes - wanted.routes):
        steps.append((f"drop route to {route.network}", _route("del", route, links)))
    for netdev, address in sorted(addresses - wanted.addresses):
        steps.append((f"take {address} from {netdev}", _address("del", address, links[netdev])))
    for netdev, address in sorted(wanted.addresses - addresses):
        if netdev in links:
            steps.append((f"add {address} to {netdev}", _address("add", address, links[netdev])))
    for route in sorted(wanted.routes - routes):
        if route.netdev in links:
            steps.append((f"add route to {route.network}", _route("replace", route, links)))
    for rule in sorted(wanted.rules - rules):
        steps.append((f"add rule from {rule[0]}", _rule("add", rule)))
    return steps


def _address(verb: str, address: str, index: int) -> Callable[[Any], None]:
    plain, _, prefix = address.partition("/")
    given = {"index": index, "address": plain, "prefixlen": int(prefix)}
    marked = {**given, "proto": PROTOCOL} if verb == "add" else given
    return lambda ipr: ipr.addr(verb, **marked)


def _rule(verb: str, rule: tuple[str, int]) -> Callable[[Any], None]:
    given = {"src": rule[0], "table": rule[1], "priority": PRIORITY, "FRA_PROTOCOL": PROTOCOL}
    return lambda ipr: ipr.rule(verb, **given)


def _route(verb: str, route: Route, links: dict[str, int]) -> Callable[[Any], None]:
    given: dict[str, Any] = {"dst": route.network, "table": route.table, "proto": PROTOCOL}
    if route.netdev in links:
        given["oif"] = links[route.netdev]
    if route.gateway:
        given["gateway"] = route.gateway
    else:
        given["scope"] = "link"
    return lambda ipr: ipr.route(verb, **given)


def _addresses(ipr: Any, names: dict[int, str]) -> set[tuple[str, str]]:
    found = set()
    for one in ipr.get_addr():
        if _number(one.get_attr("IFA_PROTO")) == PROTOCOL and one["index"] in names:
            own = one.get_attr("IFA_LOCAL") or one.get_attr("IFA_ADDRESS")
            found.add((names[one["index"]], f"{own}/{one['prefixlen']}"))
    return found


def _number(value: Any) -> int:
    if isinstance(value, bytes):
        return value[0] if value else 0
    if isinstance(value, str):
        return int(value, 16) if value else 0
    return int(value or 0)


def _rules(ipr: Any) -> set[tuple[str, int]]:
    return {
        (one.get_attr("FRA_SRC"), one.get_attr("FRA_TABLE"))
        for one in ipr.get_rules(family=socket.AF_INET)
        if _number(one.get_attr("FRA_PROTOCOL")) == PROTOCOL
    }


def _routes(ipr: Any, names: dict[int, str]) -> set[Route]:
    found = set()
    for one in ipr.get_routes(family=socket.AF_INET):
        if one["proto"] == PROTOCOL:
            network = one.get_attr("RTA_DST")
            found.add(
                Route(
                    one.get_attr("RTA_TABLE"),
                    f"{network}/{one['dst_len']}" if network else "default",
                    names.get(one.get_attr("RTA_OIF"), ""),
                    one.get_attr("RTA_GATEWAY") or "",
                )
            )
    return found


def _set(wanted: Wanted, before: Path) -> list[str]:
    """Write settings; those that were changed and are wanted no more become what they were."""
    known: dict[str, str] = {}
    if before.exists():
        try:
            known = json.loads(before.read_text())
        except ValueError:
            # Half of a file would be worse than none, and cannot be: it is replaced whole.
            known = {}
    done = []
    paths = {
        f"/proc/sys/net/ipv4/conf/{netdev}/{name}": value
        for (netdev, name), value in wanted.settings.items()
    }
    paths |= {f"/sys/class/net/{netdev}/mtu": str(mtu) for netdev, mtu in wanted.mtus.items()}
    fresh = {p: Path(p).read_text().strip() for p in paths if p not in known and Path(p).exists()}
    if fresh:
        known |= fresh
        replace_file(before, json.dumps(known).encode())
    for path, value in sorted(paths.items()):
        if Path(path).exists() and Path(path).read_text().strip() != value:
            Path(path).write_text(value)
            done.append(f"set {path} to {value}")
    over = sorted(set(known) - set(paths))
    for path in over:
        if Path(path).exists():
            Path(path).write_text(known[path])
            done.append(f"set {path} back to {known[path]}")
    if over and paths:
        kept = {p: v for p, v in known.items() if p in paths}
        replace_file(before, json.dumps(kept).encode())
    elif over:
        before.unlink(missing_ok=True)
    return done


def announce(netdev: str, address: str) -> None:
    """Tell neighbours who has *address* now (gratuitous ARP); a netdev that is gone is passed."""
    try:
        with _packets(netdev) as packets:
            mac, own = packets.getsockname()[4], socket.inet_aton(address)
            packets.send(_request(mac, own, own))
    except OSError:
        return


def _packets(netdev: str) -> socket.socket:
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ARP))
    try:
        packets.bind((netdev, ARP))
    except OSError:
        packets.close()
        raise
    return packets


def _request(mac: bytes, own: bytes, about: bytes) -> bytes:
    return _FRAME.pack(b"\xff" * 6, mac, ARP, 1, 0x0800, 6, 4, 1, mac, own, b"\0" * 6, about)
