"""The canonical form of quantities, in which they are stored and shown."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from lockstep.api.quantity import parse

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_SMALLEST = Fraction(1, 10**9)


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """Return the quantity *text* as Kubernetes writes it: no fraction, the largest unit.

    The family of the unit stays: powers of two, powers of ten, or an exponent.

    Raises:
        ValueError: when it is not a quantity.
    """
    value = parse(text)
    if value % _SMALLEST:
        # Finer than a billionth rounds away from zero.
        steps = -(-abs(value) // _SMALLEST)
        value = steps * _SMALLEST * (1 if value > 0 else -1)
    if text.rstrip("0123456789+-")[-1:] in ("e", "E") and text[-1:].isdigit():
        mantissa, exponent = _scientific(value)
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return written(value, binary=text.endswith("i"))


def written(value: Fraction, *, binary: bool = False) -> str:
    """Return a multiple of a billionth in its canonical form, in powers of two or of ten."""
    if binary and not (-1024 < value < 1024) and value.denominator == 1:
        return _in_powers(value.numerator, 1024, _BINARY)
    mantissa, exponent = _scientific(value)
    return f"{mantissa}{_DECIMAL[exponent]}"


def _scientific(value: Fraction) -> tuple[int, int]:
    """Return mantissa and exponent, which is a multiple of three."""
    exponent = -9
    mantissa = (value / _SMALLEST).numerator
    while mantissa and mantissa % 1000 == 0 and exponent < 18:
        mantissa //= 1000
        exponent += 3
    return mantissa, exponent if mantissa else 0


def _in_powers(value: int, base: int, suffixes: tuple[str, ...]) -> str:
    step = 0
    while value and value % base == 0 and step + 1 < len(suffixes):
        value //= base
        step += 1
    return f"{value}{suffixes[step]}"
