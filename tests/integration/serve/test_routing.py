"""Which way requests go: by header, cookie, session, prompt and model; copies, batches, logs."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.routing import READ, Replica, Router, routing
from tests.support.waiting import eventually, stretched

from lockstep.api.serving import Backend, Batcher, HoldQueue, Logger, Match, Mirror


def says(word: str, status: int = 200) -> Any:
    return lambda path, body: (status, word)


def predicts(path: str, body: bytes) -> tuple[int, Any]:
    return 200, {"predictions": [one * 2 for one in json.loads(body)["instances"]]}


async def two(router: Router, *, old: int = 100, new: int = 0, **spec: Any) -> list[Replica]:
    """Have a service with an old and a new revision."""
    replicas = [await router.replica(word, says(word)) for word in ("old", "new")]
    weights = {"old": old, "new": new}
    backends = [Backend(revision=r.name, port=r.port, weight=weights[r.name]) for r in replicas]
    router.route("svc", *backends, **spec)
    for one in replicas:
        router.ready(one.name)
    return replicas


async def test_a_header_or_a_cookie_chooses_the_revision() -> None:
    matches = [
        Match(revision="new", header="X-Group", value="beta"),
        Match(revision="new", cookie="canary"),
    ]
    async with routing() as router:
        await two(router, matches=matches)
        for headers, word in (
            ({}, "old"),
            ({"x_group": "beta"}, "new"),
            ({"x_group": "gamma"}, "old"),
            ({"cookie": "a=1; canary=yes"}, "new"),
        ):
            assert (await router.ask("/serving/n/svc/x", **headers)).json == word


async def test_the_weights_are_exact() -> None:
    async with routing() as router:
        await two(router, old=80, new=20)
        heard = [(await router.ask("/serving/n/svc/x")).json for _ in range(50)]
        assert heard.count("new") == 10


async def test_copies_go_to_the_mirror_and_its_answers_are_counted() -> None:
    async with routing() as router:
        old, new = await two(router, mirror=Mirror(revision="new", percent=50))
        for _ in range(10):
            assert (await router.ask("/serving/n/svc/x", {"a": 1})).json == "old"
        lane = router.table.lanes["n/svc"]
        await eventually(lambda: lane.answers.get("new") == 5, READ)
        assert (len(old.got), len(new.got)) == (10, 5)
        assert new.got[0][2] == old.got[0][2]
        await eventually(lambda: lane.load().in_flight == 0, READ)


async def test_openai_requests_go_to_the_service_with_their_model() -> None:
    async with routing() as router:
        left = await router.serves("left", says("left"), models=["llama", "lora-a"])
        await router.serves("right", says("right"), models=["qwen"], choice="prefix")
        chat = {"messages": [{"role": "user", "content": "x" * 600}]}
        for model, word in (("lora-a", "left"), ("qwen", "right"), ("n/left", "left")):
            found = await router.ask("/openai/v1/chat/completions", {"model": model, **chat})
            assert (found.status, found.json) == (200, word)
        assert left.got[0][0] == "/v1/chat/completions"
        missing = await router.ask("/openai/v1/chat/completions", {"model": "moon"})
        assert missing.status == 404
        assert "llama, lora-a, qwen" in missing.json["error"].pop("message")
        kind = {"type": "invalid_request_error", "param": "model", "code": "model_not_found"}
        assert missing.json["error"] == {**missing.json["error"], **kind}
        assert (await router.ask("/openai/v1/completions", b"{")).status == 400
        listed = await router.ask("/openai/v1/models", b"", method="GET")
        assert [one["id"] for one in listed.json["data"]] == ["llama", "lora-a", "qwen"]
        assert router.table.lanes["n/right"].prefixes.held("right", ()) == 0


@pytest.mark.parametrize(
    ("path", "spec", "status", "kind", "retry"),
    [
        ("/openai/v1/completions", {}, 429, "rate_limit_error", "1"),
        ("/serving/n/svc/v1/completions", {}, 429, "rate_limit_error", "1"),
        ("/openai/v1/completions", {"requests": 9, "seconds": 0}, 503, "server_error", "5"),
    ],
)
async def test_refusals_of_language_models_are_openai_objects(
    path: str, spec: dict[str, Any], status: int, kind: str, retry: str
) -> None:
    async with routing() as router:
        hold = HoldQueue(**{"requests": 0, **spec})
        router.route("svc", Backend(revision="none", port=1), models=["llama"], hold=hold)
        asked = asyncio.ensure_future(router.ask(path, {"model": "llama"}))
        lane = router.table.lanes["n/svc"]
        await eventually(lambda: lane.waiting or lane.refused, READ)
        lane.expire()
        found = await asked
        assert (found.status, found.json["error"]["type"]) == (status, kind)
        assert found.headers["retry-after"] == retry


@pytest.mark.parametrize("path", ["/openai/v1/completions", "/serving/n/svc/x", "/nowhere"])
async def test_clients_that_expect_a_word_hear_it_first(path: str) -> None:
    body = b'{"model": "llama"}'
    async with routing() as router:
        await router.serves("svc", says("done"), models=["llama"])
        async with asyncio.timeout(stretched(READ)):
            reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
            head = f"POST {path} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            writer.write(body)
            status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
            writer.close()
        assert status == (404 if path == "/nowhere" else 200)


async def test_figures_of_language_models_have_their_known_names() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    told = [{"choices": [{"text": str(n)}]} for n in range(3)]
    events = [*told, {"choices": [], "usage": usage}]
    stream = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events)

    def answers(path: str, body: bytes) -> tuple[int, Any]:
        asked = json.loads(body)
        return 200, stream + b"data: [DONE]\n\n" if asked.get("stream") else {"usage": usage}

    async with routing() as router:
        await router.serves("svc", answers, models=["llama", "lora-a"])
        await router.ask("/openai/v1/completions", {"model": "lora-a", "stream": True})
        await router.ask("/serving/n/svc/v1/completions", {"model": "llama"})
        families = text_string_to_metric_families(router.sorting.figures.page().decode())
        samples = [one for family in families for one in family.samples]
        found = {(one.name, frozenset(one.labels.values())): one.value for one in samples}
    lora, own = frozenset(("llama", "lora-a", "n")), frozenset(("llama", "", "n"))
    expected = {
        ("vllm:prompt_tokens_total", lora): 7,
        ("vllm:generation_tokens_total", own): 3,
        ("vllm:time_to_first_token_seconds_count", lora): 1,
        ("gen_ai_server_time_per_output_token_seconds_count", lora): 1,
        ("gen_ai_server_request_duration_seconds_count", own): 1,
        ("vllm:request_queue_time_seconds_count", own): 1,
        ("gen_ai_client_token_usage_sum", lora | {"input"}): 7,
        ("gen_ai_client_token_usage_sum", lora | {"output"}): 3,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert ("vllm:time_to_first_token_seconds_count", own) not in found


async def test_requests_are_joined_and_their_answers_split() -> None:
    async with routing() as router:
        replica = await router.serves("svc", predicts, batcher=Batcher(size=4, latency=60_000))
        path = "/serving/n/svc/v1/models/svc:predict"
        found = await asyncio.gather(
            *(router.ask(path, {"instances": [n, n + 1]}) for n in (1, 10))
        )
        assert sorted(one.json["predictions"] for one in found) == [[2, 4], [20, 22]]
        assert len(replica.got) == 1
        bad = await router.ask(path, {"rows": []})
        assert (bad.status, "instances" in bad.json["error"]) == (400, True)


async def test_a_batch_leaves_in_time_and_its_failure_reaches_all() -> None:
    async with routing() as router:
        await router.serves("svc", says("no", 500), batcher=Batcher(size=100, latency=1))
        path = "/serving/n/svc/v1/models/svc:predict"
        found = await asyncio.gather(*(router.ask(path, {"instances": [1]}) for _ in range(2)))
        assert {one.status for one in found} == {500}


async def test_payloads_are_logged_as_cloud_events() -> None:
    async with routing() as router:
        sink = await router.replica("sink", says("taken"))
        logger = Logger(url=f"http://127.0.0.1:{sink.port}/log", metadata_headers=["x-user"])
        await router.serves("svc", predicts, logger=logger)
        await router.ask("/serving/n/svc/v1/models/svc:predict", {"instances": [3]}, X_User="me")
        await eventually(lambda: len(sink.got) == 2, READ)
        by_kind = {one[1]["ce-type"].rpartition(".")[2]: one for one in sink.got}
        assert json.loads(by_kind["request"][2]) == {"instances": [3]}
        assert json.loads(by_kind["response"][2]) == {"predictions": [6]}
        assert by_kind["request"][1]["ce-id"] == by_kind["response"][1]["ce-id"]
        assert by_kind["request"][1]["ce-inferenceservicename"] == "svc"
        assert by_kind["request"][1]["ce-x-user"] == "me"


async def test_a_stream_passes_piece_by_piece() -> None:
    async with routing() as router:
        more = asyncio.Event()

        async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n7\r\ndata: 1\r\n")
            await more.wait()
            writer.write(b"7\r\ndata: 2\r\n0\r\n\r\n")

        server = await asyncio.start_server(stream, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        router.route("sse", Backend(revision="sse", port=port))
        router.ready("sse")
        reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
        writer.write(b"GET /serving/n/sse/x HTTP/1.1\r\nHost: h\r\n\r\n")
        async with asyncio.timeout(stretched(READ)):
            assert b"text/event-stream" in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readuntil(b"data: 1\r\n")
            more.set()
            assert (await reader.readuntil(b"0\r\n\r\n")).endswith(b"data: 2\r\n0\r\n\r\n")
        writer.close()
        server.close()


async def test_a_client_that_leaves_ends_the_request_at_the_replica() -> None:
    async with routing() as router:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            begun.set()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            ended.set()
            writer.close()

        server = await asyncio.start_server(slow, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        router.route("slow", Backend(revision="slow", port=port))
        router.ready("slow")
        _, writer = await asyncio.open_connection("127.0.0.1", router.port)
        writer.write(b"GET /serving/n/slow/x HTTP/1.1\r\nHost: h\r\n\r\n")
        async with asyncio.timeout(stretched(READ)):
            await begun.wait()
            writer.transport.abort()
            await ended.wait()
        await eventually(lambda: router.table.lanes["n/slow"].load().in_flight == 0, READ)
        server.close()


async def test_one_replica_reads_the_prompt_and_another_answers() -> None:
    def reads(path: str, body: bytes) -> tuple[int, Any]:
        return 200, {"kv_transfer_params": {"remote_block_ids": [7]}}

    async with routing() as router:
        first = await router.serves("chat-prefill", reads)
        second = await router.serves("chat", says("token"), prefill="chat-prefill", models=["m"])
        asked = {"model": "m", "prompt": "x", "max_tokens": 50, "stream": True}
        for path in ("/serving/n/chat/v1/completions", "/openai/v1/completions"):
            assert (await router.ask(path, asked)).json == "token"
        read, answered = json.loads(first.got[0][2]), json.loads(second.got[0][2])
        assert (read["max_tokens"], read["stream"]) == (1, False)
        assert read["kv_transfer_params"]["do_remote_decode"] is True
        assert answered == {**asked, "kv_transfer_params": {"remote_block_ids": [7]}}
        assert len(first.got) == len(second.got) == 2


async def test_without_what_reads_prompts_the_other_reads_them_itself() -> None:
    async with routing() as router:
        replica = await router.serves("chat", says("token"), prefill="gone")
        found = await router.ask("/serving/n/chat/v1/completions", {"prompt": "x"})
        assert (found.json, json.loads(replica.got[0][2])) == ("token", {"prompt": "x"})
