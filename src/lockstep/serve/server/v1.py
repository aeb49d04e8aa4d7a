"""The v1 protocol: ``{"instances": [...]}`` to ``{"predictions": [...]}``."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from lockstep.serve.server.repository import Array, Unfit


class Request(msgspec.Struct):
    """What a client sends."""

    instances: list[Any] | None = None
    inputs: list[Any] | None = None


_decoder = msgspec.json.Decoder(Request)


def rows(body: bytes) -> Array:
    """Return the instances as an array.

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
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise Unfit(f"the instances differ in shape: {error}") from error
    if array.dtype == object:
        raise Unfit("the instances differ in shape or type, or are objects")
    return array


def answer(found: Array) -> bytes:
    """Return the predictions as a body."""
    return msgspec.json.encode({"predictions": found.tolist()})
