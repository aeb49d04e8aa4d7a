"""Known differences: the place in an answer, the requests that show it, and why it is so."""

from __future__ import annotations

import re
from typing import Final

OTHER_WORDS: Final = (
    "create of another kind|create not in JSON|list from a broken token|JSON patch, .*"
    "|patch of an unknown type|pod, (a bad quantity|change of a fixed field)"
    "|gang, strategic patch|delete with a wrong uid|a method that is not there"
)
_ADMITTED = "preemptionPolicy|priority|serviceAccount|serviceAccountName"
_BOUND = "pod once bound|list by node|delete a bound pod|delete it at once"

# Faults of ours to be mended are told apart from differences that are meant.
KNOWN: Final[tuple[tuple[str, str, str], ...]] = (
    (
        ".*",
        rf".*\.managedFields\[\d+\]\.fieldsV1\.(f:spec\.f:({_ADMITTED})|f:status)",
        "fault: what admission and the strategies fill in counts as the writer's",
    ),
    (
        "namespace",
        r".*\.managedFields\[\d+\]\.fieldsV1\.f:spec",
        "fault: what admission and the strategies fill in counts as the writer's",
    ),
    (_BOUND, r".*\.managedFields", "fault: as above, and a binding is recorded"),
    (
        ".*",
        r".*\.spec\.serviceAccount(Name)?",
        "meant: the real one runs without ServiceAccount admission here",
    ),
    (".*", r".*\.spec\.tolerations", "meant: nothing here evicts pods from dead nodes yet"),
    (".*", r".*\.conditions\[\d+\]\.lastProbeTime", "meant: null is left out"),
    (".*", r".*\.items\[\d+\]\.(apiVersion|kind)", "meant: items of lists say what they are"),
    (
        "get of an unknown kind|patch of an unknown type|a method.*",
        r"\.body\.details",
        "meant: an empty object is left out",
    ),
    (
        OTHER_WORDS,
        r"\.body\.message|\.body\.details\.causes.*",
        "fault: another wording or more detail",
    ),
    (
        "pod, a bad quantity",
        r"\.status|\.body\.(code|reason|details)",
        "fault: found when validated (422), not when read (400)",
    ),
    (
        "create with a version",
        r"\.status|\.body\.(code|reason)",
        "meant: the caller's fault, so 400 rather than 500",
    ),
    (
        "delete it at once",
        r".*\.deletionGracePeriodSeconds",
        "fault: answered as it was before the deletion",
    ),
    ("delete with a wrong uid", r"\.body\.details\.kind", "fault: resource instead of kind"),
    (
        "a method that is not there",
        r"\.status|\.body\.(code|reason)",
        "fault: 404 instead of 405",
    ),
    ("a path that is not there", r"\.body", "meant: a Status instead of plain text"),
)


def explains(known: tuple[str, str, str], request: str, place: str) -> bool:
    """Return whether a difference at this place of the answer is the *known* one."""
    return bool(re.fullmatch(known[0], request) and re.fullmatch(known[1], place))
