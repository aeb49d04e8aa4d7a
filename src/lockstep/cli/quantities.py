"""Amounts of resources as people give them in flags."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.api import names, quantity

SHORT = {"gpu": names.GPU, "gpus": names.GPU, "mem": names.MEMORY}


def amounts(given: Iterable[str]) -> dict[str, str]:
    """Return ``RESOURCE=AMOUNT`` pairs as a resource list; ``gpu`` is ``nvidia.com/gpu``.

    Raises:
        ValueError: for anything else.
    """
    found: dict[str, str] = {}
    for pair in given:
        name, equals, amount = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"{pair!r} is not RESOURCE=AMOUNT, such as gpu=8")
        if quantity.parse(amount) < 0:
            raise ValueError(f"{pair!r} is negative")
        found[SHORT.get(name, name)] = amount
    return found
