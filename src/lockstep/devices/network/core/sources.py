"""What tools print of an Ethernet fabric: lldpd's JSON and NetQ's JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lockstep.devices.network.core.fabric import Cable, End, Fabric, Fault

LONGEST_NAME: Final = 253


class Unreadable(ValueError):
    """The text is not what it was said to be; the message names what is missing."""


def lldp(text: str, node: str = "") -> Fabric:
    """Return the fabric that lldpd tells of as JSON.

    The text is what ``lldpcli -f json show neighbors`` prints on *node*, or an object of such
    answers by the name of the device that gave them. Devices that gave none are known by what
    others see of them. Those that bridge are switches.

    Raises:
        Unreadable: when it is no such JSON.
    """
    tree = _json(text)
    if not isinstance(tree, dict):
        raise Unreadable("no object; give it what lldpcli -f json show neighbors prints")
    told = {node or "localhost": tree} if "lldp" in tree else tree
    fabric = Fabric()
    seen: Counter[tuple[End, End]] = Counter()
    asked = set(told)
    bridges: set[str] = set()
    names: set[str] = set()
    for device, answer in told.items():
        if not isinstance(answer, dict) or "lldp" not in answer:
            raise Unreadable(f"{device}: no key 'lldp'")
        names.add(device)
        for local, far, port, bridge, rate in _neighbours(answer["lldp"]):
            names.add(far)
            if bridge:
                bridges.add(far)
            low, high = sorted((End(device, local), End(far, port)))
            seen[low, high] += 1
            fabric.cables.append(Cable(low, high, rate))
    fabric.switches = bridges & names
    fabric.hosts = names - bridges
    fabric.faults = one_sided(
        {ends: n for ends, n in seen.items() if {e.device for e in ends} <= asked}
    )
    return fabric


def _neighbours(tree: Any) -> Iterator[tuple[str, str, str, bool, str]]:
    """Yield local port, neighbour, its port, whether it bridges, and the link's rate if stated."""
    for one in _listed(_under(tree, "interface")):
        named = (
            [one]
            if "chassis" in one
            else [{"name": name, **inner} for name, inner in one.items() if isinstance(inner, dict)]
        )
        for about in named:
            if str(about.get("via", "LLDP")) != "LLDP":
                continue
            for chassis in _listed(about.get("chassis")):
                name, body = _chassis(chassis)
                ports = _listed(about.get("port"))
                if name and len(name) <= LONGEST_NAME:
                    far, rate = (_port(ports[0]), _rate(ports[0])) if ports else ("", "")
                    yield str(about.get("name", "")), name, far, _bridges(body), rate


def _chassis(tree: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return a chassis' name, or its id where it states none."""
    for name, body in tree.items():
        if isinstance(body, dict) and name not in ("id", "capability"):
            return name, body
    stated = _value(tree.get("name"))
    return stated or _value(tree.get("id")), tree


def _bridges(body: Mapping[str, Any]) -> bool:
    return any(
        str(one.get("type", "")).lower() == "bridge" and one.get("enabled") is True
        for one in _listed(body.get("capability"))
    )


def _port(tree: Mapping[str, Any]) -> str:
    for one in _listed(tree.get("id")):
        if one.get("type") in ("ifname", "local"):
            return _value(one)
    return _value(tree.get("descr")) or _value(tree.get("id"))


def _rate(tree: Mapping[str, Any]) -> str:
    """Return the medium that a port runs, as ``100GbaseCR4``; ``show neighbors details`` has it."""
    negotiated = _listed(tree.get("auto-negotiation"))
    return _value(negotiated[0].get("current")).partition(" - ")[0] if negotiated else ""


def _value(tree: Any) -> str:
    """Return a text as lldpd's three shapes of JSON write it."""
    if isinstance(tree, list):
        return _value(tree[0]) if tree else ""
    if isinstance(tree, dict):
        return _value(tree.get("value"))
    return tree if isinstance(tree, str) else ""


def netq(text: str) -> Fabric:
    """Return the fabric that ``netq show lldp json`` tells of.

    Raises:
        Unreadable: when it is no such JSON.
    """
    tree = _json(text)
    rows = _listed(_under(tree, "lldp")) if isinstance(tree, dict) else _listed(tree)
    fabric = Fabric()
    seen: Counter[tuple[End, End]] = Counter()
    asked = {str(one.get("hostname", "")) for one in rows}
    for one in rows:
        ends = []
        for device, port in (("hostname", "ifname"), ("peerHostname", "peerIfname")):
            name = one.get(device) or one.get(_snake(device))
            far = one.get(port) or one.get(_snake(port)) or ""
            if not isinstance(name, str) or not name:
                raise Unreadable(f"an entry without {device}: {json.dumps(one)[:100]}")
            ends.append(End(name, str(far)))
        low, high = sorted(ends)
        seen[low, high] += 1
        fabric.cables.append(Cable(low, high))
    if not rows:
        raise Unreadable("no entries under 'lldp'; give it what netq show lldp json prints")
    ports = Counter(end.device for cable in seen for end in cable)
    # NetQ does not tell what switches are: those whose ports have a switch's names, or many.
    fabric.switches = {
        end.device for ends in seen for end in ends if re.match(r"(?i)swp|eth.*[/:]", end.port)
    } or {device for device, count in ports.items() if count > 1}
    fabric.hosts = set(ports) - fabric.switches
    fabric.faults = one_sided({e: n for e, n in seen.items() if {x.device for x in e} <= asked})
    return fabric


def _snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)


def one_sided(seen: Mapping[tuple[End, End], int]) -> list[Fault]:
    """Return faults of cables that one of both asked ends does not see."""
    found = []
    for (low, high), count in sorted(seen.items()):
        if count == 1 and low.device != high.device:
            told = "one end sees the other, and the other does not"
            found.append(Fault(kind="one-way", place=str(Cable(low, high)), evidence=told))
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}") from None


def _under(tree: Any, key: str) -> Any:
    if isinstance(tree, list):
        return [inner for one in tree for inner in _listed(_under(one, key))]
    return tree.get(key) if isinstance(tree, dict) else None


def _listed(tree: Any) -> list[dict[str, Any]]:
    """Return the objects of what is a list of them, or one alone."""
    found: Iterable[Any] = tree if isinstance(tree, list) else [tree]
    return [one for one in found if isinstance(one, dict)]
