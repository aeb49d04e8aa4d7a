"""Which images the pods of a team may have: the rule, and the admission policy that holds it.

The embedded API server follows the rule itself. On clusters a ValidatingAdmissionPolicy (Kubernetes
1.30 and newer) does, for the namespaces that bear the label of a team; the Team is its parameter,
so that no controller needs rights on policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lockstep.api.admission_policy import rule, validating
from lockstep.api.names import API_VERSION, TEAM_LABEL
from lockstep.api.wire import Json

NAME: Final = "lockstep-team-images"
_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
_FITS: Final = (
    "params.spec.images.exists(p, p.endsWith('*')"
    " ? c.image.startsWith(p.substring(0, p.size() - 1))"
    " : (c.image == p || c.image.startsWith(p + ':') || c.image.startsWith(p + '@')))"
)


def fits(image: str, patterns: Sequence[str]) -> bool:
    """Return whether an image is one of *patterns*: itself, with any tag, or by a ``*`` at the end.

    *Example:* ``registry/vision/*`` fits ``registry/vision/train:3``; ``python`` fits
    ``python:3.12`` and not ``python-evil``.
    """
    return any(
        image.startswith(one[:-1])
        if one.endswith("*")
        else image == one or image.startswith((f"{one}:", f"{one}@"))
        for one in patterns
    )


def refused(spec: Json, team: str, patterns: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the field, image and remedy of the first image that a *team*'s pod may not have."""
    for field, image in _images(spec):
        if not fits(image, patterns):
            return field, image, remedy(team, ", ".join(patterns))
    return None


def remedy(team: str, patterns: str) -> str:
    """Return what to do about an image that is not allowed."""
    return (
        f"team {team} allows: {patterns}; take one of these, or add it to spec.images of the Team"
    )


def _images(spec: Json) -> Iterator[tuple[str, str]]:
    for part in _LISTS:
        for number, one in enumerate(spec.get(part) or []):
            yield f"spec.{part}[{number}].image", str(one.get("image") or "")


def objects() -> list[Json]:
    """Return the policy and its binding.

    Where the kind of Teams is gone, the server refuses all pods of teams, and no others.
    """
    of_teams = {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]}
    return validating(
        NAME,
        [rule("", "pods", "pods/ephemeralcontainers", version="v1")],
        {"wrong": _wrong()},
        "variables.wrong.size() == 0",
        _message(),
        namespaces=of_teams,
        parameters={"apiVersion": API_VERSION, "kind": "Team"},
        matchResources={"namespaceSelector": of_teams},
    )


def _wrong() -> str:
    """Return the expression of the images that the team of a pod's namespace does not allow."""
    lists = " + ".join(
        f"(has(object.spec.{part}) ? object.spec.{part}.filter(c, !has(c.image) || !{_FITS})"
        ".map(c, has(c.image) ? c.image : '') : [])"
        for part in _LISTS
    )
    mine = f"namespaceObject.metadata.labels['{TEAM_LABEL}'] == params.metadata.name"
    return f"{mine} && has(params.spec.images) ? ({lists}) : []"


def _message() -> str:
    words = remedy("\x00", "\x01").replace("\x00", "' + params.metadata.name + '")
    words = words.replace("\x01", "' + params.spec.images.join(', ') + '")
    return f"'image ' + variables.wrong.join(', ') + ' is not allowed; {words}'"
