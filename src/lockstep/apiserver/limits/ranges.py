"""Limit ranges: what each container, pod or claim of a namespace gets at least and at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockstep.api.wire import Json
from lockstep.apiserver.limits.amounts import Amount, Amounts, of_pod, read

ANNOTATION = "kubernetes.io/limit-ranger"
_LISTS = (("initContainers", "init container"), ("containers", "container"))


def fill_in(pod: Json, ranges: Iterable[Json]) -> None:
    """Give the containers of *pod* the requests and limits that they do not name."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    requests, limits = _defaults(ranges)
    if not requests and not limits:
        return
    said = [
        text
        for field, noun in _LISTS
        for container in spec.get(field) or ()
        for text in _fill_in(container, noun, requests, limits)
    ]
    if said:
        notes = pod["metadata"].setdefault("annotations", {})
        notes[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"


def _defaults(ranges: Iterable[Json]) -> tuple[Json, Json]:
    requests: Json = {}
    limits: Json = {}
    for item in _items(ranges, "Container"):
        for given, found in ((item.get("defaultRequest"), requests), (item.get("default"), limits)):
            for name, value in (given or {}).items():
                found.setdefault(name, value)
    return requests, limits


def _fill_in(container: Json, noun: str, requests: Json, limits: Json) -> Iterator[str]:
    if not isinstance(container, dict):
        return
    resources = container.get("resources") or {}
    own_limits = resources.get("limits") or {}
    # A request that is not named is the limit, before anything else is filled in.
    own_requests = {**own_limits, **(resources.get("requests") or {})}
    for side, own, defaults in (
        ("request", own_requests, requests),
        ("limit", own_limits, limits),
    ):
        if new := sorted(defaults.keys() - own.keys()):
            container.setdefault("resources", {})[f"{side}s"] = {**defaults, **own}
            yield f"{', '.join(new)} {side} for {noun} {container.get('name', '')}"


def violations(storage: str, obj: Json, ranges: Iterable[Json]) -> list[str]:
    """Return in which ways *obj* is not within *ranges*; *storage* tells its kind."""
    spec = obj.get("spec") or {}
    if storage == "pods":
        return list(_of_pod(spec, list(ranges)))
    if storage == "persistentvolumeclaims":
        wanted = read((spec.get("resources") or {}).get("requests"))
        items = _items(ranges, "PersistentVolumeClaim")
        return [text for item in items for text in _of_claim(item, wanted)]
    return []


def _of_pod(spec: Json, ranges: list[Json]) -> Iterator[str]:
    containers = [c for field, _ in reversed(_LISTS) for c in spec.get(field) or ()]
    for item in _items(ranges, "Container"):
        for container in containers:
            resources = container.get("resources") or {}
            yield from _check(item, read(resources.get("requests")), read(resources.get("limits")))
    for item in _items(ranges, "Pod"):
        yield from _check(item, of_pod(spec, "requests"), of_pod(spec, "limits"))


def _check(item: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    sort = item.get("type", "")
    for name, least in sorted(read(item.get("min")).items()):
        at = f"minimum {name} usage per {sort} is {least}"
        yield from _said(at, _too_little(least, requests.get(name), limits.get(name)))
    for name, most in sorted(read(item.get("max")).items()):
        at = f"maximum {name} usage per {sort} is {most}"
        yield from _said(at, _too_much(most, requests.get(name), limits.get(name)))
    for name, most in sorted(read(item.get("maxLimitRequestRatio")).items()):
        at = f"{name} max limit to request ratio per {sort} is {most}"
        yield from _said(at, _too_wide(most, requests.get(name), limits.get(name)))


def _said(at: str, why: str) -> Iterator[str]:
    if why:
        yield at + why


def _too_little(least: Amount, request: Amount | None, limit: Amount | None) -> str:
    if request is None:
        return ".  No request is specified"
    if request.value < least.value:
        return f", but request is {request}"
    return f", but limit is {limit}" if limit and limit.value < least.value else ""


def _too_much(most: Amount, request: Amount | None, limit: Amount | None) -> str:
    if limit is None:
        return ".  No limit is specified"
    if limit.value > most.value:
        return f", but limit is {limit}"
    return f", but request is {request}" if request and request.value > most.value else ""


def _too_wide(most: Amount, request: Amount | None, limit: Amount | None) -> str:
    if request is None or not request.value:
        return ", but no request is specified or request is 0"
    if limit is None or not limit.value:
        return ", but no limit is specified or limit is 0"
    ratio = limit.value / request.value
    return f", but provided ratio is {float(ratio):f}" if ratio > most.value else ""


def _of_claim(item: Json, wanted: Amounts) -> Iterator[str]:
    sort = item.get("type", "")
    for name, least in sorted(read(item.get("min")).items()):
        at = f"minimum {name} usage per {sort} is {least}"
        yield from _said(at, _too_little(least, wanted.get(name), None))
    for name, most in sorted(read(item.get("max")).items()):
        at = f"maximum {name} usage per {sort} is {most}"
        given = wanted.get(name)
        if given is None:
            yield f"{at}.  No request is specified"
        elif given.value > most.value:
            yield f"{at}, but request is {given}"


def _items(ranges: Iterable[Json], sort: str) -> Iterator[Json]:
    for one in ranges:
        for item in (one.get("spec") or {}).get("limits") or ():
            if item.get("type") == sort:
                yield item
