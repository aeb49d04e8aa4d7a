"""What containers may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from lockstep.api.quantity import parse
from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.names import qualified_name
from lockstep.apiserver.schema.causes import Cause, forbidden, invalid, required

NOT_NEGATIVE = "must be greater than or equal to 0"
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD = _CONTAINER | {"pods", "storage", "services", "secrets", "configmaps"}
_HUGE_PAGES = "hugepages-"
_NATIVE = "kubernetes.io/"
_NOT_EXTENDED = "doesn't follow extended resource name standard"
_BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def container_amounts(resources: Json, path: str) -> list[Cause]:
    """Return what is wrong with the ``resources`` of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return []
    if _are_fine(_written(limits), _written(requests)):
        return []
    return list(_all_causes(limits, requests, path))


def _written(amounts: Json) -> tuple[tuple[str, str], ...]:
    return tuple([(name, str(given)) for name, given in amounts.items()])


@lru_cache(maxsize=1024)
def _are_fine(limits: tuple[tuple[str, str], ...], requests: tuple[tuple[str, str], ...]) -> bool:
    # Pods come by the hundred from one template; where they stand matters only to the message.
    return not any(True for _ in _all_causes(dict(limits), dict(requests), ""))


def _all_causes(limits: Json, requests: Json, path: str) -> Iterator[Cause]:
    for name, given in limits.items():
        yield from _name(name, f"{path}.limits[{name}]")
        yield from amount(name, given, f"{path}.limits[{name}]")
    for name, given in requests.items():
        yield from _name(name, f"{path}.requests[{name}]")
        yield from amount(name, given, f"{path}.requests[{name}]")
        yield from _against_limit(name, given, limits, path)
    asked = limits.keys() | requests.keys()
    if any(n.startswith(_HUGE_PAGES) for n in asked) and not asked & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")


def amount(name: str, given: Any, path: str) -> Iterator[Cause]:
    """Return what is wrong with an amount of the resource *name*."""
    value = quantity(given)
    if value is None:
        yield invalid(path, given, _BAD_QUANTITY)
        return
    yield from [] if value >= 0 else [invalid(path, str(given), NOT_NEGATIVE)]
    if (name == "pods" or not _is_native(name)) and value.denominator != 1:
        yield invalid(path, str(given), "must be an integer")


def quantity(given: Any) -> Fraction | None:
    """Return *given* as a number, or nothing where it is no quantity."""
    try:
        return parse(str(given))
    except ValueError:
        return None


def _against_limit(name: str, given: Any, limits: Json, path: str) -> list[Cause]:
    can_overcommit = _is_native(name) and not name.startswith(_HUGE_PAGES)
    if name not in limits:
        text = "Limit must be set for non overcommitable resources"
        return [] if can_overcommit else [required(f"{path}.limits", text)]
    value, limit = quantity(given), quantity(limits[name])
    if value is None or limit is None or value == limit:
        return []
    if not can_overcommit:
        text = f"must be equal to {name} limit of {limits[name]}"
    elif value > limit:
        text = f"must be less than or equal to {name} limit of {limits[name]}"
    else:
        return []
    return [invalid(f"{path}.requests", str(given), text)]


def _name(name: str, path: str) -> list[Cause]:
    if name in _CONTAINER:
        return []
    if errors := qualified_name(name):
        causes = [invalid(path, name, error) for error in errors]
        return [*causes, invalid(path, name, _NOT_EXTENDED)] if "/" in name else causes
    if "/" not in name:
        if name.startswith(_HUGE_PAGES):
            return []
        causes = [invalid(path, name, "must be a standard resource for containers")]
        if name not in _STANDARD:
            text = "must be a standard resource type or fully qualified"
            causes.insert(0, invalid(path, name, text))
        return causes
    if not _is_native(name) and name.startswith("requests."):
        return [invalid(path, name, _NOT_EXTENDED)]
    return []


def _is_native(name: str) -> bool:
    return "/" not in name or _NATIVE in name
