"""Figures of language models, taken as answers pass, under OpenTelemetry's and vLLM's names."""

from __future__ import annotations

import json
import time
from typing import Any, Final

_MOST_KEPT: Final = 1 << 20
"""Bytes of an answer in one piece that are kept to find its token counts."""
_FIRST: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1),
    *(0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
_EACH: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_WHOLE: Final = tuple(0.01 * 2**n for n in range(14))
_TOKENS: Final = tuple(4.0**n for n in range(14))
"""Buckets as OpenTelemetry's conventions for generative AI advise."""
_TIMES: Final[dict[str, tuple[tuple[str, tuple[float, ...]], dict[str, str]]]] = {
    "first": (
        ("From the request to the first piece of a streamed answer.", _FIRST),
        {
            "otel": "gen_ai_server_time_to_first_token_seconds",
            "vllm": "vllm:time_to_first_token_seconds",
        },
    ),
    "each": (
        ("Time per token after the first of a streamed answer.", _EACH),
        {
            "otel": "gen_ai_server_time_per_output_token_seconds",
            "vllm": "vllm:request_time_per_output_token_seconds",
        },
    ),
    "whole": (
        ("From the request to the end of its answer.", _WHOLE),
        {
            "otel": "gen_ai_server_request_duration_seconds",
            "vllm": "vllm:e2e_request_latency_seconds",
        },
    ),
    "queue": (
        ("From the request until a replica got it.", _WHOLE),
        {"vllm": "vllm:request_queue_time_seconds"},
    ),
}
_LABELS: Final = ("adapter", "tenant")


class LlmFigures:
    """Histograms and counters by model, adapter and tenant; made at the first request."""

    def __init__(self) -> None:
        self._meters: _Meters | None = None

    def meters(self) -> _Meters:
        """Return what counts."""
        if self._meters is None:
            self._meters = _Meters()
        return self._meters

    def page(self) -> bytes:
        """Return the metrics as text; nothing before the first request."""
        return self._meters.page() if self._meters is not None else b""


class _Meters:
    def __init__(self) -> None:
        # Imported here: a router without language models does without its memory.
        from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

        self._registry = CollectorRegistry(auto_describe=False)
        self._generate = generate_latest

        labels = {"otel": "gen_ai_request_model", "vllm": "model_name"}

        def pair(text: str, buckets: tuple[float, ...], names: dict[str, str]) -> list[Any]:
            return [
                Histogram(
                    name, text, (labels[kind], *_LABELS), buckets=buckets, registry=self._registry
                )
                for kind, name in names.items()
            ]

        self.histograms = {key: pair(*row, names) for key, (row, names) in _TIMES.items()}
        self.usage = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a request (input) and of its answer (output).",
            ("gen_ai_request_model", *_LABELS, "gen_ai_token_type"),
            buckets=_TOKENS,
            registry=self._registry,
        )
        self.tokens = {
            kind: Counter(name, text, ("model_name", *_LABELS), registry=self._registry)
            for kind, name, text in (
                ("input", "vllm:prompt_tokens", "Tokens of requests."),
                ("output", "vllm:generation_tokens", "Tokens of answers."),
            )
        }

    def observe(self, time_of: str, labels: tuple[str, ...], seconds: float) -> None:
        """Count *seconds* as one of the times: ``first``, ``each``, ``whole`` or ``queue``."""
        for one in self.histograms[time_of]:
            one.labels(*labels).observe(seconds)

    def spend(self, labels: tuple[str, ...], kind: str, count: int) -> None:
        """Count tokens of one *kind*: ``input`` or ``output``."""
        self.usage.labels(*labels, kind).observe(count)
        self.tokens[kind].labels(*labels).inc(count)

    def page(self) -> bytes:
        return bytes(self._generate(self._registry))


class LlmTap:
    """Takes the figures of one request of a service that has *models*, the first its own."""

    def __init__(self, meters: _Meters, models: list[str], tenant: str) -> None:
        self._meters, self._models, self._tenant = meters, models, tenant
        self._adapter = ""
        self._began = self._sent = time.monotonic()
        self._status = 0
        self._first = self._last = 0.0
        self._streams = False
        self._rest = b""
        self._events = 0
        self._usage: dict[str, Any] = {}

    def request(self, head: bytes, body: bytes, *, whole: bool) -> None:
        """Note that a replica gets the request, and which adapter it asks for."""
        self._sent = time.monotonic()
        tree = _tree(body) if whole else None
        asked = tree.get("model") if isinstance(tree, dict) else None
        self._adapter = asked if asked in self._models[1:] else ""

    def answer(self, status: int) -> None:
        """Begin an answer anew."""
        self._status, self._rest, self._events, self._first = status, b"", 0, 0.0

    def piece(self, data: bytes) -> None:
        """Look for tokens and their counts in a piece of the answer."""
        self._last = time.monotonic()
        if not self._first:
            self._first = self._last
            self._streams = data.lstrip().startswith((b"data:", b"event:", b":"))
        if not self._streams:
            if len(self._rest) <= _MOST_KEPT:
                self._rest += data
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                self._event(line[5:])

    def _event(self, data: bytes) -> None:
        if b'"usage"' in data:
            tree = _tree(data)
            found = tree.get("usage") if isinstance(tree, dict) else None
            if isinstance(found, dict):
                self._usage = found
            if isinstance(tree, dict) and not tree.get("choices"):
                return
        self._events += 1

    def end(self) -> None:
        """Count the request if it was answered well."""
        if self._status != 200:
            return
        if not self._streams:
            tree = _tree(self._rest)
            found = tree.get("usage") if isinstance(tree, dict) else None
            self._usage = found if isinstance(found, dict) else {}
        meters, labels = self._meters, (self._models[0], self._adapter, self._tenant)
        meters.observe("queue", labels, self._sent - self._began)
        meters.observe("whole", labels, time.monotonic() - self._began)
        # An engine that tells no counts sends one token an event.
        made = _count(self._usage, "completion_tokens", "output_tokens") or self._events
        if self._streams:
            meters.observe("first", labels, self._first - self._began)
            if made > 1:
                meters.observe("each", labels, (self._last - self._first) / (made - 1))
        if read := _count(self._usage, "prompt_tokens", "input_tokens"):
            meters.spend(labels, "input", read)
        if made:
            meters.spend(labels, "output", made)


def _count(usage: dict[str, Any], *names: str) -> int:
    found = next((usage[name] for name in names if name in usage), 0)
    return found if isinstance(found, int) and found > 0 else 0


def _tree(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
