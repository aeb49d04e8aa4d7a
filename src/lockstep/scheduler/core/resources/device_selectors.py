"""CEL selectors of claims and classes, asked of a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from lockstep.api.claims import CounterUse, DeviceTaint, SliceDevice
from lockstep.api.quantity import parse

if TYPE_CHECKING:
    from cel import Program

LONGEST: Final = 10 * 1024
"""Characters of an expression, as upstream bounds them."""
_DOMAIN: Final = re.compile(r"\.(?:attributes|capacity)\s*\[\s*[\"']([^\"']+)[\"']\s*\]")


class SelectorError(ValueError):
    """An expression cannot be read or asked; the message names it."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One device that a claim may get."""

    driver: str
    pool: str
    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """By qualified name: ``gpu.lockstep.dev/model``."""
    capacity: Mapping[str, Fraction] = field(default_factory=dict)
    counters: tuple[CounterUse, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    shared: bool = False
    """Whether several claims may have it, as far as its capacity goes."""
    answers: dict[str, bool] = field(default_factory=dict)
    """What each selector said of it."""

    @property
    def id(self) -> tuple[str, str, str]:
        """Return what no other device is called."""
        return self.driver, self.pool, self.name

    @classmethod
    def of(cls, driver: str, pool: str, device: SliceDevice) -> Candidate:
        """Read it from a slice.

        Raises:
            ValueError: when a capacity is not a quantity.
        """
        attributes = {qualified(k, driver): v.value for k, v in device.attributes.items()}
        capacity = {qualified(k, driver): parse(str(v.value)) for k, v in device.capacity.items()}
        return cls(
            driver,
            pool,
            device.name,
            attributes,
            capacity,
            tuple(device.consumes_counters),
            tuple(device.taints),
            device.allow_multiple_allocations,
        )


def qualified(name: str, driver: str) -> str:
    """Return an attribute's name with its domain; without one it is the driver's."""
    return name if "/" in name else f"{driver}/{name}"


def selects(expression: str, device: Candidate) -> bool:
    """Return whether an expression holds of a device.

    Raises:
        SelectorError: when it cannot be read, or asks for what the device does not have.
    """
    known = device.answers.get(expression)
    if known is None:
        known = device.answers[expression] = _ask(expression, device)
    return known


def _ask(expression: str, device: Candidate) -> bool:
    import cel

    program, functions = _program(expression)
    domains = (device.driver, *_DOMAIN.findall(expression))
    seen = {
        "driver": device.driver,
        "allowMultipleAllocations": device.shared,
        "attributes": _by_domain(device.attributes, domains),
        "capacity": _by_domain({k: str(v) for k, v in device.capacity.items()}, domains),
    }
    try:
        found = program.execute(cel.Context(variables={"device": seen}, functions=functions))
    except Exception as error:
        text = str(error).strip("'\"")
        raise SelectorError(f"{expression}: of device {device.name}: {text}") from None
    if not isinstance(found, bool):
        raise SelectorError(f"{expression} is {found!r}; it must be true or false")
    return found


@lru_cache(maxsize=1024)
def _program(expression: str) -> tuple[Program, dict[str, Callable[..., Any]]]:
    import cel

    if len(expression) > LONGEST:
        raise SelectorError(f"an expression of {len(expression)} characters; {LONGEST} may be")
    try:
        program = cel.compile(expression)
    except ValueError as error:
        raise SelectorError(f"{expression}: {error}") from None
    used = program.functions()
    return program, {name: _FUNCTIONS[name] for name in used if name in _FUNCTIONS}


def _by_domain(values: Mapping[str, Any], domains: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return the values by domain; a domain that is asked for and not there is empty."""
    found: dict[str, dict[str, Any]] = {one: {} for one in domains}
    for name, value in values.items():
        domain, _, short = name.partition("/")
        found.setdefault(domain, {})[short] = value
    return found


def _compare(one: object, other: object) -> int:
    """Compare quantities, or versions: what they are is told by how they are written."""
    left, right = _ordered(str(one)), _ordered(str(other))
    return (left > right) - (left < right)


def _ordered(text: str) -> tuple[int | Fraction, ...]:
    if text.count(".") == 2:
        return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0])[:3])
    return (Fraction(text),)


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": lambda text: str(parse(text)),
    "semver": lambda text, normalize=False: _semver(text, normalize=normalize),
    "compareTo": _compare,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
}


def _semver(text: str, *, normalize: bool) -> str:
    parts = text.removeprefix("v").split(".") if normalize else text.split(".")
    parts += ["0"] * (3 - len(parts)) if normalize else []
    if len(parts) < 3:
        raise ValueError(f"{text!r} is not a version; write 1.2.3")
    return ".".join(str(int(one)) if one.isdigit() else one for one in parts)
