"""The model server: each framework, over HTTP and gRPC; several models; bad input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.models import FLOWER, adding_onnx, doubling_torch, floats, iris
from tests.support.waiting import stretched

pytest.importorskip("grpc", reason="needs the serve extra")

import grpc

from lockstep.http.server import HttpServer
from lockstep.serve.server.__main__ import _loader, arguments
from lockstep.serve.server.frameworks import LoadError, find, load
from lockstep.serve.server.grpc_v2 import serve
from lockstep.serve.server.http import BOUNDS, Api
from lockstep.serve.server.repository import Repository
from lockstep.serve.wire import open_inference_pb2 as wire

READ = 30.0
GRPC = "/inference.GRPCInferenceService/"


@asynccontextmanager
async def running(repository: Repository) -> AsyncIterator[int]:
    server = HttpServer(bounds=BOUNDS)
    server.serve(Api(repository).answer)
    try:
        yield await server.bind("127.0.0.1", 0)
    finally:
        await server.close()


async def ask(
    port: int, path: str, body: Any = None, *headers: str, method: str = "POST"
) -> tuple[int, Any]:
    """Return status and body, from JSON where it is some."""
    data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: h", f"Content-Length: {len(data)}", *headers]
    async with asyncio.timeout(stretched(READ)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("\r\ncontent-length: ")[2].partition("\r\n")[0])
        found = await reader.readexactly(length)
        writer.close()
    status = int(head.split(" ")[1])
    return status, found if "octet-stream" in head else json.loads(found)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A directory of three models."""
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    iris(tmp_path / "iris")
    adding_onnx(tmp_path / "adding")
    doubling_torch(tmp_path / "double")
    return tmp_path


async def test_models_of_each_framework_load_answer_and_go(models: Path) -> None:
    options = arguments(["--many", f"--model_dir={models}", "--unknown=1"])
    repository = Repository(_loader(options))
    async with running(repository) as port:
        for name in ("iris", "adding", "double"):
            assert await ask(port, f"/v2/repository/models/{name}/load") == (
                200,
                {"name": name, "load": True},
            )
        pair = [{"left": [1.0, 2.0], "right": [3.0, 4.0]}] * 2
        assert await ask(port, "/v1/models/adding:predict", {"instances": pair}) == (
            200,
            {"predictions": [[4.0, 6.0], [4.0, 6.0]]},
        )
        assert await ask(port, "/v1/models/double:predict", {"instances": [[1.5, 2]]}) == (
            200,
            {"predictions": [[3.0, 4.0]]},
        )
        assert await ask(port, "/v1/models/iris:predict", {"instances": [FLOWER]}) == (
            200,
            {"predictions": [0]},
        )
        assert (await ask(port, "/v2/repository/models/iris/unload"))[0] == 200
        code, said = await ask(port, "/v1/models/iris:predict", {"instances": [FLOWER]})
        assert (code, "adding, double" in said["error"]) == (404, True)
        _, index = await ask(port, "/v2/repository/index")
        assert {one["name"]: one["state"] for one in index} == {
            "adding": "READY",
            "double": "READY",
            "iris": "UNAVAILABLE",
        }


async def test_binary_tensors_go_both_ways(models: Path) -> None:
    repository = Repository()
    repository.add(load("onnx", "adding", str(models / "adding")))
    inputs = [
        {
            "name": name,
            "shape": [1, 2],
            "datatype": "FP32",
            "parameters": {"binary_data_size": 8},
        }
        for name in ("right", "left")
    ]
    wish = [{"name": "sum", "parameters": {"binary_data": True}}]
    head = json.dumps({"inputs": inputs, "outputs": wish}).encode()
    async with running(repository) as port:
        code, said = await ask(
            port,
            "/v2/models/adding/infer",
            head + floats([1, 2]) + floats([3, 4]),
            f"Inference-Header-Content-Length: {len(head)}",
        )
        assert code == 200
        assert said.endswith(floats([4, 6]))
        _, about = await ask(port, "/v2/models/adding", method="GET")
        assert about["inputs"][0] == {"name": "left", "datatype": "FP32", "shape": [-1, 2]}


async def test_bad_input_is_a_named_400(models: Path) -> None:
    repository = Repository()
    repository.add(load("onnx", "adding", str(models / "adding")))

    def tensor(name: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
        return {"name": name, "shape": shape, "datatype": "FP32", "data": data}

    good = tensor("left", [1, 2], [1, 2])
    cases: list[tuple[Any, str]] = [
        ([good], "inputs left, right"),
        ([good, good], "given twice"),
        ([good, tensor("right", [1, 3], [1, 2, 3])], "takes the shape [-1, 2]"),
        ([good, tensor("right", [1, 2], ["x", "y"])], "not FP32"),
        ([good, tensor("right", [2, 2], [1, 2, 3, 4])], "same number of rows"),
        ([good, {**good, "name": "right", "datatype": "MOON"}], "MOON"),
        ([good, tensor("right", [-1, 2], [])], "shape [-1, 2]"),
    ]
    async with running(repository) as port:
        for inputs, says in cases:
            code, said = await ask(port, "/v2/models/adding/infer", {"inputs": inputs})
            assert (code, says in said["error"]) == (400, True), (inputs, said)


async def test_grpc_speaks_of_the_same_models(models: Path) -> None:
    repository = Repository(_loader(arguments(["--many", f"--model_dir={models}"])))
    server = await serve(repository, "127.0.0.1", 0)
    await server.stop(0)
    server, port = await served(repository)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        load_ = call(channel, "RepositoryModelLoad", wire.RepositoryModelLoadResponse)
        await load_(wire.RepositoryModelLoadRequest(model_name="adding"))
        infer = call(channel, "ModelInfer", wire.ModelInferResponse)
        request = wire.ModelInferRequest(model_name="adding", id="7")
        for name in ("left", "right"):
            request.inputs.add(name=name, datatype="FP32", shape=[1, 2])
        request.raw_input_contents.extend([floats([1, 2]), floats([3, 4])])
        answer = await infer(request)
        assert (answer.id, answer.outputs[0].name) == ("7", "sum")
        assert answer.raw_output_contents[0] == floats([4, 6])
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await infer(wire.ModelInferRequest(model_name="other"))
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND
        assert "adding" in (failure.value.details() or "")
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await infer(wire.ModelInferRequest(model_name="adding"))
        assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await server.stop(0)


async def served(repository: Repository) -> tuple[Any, int]:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    return await serve(repository, "127.0.0.1", port), port


def call(channel: Any, method: str, answer: Any) -> Any:
    return channel.unary_unary(
        GRPC + method,
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString,
    )


@pytest.mark.parametrize(
    ("framework", "file", "says"),
    [
        ("sklearn", "model.joblib", "no scikit-learn model"),
        ("onnx", "model.onnx", "no ONNX model"),
        ("pytorch", "model.pt", "neither TorchScript"),
        ("pytorch", "model.txt", ".pt2, .pt, .ts is needed"),
    ],
)
def test_what_is_no_model_is_named(tmp_path: Path, framework: str, file: str, says: str) -> None:
    pytest.importorskip("torch")
    (tmp_path / file).write_bytes(b"none")
    with pytest.raises(LoadError, match=says):
        load(framework, "x", str(tmp_path))


def test_a_directory_says_its_framework(models: Path) -> None:
    assert [find(str(models / name)) for name in ("iris", "adding", "double")] == [
        "sklearn",
        "onnx",
        "pytorch",
    ]
    with pytest.raises(LoadError, match="one model is needed"):
        find(str(models))
