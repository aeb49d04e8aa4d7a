"""State is taken apart into tensors and plain values, and put together the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.train.state import NotPlain, put_together, take_apart


class Tensor:
    """Stands for a tensor: state does not look inside."""


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
)


@given(plain)
def test_plain_values_come_back_the_same(value: Any) -> None:
    text, tensors = take_apart(value, lambda one: isinstance(one, Tensor))
    again = put_together(json.loads(json.dumps(text)), [])
    assert again == value
    assert repr(again) == repr(value)
    assert tensors == {}


def test_tensors_are_taken_out_by_their_keys() -> None:
    a, b = Tensor(), Tensor()
    state = {"model": {"w": a}, "optimizer": {"state": {0: {"m": (b, 3)}}}}
    text, tensors = take_apart(state, lambda one: isinstance(one, Tensor))
    assert tensors == {"model.w": a, "optimizer.state.0.m.0": b}
    assert put_together(json.loads(json.dumps(text)), [a, b]) == state


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"a": {1, 2}}, "a is a set"),
        ({"a": [0, object()]}, "a.1 is a object"),
        ({"a": {(1, 2): 3}}, "a has the key (1, 2), a tuple"),
        ({"a": b"bytes"}, "a is a bytes"),
    ],
)
def test_what_is_neither_is_named_by_its_key(state: Any, said: str) -> None:
    with pytest.raises(NotPlain, match=said.replace("(", r"\(").replace(")", r"\)")):
        take_apart(state, lambda _: False)
