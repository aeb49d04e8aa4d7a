"""What clients send, brought to the names, types and shapes that a model takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from lockstep.serve.server.frameworks import Model, Port

Array = np.ndarray[Any, Any]

TYPES: Final = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
    "BYTES": "O",
}
NAMES: Final = {np.dtype(code).str: name for name, code in TYPES.items() if code != "O"}


class Unfit(ValueError):
    """An input that the model cannot take."""


def fit(model: Model, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return *given* under the model's names, in its types.

    One input may bear any name, and the columns of a table may come as several. A model of
    scikit-learn takes any type of number; others get theirs.

    Raises:
        Unfit: when an input is missing, unknown, or of a shape that the model does not take.
    """
    ports = {one.name: one for one in model.inputs}
    if len(ports) == 1:
        found = {next(iter(ports)): _joined(list(given.values()))}
    elif set(given) == set(ports):
        found = {name: given[name] for name in ports}
    elif len(given) == len(ports) and model.framework == "pytorch":
        # Inputs of torch's models have places, not names.
        found = dict(zip(ports, given.values(), strict=True))
    else:
        raise Unfit(f"the model takes the inputs {', '.join(ports)}, not {', '.join(given)}")
    return {name: _typed(model, ports[name], rows) for name, rows in found.items()}


def _joined(arrays: list[Array]) -> Array:
    """Return several inputs as the columns of one."""
    if len(arrays) == 1:
        return arrays[0]
    if not arrays or len({len(one) for one in arrays}) != 1:
        raise Unfit("inputs: all need the same number of rows")
    return np.concatenate([one.reshape(len(one), -1) for one in arrays], axis=1)


def _typed(model: Model, port: Port, rows: Array) -> Array:
    if rows.ndim < 1 or not len(rows):
        raise Unfit("at least one instance is needed")
    sizes = port.shape if model.framework != "pytorch" else ()
    wrong = len(sizes) != rows.ndim or any(
        size not in (-1, there) for size, there in zip(sizes, rows.shape, strict=False)
    )
    if sizes and wrong and not (model.framework == "sklearn" and sizes[-1] == -1):
        shape = list(rows.shape)
        if model.framework == "sklearn":
            raise Unfit(f"the model takes rows of {sizes[-1]} numbers, not shape {shape}")
        raise Unfit(f"input {port.name} takes the shape {list(sizes)} (-1: any), not {shape}")
    if model.framework == "sklearn":
        return rows
    wanted = TYPES[port.datatype]
    if model.framework == "pytorch" and rows.dtype.kind != "f":
        return rows
    try:
        return rows.astype(wanted, copy=False)
    except (TypeError, ValueError) as error:
        raise Unfit(f"input {port.name} takes {port.datatype}: {error}") from error
