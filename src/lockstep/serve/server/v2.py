"""The Open Inference Protocol (v2) over HTTP, with tensors in JSON or in binary."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from lockstep.serve.server.frameworks import Model
from lockstep.serve.server.repository import Array, Unfit

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
_NAMES: Final = {np.dtype(code).str: name for name, code in TYPES.items() if code != "O"}
VERSION: Final = "1"


class Tensor(msgspec.Struct):
    """One input."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any] | None = None
    parameters: dict[str, Any] = {}


class Output(msgspec.Struct):
    """One output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class Request(msgspec.Struct):
    """What a client sends."""

    inputs: list[Tensor]
    id: str = ""
    parameters: dict[str, Any] = {}
    outputs: list[Output] = []

    @property
    def binary(self) -> bool:
        """Tell whether the answer is to be binary."""
        if self.outputs:
            return bool(self.outputs[0].parameters.get("binary_data"))
        return bool(self.parameters.get("binary_data_output"))


_decoder = msgspec.json.Decoder(Request)


def decode(body: bytes, json_length: int | None) -> tuple[Request, Array]:
    """Return the request and its input; *json_length* is set where binary data follow the JSON.

    Raises:
        Unfit: when something in it is malformed; the message names it.
    """
    if json_length is not None and not 0 <= json_length <= len(body):
        raise Unfit(f"Inference-Header-Content-Length: {json_length}: the body has {len(body)}")
    end = len(body) if json_length is None else json_length
    try:
        request = _decoder.decode(memoryview(body)[:end])
    except msgspec.DecodeError as error:
        raise Unfit(f"malformed request: {error}") from error
    if not request.inputs:
        raise Unfit("inputs: at least one tensor is needed")
    arrays = []
    for tensor in request.inputs:
        size = tensor.parameters.get("binary_data_size")
        array, end = _tensor(tensor, body, end, size)
        arrays.append(array)
    if end != len(body):
        raise Unfit(f"{len(body) - end} bytes follow the tensors that no input names")
    return request, _joined(request, arrays)


def _joined(request: Request, arrays: list[Array]) -> Array:
    """Return several inputs as the columns of one."""
    if len(arrays) == 1:
        return arrays[0]
    if len({len(one) for one in arrays}) != 1:
        raise Unfit("inputs: all need the same number of rows")
    return np.concatenate([one.reshape(len(one), -1) for one in arrays], axis=1)


def _tensor(tensor: Tensor, body: bytes, start: int, size: Any) -> tuple[Array, int]:
    where = f"input {tensor.name!r}"
    code = TYPES.get(tensor.datatype)
    if code is None:
        raise Unfit(f"{where}: datatype {tensor.datatype!r} is not one of {', '.join(TYPES)}")
    if any(one < 0 for one in tensor.shape) or not tensor.shape:
        raise Unfit(f"{where}: shape {tensor.shape} is none")
    count = int(np.prod(tensor.shape, dtype=np.int64))
    if size is None:
        return _from_json(tensor, code, count, where), start
    if code == "O":
        raise Unfit(f"{where}: BYTES are taken as JSON alone")
    if not isinstance(size, int) or size != count * np.dtype(code).itemsize:
        raise Unfit(f"{where}: binary_data_size {size} does not fit shape {tensor.shape}")
    if start + size > len(body):
        raise Unfit(f"{where}: {size} bytes were announced, {len(body) - start} came")
    found = np.frombuffer(body, code, count, start).reshape(tensor.shape)
    return found, start + size


def _from_json(tensor: Tensor, code: str, count: int, where: str) -> Array:
    if tensor.data is None:
        raise Unfit(f"{where}: data is missing")
    try:
        found = np.asarray(tensor.data, dtype=code)
    except (ValueError, TypeError, OverflowError) as error:
        raise Unfit(f"{where}: the data are not {tensor.datatype}: {error}") from error
    if found.size != count:
        raise Unfit(f"{where}: shape {tensor.shape} needs {count} values, not {found.size}")
    return found.reshape(tensor.shape)


def answer(model: Model, request: Request, found: Array) -> tuple[bytes, int | None]:
    """Return the body, and the length of its JSON where binary data follow."""
    if found.dtype.kind in "US":
        found = found.astype(object)
    datatype = _NAMES.get(found.dtype.newbyteorder("<").str, "BYTES")
    output: dict[str, Any] = {
        "name": request.outputs[0].name if request.outputs else "output-0",
        "shape": list(found.shape),
        "datatype": datatype,
    }
    binary = request.binary and datatype != "BYTES"
    data = b""
    if binary:
        data = np.ascontiguousarray(found).tobytes()
        output["parameters"] = {"binary_data_size": len(data)}
    else:
        output["data"] = found.ravel().tolist()
    body = {"model_name": model.name, "model_version": VERSION, "outputs": [output]}
    if request.id:
        body["id"] = request.id
    head = msgspec.json.encode(body)
    return head + data, len(head) if binary else None


def metadata(model: Model) -> dict[str, Any]:
    """Return what is known of a model's inputs and outputs."""
    width = model.features if model.features is not None else -1
    return {
        "name": model.name,
        "versions": [VERSION],
        "platform": model.framework,
        "inputs": [{"name": "input-0", "datatype": "FP64", "shape": [-1, width]}],
        "outputs": [{"name": "output-0", "datatype": "INT64", "shape": [-1]}],
    }
