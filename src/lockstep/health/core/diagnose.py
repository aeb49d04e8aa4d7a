"""From lines of logs to one verdict: what, where, whose fault, how sure, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from lockstep.api.diagnosis import LONGEST_LINE, Diagnosis, Place
from lockstep.api.node_health import Finding
from lockstep.health.core.findings import LONGEST_SCANNED, cause_of, pci
from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import match

NOBODY: Final = -1
MOST_EVIDENCE: Final = 5
MOST_HITS: Final = 2000
"""Hits that are weighed against each other; a log that has more of them repeats itself."""
SURE: Final = 0.8
EARLIER: Final = 0.7
"""What is left of the confidence that it is the user's error, where the same went well before."""
_FINAL: Final = 0.05
"""What one more rank, or one less, changes of the confidence."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log, with what is known of its origin; ``at`` is in seconds, None unknown."""

    text: str
    node: str = ""
    rank: int = NOBODY
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that fits a signature, and its place among all lines."""

    line: Line
    signature: Signature
    order: int

    @property
    def tier(self) -> int:
        """Return 0 for what explains itself, 1 for what says little, 2 for what follows."""
        if self.signature.cascade:
            return 2
        return 1 if self.signature.weak else 0


def hits(lines: Iterable[Line]) -> list[Hit]:
    """Return what of *lines* fits a signature, the first so many of them."""
    found: list[Hit] = []
    for order, line in enumerate(lines):
        signature = match(line.text[:LONGEST_SCANNED])
        if signature is not None:
            found.append(Hit(line, signature, order))
            if len(found) >= MOST_HITS:
                break
    return found


def diagnose(lines: Iterable[Line]) -> Diagnosis:
    """Return the verdict on *lines*; "cannot tell", with what is missing, where none fits.

    Of what explains itself a fault of the machines precedes, then what came first; where nothing
    does, the surest of what says little; last of all what only follows from other faults.
    """
    found = hits(lines)
    if not found:
        return unknown("no line fits any known fault", "the end of each rank's log")
    first = min(found, key=_precedence)
    if first.tier == 2:
        return unknown(
            f"only what follows from another fault: {first.signature.cause}",
            "the log of the rank that failed first, and its node's kernel log",
            _evidence(found, first),
        )
    return _verdict(first, found)


def unknown(why: str, missing: str, evidence: Sequence[str] = ()) -> Diagnosis:
    """Return that it cannot be told, and what is missing for that."""
    return Diagnosis(cause=f"cannot tell: {why}; missing: {missing}", evidence=list(evidence))


def _precedence(hit: Hit) -> tuple[object, ...]:
    signature = hit.signature
    machine = signature.where == "kernel" and signature.class_ in ("hardware", "storage", "network")
    acts = signature.action != "observe"
    at = hit.line.at if hit.line.at is not None else float("inf")
    if hit.tier == 1:
        return (1, not acts, -signature.confidence, at, hit.order)
    return (hit.tier, not acts, not machine, at, hit.order)


def _verdict(first: Hit, found: list[Hit]) -> Diagnosis:
    signature = first.signature
    same = [one for one in found if one.signature is signature]
    ranks = sorted({one.line.rank for one in same} - {NOBODY})
    sure = signature.confidence
    if len(ranks) > 1 and signature.class_ == "user":
        sure = min(0.99, sure + _FINAL)
    devices = sorted({pci(one.line.text) for one in same} - {""})
    return Diagnosis(
        class_=signature.class_,
        cause=cause_of(signature, first.line.text),
        action=signature.action,
        place=Place(
            nodes=sorted({one.line.node for one in same} - {""}),
            ranks=ranks,
            devices=devices if signature.where == "kernel" else [],
        ),
        confidence=round(sure, 2),
        evidence=_evidence(found, first),
    )


def _evidence(found: list[Hit], first: Hit) -> list[str]:
    """Return the deciding line first, then others of other kinds."""
    lines = [first.line.text.strip()[:LONGEST_LINE]]
    seen = {first.signature.cause}
    for one in found:
        if one.signature.cause not in seen and len(lines) < MOST_EVIDENCE:
            seen.add(one.signature.cause)
            lines.append(one.line.text.strip()[:LONGEST_LINE])
    return lines


def with_earlier(verdict: Diagnosis, job: str) -> Diagnosis:
    """Return the verdict on a user's error after *job*, the same in all, has succeeded before."""
    if verdict.class_ != "user" or not job:
        return verdict
    words = f"{job} with the same spec succeeded: what differs is where, when or the data"
    return structs.replace(
        verdict,
        confidence=round(verdict.confidence * EARLIER, 2),
        evidence=[*verdict.evidence, words][-MOST_EVIDENCE:],
    )


def with_findings(verdict: Diagnosis, findings: Iterable[tuple[str, Finding]]) -> Diagnosis:
    """Return the verdict after what is known of the nodes: a sure fault there outranks the log."""
    worst = max(
        ((node, one) for node, one in findings if one.action != "observe"),
        key=lambda pair: pair[1].confidence,
        default=None,
    )
    if worst is None or worst[1].confidence < SURE:
        return verdict
    node, one = worst
    place = Place(
        nodes=[node], ranks=verdict.place.ranks, devices=[one.device] if one.device else []
    )
    return Diagnosis(
        class_=one.class_,
        cause=one.cause,
        action=one.action,
        place=place,
        confidence=one.confidence,
        evidence=[one.evidence, *verdict.evidence][:MOST_EVIDENCE],
    )
