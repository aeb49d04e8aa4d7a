"""The Open Inference Protocol (v2) over HTTP, with tensors in JSON or in binary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np

from lockstep.serve.server.frameworks import Model, Port
from lockstep.serve.server.inputs import NAMES, TYPES, Unfit

Array = np.ndarray[Any, Any]
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

    def binary(self, name: str) -> bool:
        """Tell whether the output *name* is to be binary."""
        for one in self.outputs:
            if one.name == name and "binary_data" in one.parameters:
                return bool(one.parameters["binary_data"])
        return bool(self.parameters.get("binary_data_output"))


_decoder = msgspec.json.Decoder(Request)


def decode(body: bytes, json_length: int | None) -> tuple[Request, dict[str, Array]]:
    """Return the request and its inputs; *json_length* is set where binary data follow the JSON.

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
    arrays: dict[str, Array] = {}
    for tensor in request.inputs:
        if tensor.name in arrays:
            raise Unfit(f"input {tensor.name!r} is given twice")
        size = tensor.parameters.get("binary_data_size")
        arrays[tensor.name], end = _tensor(tensor, body, end, size)
    if end != len(body):
        raise Unfit(f"{len(body) - end} bytes follow the tensors that no input names")
    return request, arrays


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
        if not isinstance(size, int) or not 0 <= size <= len(body) - start:
            raise Unfit(f"{where}: binary_data_size {size} does not fit the body")
        return strings(body[start : start + size], tensor.shape, where), start + size
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


def strings(data: bytes, shape: list[int], where: str) -> Array:
    """Return elements that each stand behind their length in four bytes, as strings.

    Raises:
        Unfit: when they are not as many as *shape* says, or no UTF-8.
    """
    found, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data):
            raise Unfit(f"{where}: the last element is cut off")
        found.append(data[at + 4 : end])
        at = end
    if len(found) != int(np.prod(shape, dtype=np.int64)):
        raise Unfit(f"{where}: shape {shape} needs other than {len(found)} elements")
    try:
        return np.array([one.decode() for one in found], dtype=object).reshape(shape)
    except UnicodeDecodeError as error:
        raise Unfit(f"{where}: an element is no UTF-8: {error}") from error


def datatype(found: Array) -> str:
    """Return the type of an output in the protocol's words."""
    return NAMES.get(found.dtype.newbyteorder("<").str, "BYTES")


def raw(found: Array) -> bytes:
    """Return an output in binary."""
    if datatype(found) != "BYTES":
        return np.ascontiguousarray(found).tobytes()
    texts = [str(one).encode() for one in found.ravel()]
    return b"".join(len(one).to_bytes(4, "little") + one for one in texts)


def chosen(request_names: list[str], found: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs that were asked for; all where none is named.

    Raises:
        Unfit: when one that is asked for is not there.
    """
    if len(request_names) == len(found) == 1:
        # A model with one output has it under any name that the client gives.
        return {request_names[0]: next(iter(found.values()))}
    missing = [name for name in request_names if name not in found]
    if missing:
        raise Unfit(f"outputs: there is no {missing[0]!r}; there are: {', '.join(found)}")
    return {name: found[name] for name in request_names} or dict(found)


def answer(model: Model, request: Request, found: Mapping[str, Array]) -> tuple[bytes, int | None]:
    """Return the body, and the length of its JSON where binary data follow.

    Raises:
        Unfit: when an output is asked for that the model does not have.
    """
    outputs, tail = [], []
    for name, one in chosen([o.name for o in request.outputs], found).items():
        about: dict[str, Any] = {"name": name, "shape": list(one.shape), "datatype": datatype(one)}
        if request.binary(name):
            tail.append(raw(one))
            about["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            about["data"] = one.ravel().tolist()
        outputs.append(about)
    body: dict[str, Any] = {"model_name": model.name, "model_version": VERSION, "outputs": outputs}
    if request.id:
        body["id"] = request.id
    head = msgspec.json.encode(body)
    return head + b"".join(tail), len(head) if tail else None


def metadata(model: Model) -> dict[str, Any]:
    """Return what is known of a model's inputs and outputs."""

    def shown(ports: tuple[Port, ...]) -> list[dict[str, Any]]:
        return [
            {"name": one.name, "datatype": one.datatype, "shape": list(one.shape)} for one in ports
        ]

    return {
        "name": model.name,
        "versions": [VERSION],
        "platform": model.framework,
        "inputs": shown(model.inputs),
        "outputs": shown(model.outputs),
    }
