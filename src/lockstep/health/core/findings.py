"""What lines of a node's kernel log say is wrong with it, device by device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from lockstep.api.diagnosis import LONGEST_LINE
from lockstep.api.node_health import MOST_FINDINGS, Finding
from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import fits, match

_PCI: Final = re.compile(r"\b([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\b")
AT_ONCE: Final = 16
LONGEST_SCANNED: Final = 4096
"""Characters of a line that are looked at."""

Key = tuple[str, str]


def pci(address: str) -> str:
    """Return a PCI address without its function, the same however it is written."""
    found = _PCI.search(address)
    if found is None:
        return ""
    domain, bus, slot = found[1].lower().split(":")
    return f"{domain[-4:]}:{bus}:{slot}"


def finding_of(line: str, devices: Mapping[str, str]) -> Finding | None:
    """Return what *line* says is wrong; None where it says nothing.

    *devices* are the node's by their PCI address as ``pci`` writes it: ``gpu/3``.
    """
    if len(line) > LONGEST_SCANNED:
        line = line[:LONGEST_SCANNED]
    signature = match(line, True)
    if signature is None or signature.verdict.kind == "cascade":
        return None
    return Finding(
        cause=cause_of(signature, line),
        class_=signature.verdict.class_,
        action=signature.verdict.action,
        device=_device(line, devices),
        confidence=signature.verdict.confidence,
        evidence=line.strip()[:LONGEST_LINE],
    )


def findings_of(lines: Iterable[str], devices: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what *lines* say is wrong, in order.

    Most lines of a log say nothing: a few at a time are looked at as one text first.
    """
    some: list[str] = []
    for line in lines:
        some.append(line[:LONGEST_SCANNED] if len(line) > LONGEST_SCANNED else line)
        if len(some) == AT_ONCE:
            yield from _of_some(some, devices)
            some.clear()
    yield from _of_some(some, devices)


def _of_some(lines: list[str], devices: Mapping[str, str]) -> Iterator[Finding]:
    if lines and fits("\n".join(lines)):
        for line in lines:
            if (found := finding_of(line, devices)) is not None:
                yield found


def cause_of(signature: Signature, line: str) -> str:
    """Return the cause in words, with what the pattern's first group finds in *line*."""
    if "{}" not in signature.cause:
        return signature.cause
    found = re.search(signature.pattern, line[:LONGEST_SCANNED])
    return signature.cause.replace("{}", (found and found[1]) or "?")


def _device(line: str, devices: Mapping[str, str]) -> str:
    """Return the device that a line is about: the last known one that it names."""
    named = [pci(found) for found in _PCI.findall(line)]
    known = [devices[one] for one in named if one in devices]
    if known:
        return known[-1]
    return named[-1] if named else ""


def merged(known: Iterable[Finding], fresh: Iterable[Finding], now: str) -> list[Finding]:
    """Return the findings after *fresh* ones of the time *now*, at most 64 of them.

    Those that only ask to be observed give way first, then the oldest.
    """
    by_key: dict[Key, Finding] = {key(one): one for one in known}
    for one in fresh:
        before = by_key.get(key(one))
        since, count = (before.since, before.count) if before is not None else (now, 0)
        by_key[key(one)] = replace(one, since=since, last=now, count=count + one.count)
    found = list(by_key.values())
    if len(found) > MOST_FINDINGS:
        by_weight = sorted(found, key=lambda one: (one.action != "observe", one.last))
        kept = {key(one) for one in by_weight[-MOST_FINDINGS:]}
        found = [one for one in found if key(one) in kept]
    return found


def added(pending: dict[Key, Finding], one: Finding) -> None:
    """Count *one* among those that are still to be written."""
    before = pending.get(key(one))
    pending[key(one)] = one if before is None else replace(one, count=before.count + one.count)


def key(one: Finding) -> Key:
    """Return what tells a finding from others of the node."""
    return (one.cause, one.device)
