"""Kubernetes quantities (``500m``, ``1.5Gi``, ``2e3``) as exact integers.

Source: the Kubernetes API conventions on resource quantities.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_SUFFIX: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_PATTERN = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?"
)

NOT_NEGATIVE = r"^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?$"
"""Of those what is at least zero, as schemas say it."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Fraction:
    """Return the quantity *text* as an exact number.

    Raises:
        ValueError: when it is not a quantity; the message shows what one looks like.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity; write a number such as 2, 500m, 1.5 or 16Gi")
    number, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _SUFFIX[suffix or ""]
    return Fraction(number) * scale


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def to_int(quantity: str | int | float) -> int:
    """Return the quantity in units (bytes, devices), rounded up as Kubernetes does."""
    return _ceil(parse(str(quantity)))


def to_milli(quantity: str | int | float) -> int:
    """Return the quantity in thousandths (milli-CPUs), rounded up."""
    return _ceil(parse(str(quantity)) * 1000)
