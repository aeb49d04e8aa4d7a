"""Quantities are exact and round up, as Kubernetes does."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api import quantity


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("1", 1000, 1),
        ("500m", 500, 1),
        ("0.1", 100, 1),
        ("1.5Gi", 1536 * 2**20 * 1000, 1536 * 2**20),
        ("2e3", 2_000_000, 2000),
        ("1E", 10**21, 10**18),
        ("100u", 1, 1),
        (".5", 500, 1),
        ("-1", -1000, -1),
        ("0", 0, 0),
        (8, 8000, 8),
        (0.25, 250, 1),
    ],
)
def test_known_quantities(text: str | int | float, milli: int, whole: int) -> None:
    assert quantity.to_milli(text) == milli
    assert quantity.to_int(text) == whole


@pytest.mark.parametrize("text", ["", "one", "1 Gi", "1gi", "1KiB", "--1", "1e", "1mm", "0x10"])
def test_what_is_no_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity; write a number such as"):
        quantity.parse(text)


@given(st.integers(0, 10**12), st.sampled_from(["", "k", "Ki", "M", "Mi", "Gi"]))
def test_suffixes_scale_exactly(number: int, suffix: str) -> None:
    unit = quantity.parse(f"1{suffix}")
    assert quantity.parse(f"{number}{suffix}") == number * unit
    assert isinstance(quantity.parse(f"{number}{suffix}"), Fraction)
