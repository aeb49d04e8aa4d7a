"""Known differences: the place in an answer, the requests that show it, and why it is so."""

from __future__ import annotations

import re
from typing import Final

OTHER_WORDS: Final = (
    "create of another kind|create not in JSON|list from a broken token|JSON patch, .*"
    "|patch of an unknown type|pod, (a bad quantity|change of a fixed field)"
    "|gang, strategic patch|delete with a wrong uid|a method that is not there"
)
KNOWN: Final[tuple[tuple[str, str, str], ...]] = (
    (".*", r".*\.managedFields.*", "defaults and status set by the server count as the writer's"),
    (
        ".*",
        r".*\.spec\.serviceAccount(Name)?",
        "the real one runs without ServiceAccount admission",
    ),
    (".*", r".*\.spec\.tolerations", "no default tolerations: nothing here evicts from dead nodes"),
    (".*", r".*\.conditions\[\d+\]\.lastProbeTime", "null is left out"),
    (".*", r".*\.items\[\d+\]\.(apiVersion|kind)", "items of lists say what they are"),
    (
        "get of an unknown kind|patch of an unknown type|a method.*",
        r"\.body\.details",
        "an empty object is left out",
    ),
    (OTHER_WORDS, r"\.body\.message|\.body\.details\.causes.*", "another wording or more detail"),
    ("pod, a bad quantity", r"\.body\.details", "found when validated: 422"),
    ("pod once bound|list by node", r".*\.metadata\.generation", "a binding counts as a change"),
    ("create with a version", r"\.status|\.body\.(code|reason)", "the caller's fault, so 400"),
    ("pod, a bad quantity", r"\.status|\.body\.(code|reason)", "found when validated: 422"),
    ("delete it at once", r".*\.deletionGracePeriodSeconds", "answered as it was before"),
    ("delete with a wrong uid", r"\.body\.details\.kind", "resource instead of kind"),
    ("a method that is not there", r"\.status|\.body\.(code|reason)", "such a path has no methods"),
    ("a path that is not there", r"\.body", "a Status instead of plain text"),
)


def is_known(request: str, place: str) -> bool:
    """Return whether a difference at this place of the answer has been explained."""
    return any(
        re.fullmatch(requests, request) and re.fullmatch(places, place)
        for requests, places, _ in KNOWN
    )
