"""What a pod asks of its simulated run, read from its annotations. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.api import names


class WishError(ValueError):
    """An annotation cannot be understood; the message names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How long until the pod starts, how long it runs, and how it ends."""

    start_delay: float
    runtime: float | None
    """None: until it is deleted."""
    fail_rate: float
    fail_now: int | None
    """The exit code with which it must fail at once."""


def read(annotations: Mapping[str, str]) -> Wishes:
    """Return what *annotations* ask for.

    Raises:
        WishError: when one of them is not a number in its range.
    """
    runtime = annotations.get(names.RUNTIME_ANNOTATION)
    command = annotations.get(names.FAIL_ANNOTATION)
    return Wishes(
        start_delay=_number(annotations, names.START_DELAY_ANNOTATION),
        runtime=None if runtime is None else _number(annotations, names.RUNTIME_ANNOTATION),
        fail_rate=_number(annotations, names.FAIL_RATE_ANNOTATION, most=1.0),
        fail_now=None if command is None else _exit_code(command),
    )


def _number(annotations: Mapping[str, str], name: str, most: float = 1e9) -> float:
    text = annotations.get(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise WishError(f"annotation {name} is {text!r}; write a number from 0 to {most:g}")
    return value


def _exit_code(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 255:
        return int(text)
    if text in ("", "true"):
        return 1
    raise WishError(
        f"annotation {names.FAIL_ANNOTATION} is {text!r}; write an exit code from 1 to 255"
    )


@dataclass(frozen=True, slots=True)
class End:
    """When after its start a run ends, and with which exit code."""

    after: float
    exit_code: int


def end_of(wishes: Wishes, seed: str) -> End | None:
    """Return how the run ends, or None when it lasts; *seed* decides what is left to chance.

    A run that fails does so at any time within its runtime.
    """
    if wishes.runtime is None:
        return None
    if wishes.fail_rate:
        rng = random.Random(seed)  # noqa: S311 - a simulation, to be repeated exactly
        if rng.random() < wishes.fail_rate:
            return End(wishes.runtime * rng.random(), 1)
    return End(wishes.runtime, 0)
