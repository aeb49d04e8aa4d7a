"""Known differences: the requests, the places in their answers, and why these are not alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MEANT: Final = "meant"
FAULT: Final = "fault"


@dataclass(frozen=True)
class Refused:
    """A request that the embedded server answers with another status, on purpose."""

    request: str
    ours: int
    theirs: int
    reason: str

    def explains(self, request: str, line: str) -> bool:
        """Return whether *line* belongs to this request and, of statuses, names exactly these."""
        if request != self.request:
            return False
        return not line.startswith(".status") or line == (
            f".status: {self.ours} instead of {self.theirs}"
        )

    @property
    def sort(self) -> str:
        """All of these are meant."""
        return MEANT


REFUSED: Final = (
    Refused("anonymous", 401, 403, "a request without a credential is refused before it is read"),
    Refused("anonymous version", 401, 200, "a request without a credential learns no version"),
    Refused("the root", 404, 200, "there is no list of paths"),
    Refused("kinds' services", 404, 200, "there is no aggregation layer"),
    Refused("an invented method", 400, 405, "the parser refuses a method that HTTP has not"),
)


@dataclass(frozen=True)
class Known:
    """One reason for which answers differ."""

    requests: str
    """Pattern of the names of the requests."""
    places: str
    """Pattern of the places in the answer."""
    sort: str
    """Whether it is meant, or a fault that is still to be mended."""
    reason: str

    def explains(self, request: str, line: str) -> bool:
        """Return whether a difference of a request is this one; a status code never is."""
        place = line.partition(": ")[0]
        if place == ".status":
            return False
        return bool(re.fullmatch(self.requests, request) and re.fullmatch(self.places, place))


_WORDS: Final = r"\.body\.message|\.body\.details\.causes.*"
KNOWN: Final[tuple[Known, ...]] = (
    Known(
        "pod with a token|delete with a negative grace|all pods, at once",
        r"\.body(\.items\[\d+\])?\.spec\.(containers\[0\]\.volumeMounts|volumes)",
        MEANT,
        "no token is mounted into a pod that does not ask for one",
    ),
    Known(
        "pod: of another scheduler|all pods, at once",
        r"\.body(\.items\[\d+\])?\.metadata\.(annotations|managedFields.*)",
        MEANT,
        "the server writes down who created a pod of Lockstep's scheduler, and their groups",
    ),
    Known(
        "jane, without rights: version",
        r"\.body\.(compiler|emulation.*|git.*|goVersion|minCompatibility.*|platform)",
        MEANT,
        "another program answers",
    ),
    Known(
        "watch from the future",
        r"\.body",
        MEANT,
        "a version that was never handed out is gone (410): it is from a store that is lost",
    ),
    Known(
        "discovery of (the core's kinds|the core at once|all .*|networking.*)|POST to discovery",
        r"\.body\.(groups|resources|items)|\.body\.items\[0\]\.versions\[0\]\.resources"
        r"|\.headers\.(Cache-Control|Vary)",
        MEANT,
        "fewer groups and kinds are served",
    ),
    Known(
        "OpenAPI (index|of leases|of Lockstep)",
        r"\.body\..*|\.headers\.(Vary|Content-Type)",
        MEANT,
        "the documents describe what is served, in fewer words and without unused parts",
    ),
    Known(
        "CRD|CRD established|CRD as a table|CRD, a version away|CRD gone",
        r"\.body(\.rows\[0\]\.object)?\.metadata"
        r"\.(finalizers|managedFields|resourceVersion|generation|deletionGracePeriodSeconds)"
        r"|\.body\.status\.(acceptedNames\..*|conditions|storedVersions)",
        MEANT,
        "a CRD is established in the write that creates it, not by controllers after it",
    ),
    Known(
        "a bootstrap role",
        r".*\.managedFields\[0\]\.operation",
        MEANT,
        "the server gathers an aggregated role's rules itself, and updates it",
    ),
    Known(
        "pod: change of (a fixed field|the node)|pod: another command|resize past its path"
        "|apply: what of a pod is fixed|claim, another mode|ephemeral container .*",
        _WORDS,
        MEANT,
        "the same refusal, without the difference of two Go structs at its end",
    ),
    Known(
        "pod: a privileged child|deployment, a bad strategy|budget of both|job, another template"
        "|CRD: of two storage versions|CRD: of a bad rule",
        _WORDS,
        MEANT,
        "the same refusal, showing the value as JSON instead of as a Go struct",
    ),
    Known(
        "job with a selector|CRD: without versions|widget, a wrong status|JSON patch: the kind",
        _WORDS,
        FAULT,
        "refused as well, but not with every cause, or with another one first",
    ),
    Known(
        "aggregated cluster role",
        r".*\.f:rules",
        FAULT,
        "an empty list that was sent has no manager",
    ),
    Known("pod: much said", r"\.headers\.Warning", FAULT, "no warnings about odd pods"),
)


def reason_for(request: str, line: str) -> Known | Refused | None:
    """Return the known reason for a difference, if there is one."""
    return next((known for known in (*REFUSED, *KNOWN) if known.explains(request, line)), None)
