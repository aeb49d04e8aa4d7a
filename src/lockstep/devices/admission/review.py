"""What becomes of a pod with a share of GPUs as it is created."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from lockstep.api import names
from lockstep.api.containers import ResourceRequirements
from lockstep.api.wire import Json
from lockstep.compat.shares.settings import Settings
from lockstep.compat.shares.translate import DEFAULT_SCHEDULERS, CardMemory, translated
from lockstep.compat.translation import Refused
from lockstep.devices.kubelet.places import LIBRARIES
from lockstep.devices.sharing.core.asks import BadAsk, asked

_VARIABLE: Final = "LD_LIBRARY_PATH"
_SHARES: Final = (names.GPU_MEMORY, names.GPU_COMPUTE)


class Rejected(Exception):
    """A pod is not let in; the message names field, value and remedy."""


def review(
    request: Json, card_memory: CardMemory, settings: Callable[[], Settings]
) -> tuple[list[Json], str]:
    """Return the JSON patch for the pod of an AdmissionReview's *request*, or why it is refused."""
    pod = request.get("object")
    if not isinstance(pod, dict) or not isinstance(pod.get("spec"), dict):
        return [], ""
    try:
        ours = admitted(pod, card_memory, settings)
    except Rejected as rejected:
        return [], str(rejected)
    patch = [{"op": "replace", "path": "/spec", "value": ours["spec"]}]
    if told := (ours.get("metadata") or {}).get("annotations"):
        patch.append({"op": "add", "path": "/metadata/annotations", "value": told})
    return patch, ""


def admitted(pod: Json, card_memory: CardMemory, settings: Callable[[], Settings]) -> Json:
    """Return a pod in our own words, for our scheduler, as a kubelet can hand its shares out.

    Raises:
        Rejected: when what it asks for cannot be held.
    """
    try:
        ours = translated(pod, card_memory, settings) or copy.deepcopy(pod)
    except Refused as refused:
        given = refused.problem
        raise Rejected(f"{given.field}: given {given.given!r}; {given.allowed}") from None
    sharing = list(_sharing(ours))
    if not sharing:
        return ours
    spec = ours["spec"]
    scheduler = spec.get("schedulerName", "")
    if scheduler not in DEFAULT_SCHEDULERS:
        raise Rejected(
            f"spec.schedulerName: given {scheduler!r}; shares of GPUs are given by "
            f"{names.SCHEDULER_NAME}; leave it out"
        )
    spec["schedulerName"] = names.SCHEDULER_NAME
    annotations = (ours.get("metadata") or {}).get("annotations") or {}
    for at, container in sharing:
        _complete(at, container, annotations)
    return ours


def _complete(at: str, container: Json, annotations: dict[str, str]) -> None:
    """Ask for a place on a card, and put the front before what the container says of libraries."""
    try:
        resources = msgspec.convert(container["resources"], ResourceRequirements)
        asked(resources, annotations)
    except (BadAsk, msgspec.ValidationError, ValueError) as error:
        raise Rejected(f"{at}.resources: {error}") from None
    limits = container["resources"].setdefault("limits", {})
    given = container["resources"].get("requests") or {}
    limits.setdefault(names.GPU_CARDS, str(given.get(names.GPU_CARDS, 1)))
    for one in container.get("env") or []:
        if one.get("name") == _VARIABLE and "value" in one:
            one["value"] = f"{LIBRARIES.partition(':')[0]}:{one['value']}"


def _sharing(pod: Json) -> Iterator[tuple[str, Json]]:
    for place in ("initContainers", "containers"):
        for index, one in enumerate(pod["spec"].get(place) or []):
            resources = one.get("resources") or {}
            given = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
            if any(name in given for name in _SHARES):
                yield f"spec.{place}[{index}]", one
