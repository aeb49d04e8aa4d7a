"""Who gets the metrics: those whom the API server knows and lets read them, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from lockstep.api.core import TOKEN_REVIEWS, Review
from lockstep.http.message import Peer, Request, Response
from lockstep.kube.errors import ApiError
from lockstep.kube.scraping import KEPT, MOST_KEPT, Gate

METRICS = Response(200, b"lockstep_leader 1\n")
USER = {"username": "prometheus", "uid": "u1", "groups": ["g"], "extra": {"scope": ["all"]}}


@dataclass
class Reviews:
    """The API server's part: `good` and `idle` are users, and `good` may read."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    down: bool = False

    def unfenced(self) -> Reviews:
        return self

    async def create(self, resource: Any, body: dict[str, Any]) -> Review:
        if self.down:
            raise ApiError(503, "ServiceUnavailable", "the server is starting")
        self.asked.append(body["spec"])
        if resource is TOKEN_REVIEWS:
            token = body["spec"]["token"]
            known = token in ("good", "idle")
            user = {**USER, "username": token}
            return Review(status={"authenticated": known, "user": user if known else {}})
        return Review(status={"allowed": body["spec"]["user"] == "good"})


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(reviews: Reviews, clock: Clock) -> Gate:
    return Gate(reviews, lambda: METRICS, clock)  # type: ignore[arg-type]


def asked(headers: dict[str, str], path: str = "/metrics") -> Request:
    return Request("GET", path, headers, b"", Peer())


async def status(gate: Gate, authorization: str, path: str = "/metrics") -> int:
    headers = {"authorization": authorization} if authorization else {}
    return (await gate.answer(asked(headers, path))).status


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        ("", 401),
        ("Basic Z29vZDo=", 401),
        ("Bearer ", 401),
        ("Bearer nobody", 401),
        ("Bearer idle", 403),
        ("Bearer good", 200),
        ("bearer good", 200),
    ],
)
async def test_only_users_with_the_right_get_the_metrics(gate, authorization, expected):
    answer = await gate.answer(asked({"authorization": authorization}))
    assert answer.status == expected
    assert (answer == METRICS) == (expected == 200)


async def test_without_a_token_nobody_is_asked(gate, reviews):
    assert await status(gate, "") == 401
    assert await status(gate, "Bearer good", "/healthz") == 404
    assert reviews.asked == []


async def test_the_review_names_all_the_servers_facts_about_the_user(gate, reviews):
    await status(gate, "Bearer good")
    assert reviews.asked[1] == {
        "user": "good",
        "uid": "u1",
        "groups": ["g"],
        "extra": {"scope": ["all"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize("token", ["good", "idle", "nobody"])
async def test_a_verdict_holds_for_a_while(gate, reviews, clock, token):
    first = await status(gate, f"Bearer {token}")
    questions = len(reviews.asked)
    clock.now = KEPT - 1
    assert await status(gate, f"Bearer {token}") == first
    assert len(reviews.asked) == questions
    clock.now = KEPT
    assert await status(gate, f"Bearer {token}") == first
    assert len(reviews.asked) == 2 * questions


async def test_an_unavailable_server_admits_no_scraper_and_is_asked_again(gate, reviews):
    reviews.down = True
    assert await status(gate, "Bearer good") == 503
    reviews.down = False
    assert await status(gate, "Bearer good") == 200


async def test_a_flood_of_tokens_takes_no_memory(gate):
    for number in range(3 * MOST_KEPT):
        await status(gate, f"Bearer {number}")
    assert len(gate._verdicts) <= MOST_KEPT
