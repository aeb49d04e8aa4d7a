"""The Open Inference Protocol (v2) over gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import grpc
import numpy as np
from google.protobuf.message import Message

from lockstep import __version__
from lockstep.serve.server import v2
from lockstep.serve.server.inputs import TYPES, Unfit
from lockstep.serve.server.repository import Failed, Repository, Unknown
from lockstep.serve.wire import open_inference_pb2 as wire

Array = np.ndarray[Any, Any]
Context = Any

SERVICE: Final = "inference.GRPCInferenceService"
MOST_BYTES: Final = 64 << 20
_FIELDS: Final = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


async def serve(repository: Repository, host: str, port: int) -> grpc.aio.Server:
    """Serve the models of *repository* at *port*.

    Raises:
        RuntimeError: when the port cannot be had.
    """
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", MOST_BYTES)])
    server.add_generic_rpc_handlers((_handlers(_Service(repository)),))
    server.add_insecure_port(f"{host}:{port}")
    await server.start()
    return server


class _Service:
    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    async def server_live(self, _: Message) -> Message:
        return wire.ServerLiveResponse(live=True)

    async def server_ready(self, _: Message) -> Message:
        return wire.ServerReadyResponse(ready=bool(self._repository.names))

    async def model_ready(self, request: wire.ModelReadyRequest) -> Message:
        return wire.ModelReadyResponse(ready=request.name in self._repository.names)

    async def server_metadata(self, _: Message) -> Message:
        extensions = ["binary_tensor_data", "model_repository"]
        return wire.ServerMetadataResponse(
            name="lockstep", version=__version__, extensions=extensions
        )

    async def model_metadata(self, request: wire.ModelMetadataRequest) -> Message:
        found = v2.metadata(self._repository.get(request.name))
        return wire.ModelMetadataResponse(**found)

    async def load(self, request: wire.RepositoryModelLoadRequest) -> Message:
        await self._repository.load(request.model_name)
        return wire.RepositoryModelLoadResponse(model_name=request.model_name, isLoaded=True)

    async def unload(self, request: wire.RepositoryModelUnloadRequest) -> Message:
        self._repository.unload(request.model_name)
        return wire.RepositoryModelUnloadResponse(model_name=request.model_name, isUnloaded=True)

    async def infer(self, request: wire.ModelInferRequest) -> Message:
        model = self._repository.get(request.model_name)
        found = await self._repository.predict(model, inputs(request))
        answer = wire.ModelInferResponse(
            model_name=model.name, model_version=v2.VERSION, id=request.id
        )
        for name, one in v2.chosen([o.name for o in request.outputs], found).items():
            kind = v2.datatype(one)
            output = answer.outputs.add(name=name, datatype=kind, shape=one.shape)
            if request.raw_input_contents or kind not in _FIELDS:
                answer.raw_output_contents.append(v2.raw(one))
            elif kind == "BYTES":
                output.contents.bytes_contents.extend(str(o).encode() for o in one.ravel())
            else:
                getattr(output.contents, _FIELDS[kind]).extend(one.ravel().tolist())
        return answer


def inputs(request: wire.ModelInferRequest) -> dict[str, Array]:
    """Return the tensors of a request by name.

    Raises:
        Unfit: when one is malformed.
    """
    raws = list(request.raw_input_contents)
    if not request.inputs:
        raise Unfit("inputs: at least one tensor is needed")
    if raws and len(raws) != len(request.inputs):
        raise Unfit(f"{len(raws)} raw tensors came for {len(request.inputs)} inputs")
    found: dict[str, Array] = {}
    for number, tensor in enumerate(request.inputs):
        where = f"input {tensor.name!r}"
        if tensor.name in found:
            raise Unfit(f"{where} is given twice")
        if tensor.datatype not in TYPES:
            raise Unfit(f"{where}: datatype {tensor.datatype!r} is not one of {', '.join(TYPES)}")
        shape = list(tensor.shape)
        if not shape or any(size < 0 for size in shape):
            raise Unfit(f"{where}: shape {shape} is none")
        given = raws[number] if raws else None
        found[tensor.name] = _tensor(tensor, shape, given, where)
    return found


def _tensor(tensor: Any, shape: list[int], raw: bytes | None, where: str) -> Array:
    code = TYPES[tensor.datatype]
    if raw is not None and code == "O":
        return v2.strings(raw, shape, where)
    if raw is not None:
        values: Array = _from_raw(raw, code, where)
    elif tensor.datatype not in _FIELDS:
        raise Unfit(f"{where}: {tensor.datatype} goes as a raw tensor alone")
    else:
        listed = getattr(tensor.contents, _FIELDS[tensor.datatype])
        try:
            values = _listed(listed, code)
        except (UnicodeDecodeError, OverflowError) as error:
            raise Unfit(f"{where}: {error}") from error
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise Unfit(f"{where}: shape {shape} does not fit {values.size} values")
    return values.reshape(shape)


def _from_raw(raw: bytes, code: str, where: str) -> Array:
    if len(raw) % np.dtype(code).itemsize:
        raise Unfit(f"{where}: {len(raw)} bytes are no whole number of values")
    return np.frombuffer(raw, code)


def _listed(values: Iterable[Any], code: str) -> Array:
    if code == "O":
        return np.array([one.decode() for one in values], dtype=object)
    return np.array(values, dtype=code)


def _handlers(service: _Service) -> grpc.GenericRpcHandler:
    kinds: dict[str, tuple[Callable[[Any], Awaitable[Message]], type[Message]]] = {
        "ServerLive": (service.server_live, wire.ServerLiveRequest),
        "ServerReady": (service.server_ready, wire.ServerReadyRequest),
        "ModelReady": (service.model_ready, wire.ModelReadyRequest),
        "ServerMetadata": (service.server_metadata, wire.ServerMetadataRequest),
        "ModelMetadata": (service.model_metadata, wire.ModelMetadataRequest),
        "ModelInfer": (service.infer, wire.ModelInferRequest),
        "RepositoryModelLoad": (service.load, wire.RepositoryModelLoadRequest),
        "RepositoryModelUnload": (service.unload, wire.RepositoryModelUnloadRequest),
    }
    return grpc.method_handlers_generic_handler(
        SERVICE, {name: _handler(*pair) for name, pair in kinds.items()}
    )


def _handler(
    answer: Callable[[Any], Awaitable[Message]], kind: type[Message]
) -> grpc.RpcMethodHandler[Any, Any]:
    async def run(request: Any, context: Context) -> Message:
        try:
            return await answer(request)
        except Unknown as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        except (Unfit, Failed) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        raise AssertionError("abort raises")

    return grpc.unary_unary_rpc_method_handler(
        run,
        request_deserializer=kind.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )
