"""gRPC through the router: bytes and metadata as they are, errors, and waiting for a replica."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import eventually

pytest.importorskip("grpc", reason="needs the serve extra")

import grpc

from lockstep.api.core import Pod, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import Backend, HoldQueue, Route, RouteSpec
from lockstep.keys.authority import self_signed
from lockstep.kube.cache import Change
from lockstep.serve.router.authentication import TokenAuthenticator
from lockstep.serve.router.grpc_calls import GrpcCalls, find, model
from lockstep.serve.router.table import Table
from lockstep.serve.wire import open_inference_pb2 as wire

WITHIN = 30.0
NAMED = wire.ModelReadyRequest(name="iris").SerializeToString()


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A replica: sends each message back, twice, or fails as it is told."""

    def service(self, details: Any) -> Any:
        async def answer(messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for message in messages:
                yield message
                yield message
            context.set_trailing_metadata((("said", "bye"),))
            if details.method == "/x/Fail":
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as told")

        return grpc.stream_stream_rpc_method_handler(answer)


class Router:
    def __init__(self, replica_port: int, port: int) -> None:
        self.table = Table("", lambda lane, urgent: None)
        self.replica_port, self.port = replica_port, port
        self.trust = b""
        """The certificate that the router shows; none where it speaks without TLS."""

    def route(self, namespace: str = "n", **spec: Any) -> None:
        backend = Backend(revision="r", port=1, grpc_port=self.replica_port)
        meta = ObjectMeta(name="iris", namespace=namespace, uid="u")
        self.table.on_route(
            Change(None, Route(metadata=meta, spec=RouteSpec(backends=[backend], **spec)))
        )

    def replica(self) -> None:
        meta = ObjectMeta(name="iris-0", namespace="n", uid="p", labels={REVISION_LABEL: "r"})
        ready = Condition(type="Ready", status="True")
        status = PodStatus(phase="Running", pod_ip="127.0.0.1", conditions=[ready])
        self.table.on_pod(Change(None, Pod(metadata=meta, status=status)))

    def _channel(self) -> grpc.aio.Channel:
        options = [("grpc.use_local_subchannel_pool", 1)]
        address = f"127.0.0.1:{self.port}"
        if not self.trust:
            return grpc.aio.insecure_channel(address, options=options)
        options.append(("grpc.ssl_target_name_override", "localhost"))  # type: ignore[arg-type]
        credentials = grpc.ssl_channel_credentials(self.trust)
        return grpc.aio.secure_channel(address, credentials, options=options)

    async def call(
        self, method: str, messages: list[bytes], **metadata: str
    ) -> tuple[list[bytes], Any]:
        async with self._channel() as channel:
            sent = [(key.replace("_", "-"), value) for key, value in metadata.items()]

            async def send() -> AsyncIterator[bytes]:
                for message in messages:
                    yield message

            call = channel.stream_stream(method)(send(), metadata=sent, timeout=WITHIN)
            return [message async for message in call], await call.trailing_metadata()

    async def ask(self, method: str, message: bytes, **metadata: str) -> None:
        """Send a call of one message, for what refuses it."""
        async with self._channel() as channel:
            sent = list(metadata.items())
            await channel.unary_unary(method)(message, metadata=sent, timeout=WITHIN)


@asynccontextmanager
async def running(
    authenticator: TokenAuthenticator | None = None, pair: tuple[bytes, bytes] | None = None
) -> AsyncIterator[Router]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        free = one.getsockname()[1]
    replica = grpc.aio.server()
    replica.add_generic_rpc_handlers((Echo(),))
    replica.add_insecure_port(f"127.0.0.1:{free}")
    await replica.start()
    router: Router
    calls = GrpcCalls(lambda stated, name: find(router.table.lanes, stated, name), authenticator)
    server, port = await calls.listen("127.0.0.1", 0, pair)
    router = Router(free, port)
    router.trust = pair[1] if pair is not None else b""
    try:
        yield router
    finally:
        await server.stop(0)
        await calls.forget(())
        await replica.stop(0)


async def test_streams_and_metadata_go_both_ways() -> None:
    async with running() as router:
        router.route()
        router.replica()
        found, trailing = await router.call("/x/Any", [NAMED, b"\x00more"])
        assert found == [NAMED, NAMED, b"\x00more", b"\x00more"]
        assert dict(trailing)["said"] == "bye"
        lane = router.table.lanes["n/iris"]
        assert (lane.load().in_flight, lane.answers) == (0, {"r": 1})


async def test_the_status_of_a_replica_reaches_the_client() -> None:
    async with running() as router:
        router.route()
        router.replica()
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await router.call("/x/Fail", [NAMED])
        assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert failure.value.details() == "as told"
        assert router.table.lanes["n/iris"].load().in_flight == 0


async def test_a_call_waits_for_a_replica() -> None:
    async with running() as router:
        router.route()
        call = asyncio.ensure_future(router.call("/x/Any", [NAMED]))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting, WITHIN)
        router.replica()
        assert (await call)[0] == [NAMED, NAMED]


async def test_a_full_queue_refuses_and_one_that_leaves_is_forgotten() -> None:
    async with running() as router:
        router.route(hold=HoldQueue(requests=1))
        call = asyncio.ensure_future(router.call("/x/Any", [NAMED]))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting, WITHIN)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await router.call("/x/Any", [NAMED])
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        call.cancel()
        await eventually(lambda: not lane.waiting, WITHIN)


async def test_the_service_is_stated_or_called_like_the_model() -> None:
    async with running() as router:
        router.route()
        router.replica()
        found, _ = await router.call("/x/Any", [b"?"], lockstep_service="n/iris")
        assert found == [b"?", b"?"]
        for message, metadata, says in (
            (b"?", {}, "lockstep-service"),
            (b"?", {"lockstep_service": "n/other"}, "n/iris"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await router.call("/x/Any", [message], **metadata)
            assert failure.value.code() is grpc.StatusCode.NOT_FOUND
            assert says in (failure.value.details() or "")
        router.route("other")
        with pytest.raises(grpc.aio.AioRpcError, match="several services"):
            await router.call("/x/Any", [NAMED])
        alive, _ = await router.call("/inference.GRPCInferenceService/ServerLive", [b""])
        assert wire.ServerLiveResponse.FromString(alive[0]).live


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (NAMED, "iris"),
        (b"", ""),
        (b"\x0a", ""),
        (b"\x0a\xff\xff\xff\xff\xff", ""),
        (b"\x12\x01a", ""),
    ],
)
def test_a_models_name_is_the_first_field(message: bytes, name: str) -> None:
    assert model(message) == name


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("", grpc.StatusCode.UNAUTHENTICATED),
        ("Bearer wrong", grpc.StatusCode.UNAUTHENTICATED),
        ("Bearer " + "m" * 20, grpc.StatusCode.PERMISSION_DENIED),
        ("Bearer " + "n" * 20, grpc.StatusCode.OK),
    ],
)
async def test_beyond_loopback_calls_need_tls_and_a_token(
    tmp_path: Path, token: str, code: grpc.StatusCode
) -> None:
    certificate, key = self_signed("localhost")
    (tmp_path / "tokens").write_text(f"{'n' * 20} n\n{'m' * 20} m\n")
    async with running(TokenAuthenticator(tmp_path / "tokens"), (key, certificate)) as router:
        router.route()
        router.replica()
        shown = {"authorization": token} if token else {}
        if code is grpc.StatusCode.OK:
            assert (await router.call("/x/Any", [NAMED], **shown))[0] == [NAMED, NAMED]
            return
        # One message with the call: a stream may be refused while its client still writes.
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await router.ask("/x/Any", NAMED, **shown)
        assert failure.value.code() is code
