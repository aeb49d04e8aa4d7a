"""From lines of logs to one verdict: what, where, whose fault, how sure, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from lockstep.api.diagnosis import LONGEST_LINE, Diagnosis, Place
from lockstep.api.node_health import Finding
from lockstep.health.core.findings import LONGEST_SCANNED, cause_of
from lockstep.health.core.lines import NO_RANK, YEARLESS, Hit, Line
from lockstep.health.core.places import devices_of, node_of, rank_of
from lockstep.health.core.precedence import precedence
from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import match
from lockstep.health.core.signatures.kernel import OF_MEMORY
from lockstep.health.core.watchdogs import of_watchdogs

MOST_EVIDENCE: Final = 5
NO_PLACE: Final = "observe: no line names the node; pass --logs with one file a node"
MOST_PLACED: Final = 64
MOST_HITS: Final = 2000
"""Hits that are weighed against each other; a log that has more of them repeats itself."""
SURE: Final = 0.8
LITTLE: Final = 0.5
"""Confidence below which a verdict on a log is hardly one."""
EARLIER: Final = 0.7
"""What is left of the confidence that it is the user's error, where the same went well before."""
_INFORMS: Final = re.compile(r"\b(?:INFO|DEBUG|info|debug)\b")
_FINAL: Final = 0.05
"""What one more rank, or one less, changes of the confidence."""


def hits(lines: Iterable[Line]) -> list[Hit]:
    """Return what of *lines* fits a signature, the first so many of them.

    A line that goes on in the next, which is indented or of the driver too, is looked at with it.
    """
    found: list[Hit] = []
    before = ""
    for order, line in enumerate(lines):
        whole, text = line, line.text[:LONGEST_SCANNED]
        signature = match(text)
        if signature is None and before and (text[:1].isspace() or "NVRM:" in text):
            joined = f"{before} {text.strip()}"
            signature = match(joined)
            if signature is not None:
                whole = replace(line, text=joined)
        before = text if signature is None else ""
        if signature is not None and not _says_nothing(line, signature):
            found.append(Hit(whole, signature, order))
            if len(found) >= MOST_HITS:
                break
    return _of_one_clock(found)


def _says_nothing(line: Line, signature: Signature) -> bool:
    """Say whether a line that fits is of a killed process and unsure, or only informs."""
    if line.killed and (signature.verdict.tier or signature.verdict.confidence < SURE):
        return True
    return signature.verdict.confidence < LITTLE and bool(_INFORMS.search(line.text[:200]))


def _of_one_clock(found: list[Hit]) -> list[Hit]:
    """Return *found* without the times that name no year, where others do."""
    if not any(hit.line.at is not None and hit.line.at > YEARLESS for hit in found):
        return found
    return [
        hit
        if hit.line.at is None or hit.line.at > YEARLESS
        else Hit(replace(hit.line, at=None), hit.signature, hit.order)
        for hit in found
    ]


def diagnose(lines: Iterable[Line]) -> Diagnosis:
    """Return the verdict on *lines*; "cannot tell", with what is missing, where none fits.

    Of what explains itself a fault of the machines precedes, then what came first; where nothing
    does, the first of what says little, and what collectives wait for; last what only follows.
    """
    found = hits(lines)
    if not found:
        return unknown("no line fits any known fault", "the end of each rank's log")
    first = min(found, key=precedence(found))
    if not first.signature.verdict.tier:
        return _verdict(first, found)
    if first.signature.verdict.action == "observe" and (
        stalled := of_watchdogs(hit.line for hit in found)
    ):
        return stalled
    if first.signature.verdict.tier == 2 and first.signature.verdict.class_ == "unknown":
        return unknown(
            f"only what follows from another fault: {first.signature.cause}",
            "the log of the rank that failed first, and its node's kernel log",
            _evidence(found, first),
        )
    return _verdict(first, found)


def unknown(why: str, missing: str, evidence: Sequence[str] = ()) -> Diagnosis:
    """Return that it cannot be told, and what is missing for that."""
    return Diagnosis(cause=f"cannot tell: {why}; missing: {missing}", evidence=list(evidence))


def _verdict(first: Hit, found: list[Hit]) -> Diagnosis:
    signature = first.signature
    same = [one for one in found if one.signature is signature]
    ranks = sorted({one.line.rank for one in same} - {NO_RANK})
    sure = signature.verdict.confidence
    if len(ranks) > 1 and signature.verdict.class_ == "user":
        sure = min(0.99, sure + _FINAL)
    place = _place(same, ranks)
    action: str = signature.verdict.action
    if action in ("isolate_node", "reset_gpu") and place == Place():
        file = next((one.line.file for one in same if one.line.file), "")
        action = f"{action}: on the node that wrote {file}" if file else NO_PLACE
    return Diagnosis(
        class_=signature.verdict.class_,
        cause=cause_of(signature, first.line.text),
        action=action,
        place=place,
        confidence=round(sure, 2),
        evidence=_evidence(found, first),
    )


def _place(same: Sequence[Hit], ranks: list[int]) -> Place:
    """Return where the fault is, as its lines name it; a user's error has no device."""
    nodes = {hit.line.node or node_of(hit.line.text) for hit in same} - {""}
    said = {rank_of(hit.line.text) for hit in same if hit.line.rank == NO_RANK} - {None}
    devices: dict[str, None] = {}
    if same[0].signature.verdict.class_ not in ("user", "unknown"):
        for hit in same[:MOST_PLACED]:
            devices |= dict.fromkeys(devices_of(hit.line.text))
    return Place(
        nodes=sorted(nodes),
        ranks=sorted({*ranks, *(rank for rank in said if rank is not None)}),
        devices=sorted(devices),
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


def with_findings(
    verdict: Diagnosis, findings: Iterable[tuple[str, Finding]], killed: bool = False
) -> Diagnosis:
    """Return the verdict after what is known of the nodes: a sure fault there outranks the log.

    A less sure one does where the log says next to nothing. That a node killed for want of memory
    counts where a rank was *killed*, by signal 9: another job's may have been meant.
    """
    worst = max(
        (
            (node, one)
            for node, one in findings
            if one.action != "observe" and (killed or one.device or one.cause not in OF_MEMORY)
        ),
        key=lambda pair: pair[1].confidence,
        default=None,
    )
    least = LITTLE if verdict.confidence < LITTLE else SURE
    if worst is None or worst[1].confidence < least:
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
