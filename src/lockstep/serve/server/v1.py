"""The v1 protocol: ``{"instances": [...]}`` to ``{"predictions": [...]}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from lockstep.serve.server.inputs import Unfit

Array = np.ndarray[Any, Any]


class Request(msgspec.Struct):
    """What a client sends."""

    instances: list[Any] | None = None
    inputs: list[Any] | None = None


_decoder = msgspec.json.Decoder(Request)


def inputs(body: bytes) -> dict[str, Array]:
    """Return the instances as an array, or as one for each name where they are objects.

    Raises:
        Unfit: when the body is malformed or the instances differ in shape.
    """
    try:
        found = _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise Unfit(f'the body must be like {{"instances": [[1.0, 2.0]]}}: {error}') from error
    given = found.instances if found.instances is not None else found.inputs
    if given is None:
        raise Unfit('"instances" is missing: a list with one entry for each prediction')
    if given and isinstance(given[0], dict):
        names = list(given[0])
        if any(not isinstance(one, dict) or list(one) != names for one in given):
            raise Unfit("the instances differ in their names")
        return {name: _array([one[name] for one in given]) for name in names}
    return {"input-0": _array(given)}


def _array(given: list[Any]) -> Array:
    try:
        array = np.asarray(given)
    except (ValueError, OverflowError) as error:
        raise Unfit(f"the instances differ in shape: {error}") from error
    if array.dtype == object:
        raise Unfit("the instances differ in shape or type, or are objects")
    return array


def answer(found: Mapping[str, Array]) -> bytes:
    """Return the predictions as a body; those of several outputs by their names."""
    if len(found) == 1:
        (only,) = found.values()
        return msgspec.json.encode({"predictions": only.tolist()})
    columns = {name: one.tolist() for name, one in found.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return msgspec.json.encode({"predictions": rows})
