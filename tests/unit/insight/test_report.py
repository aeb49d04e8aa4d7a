"""A month's report: every GPU-hour has its place, and no name breaks the page."""

from __future__ import annotations

import json
import shlex
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.support.costs import HOUR, claim, known

from lockstep.api import timestamp
from lockstep.cli.advising import dearest
from lockstep.insight.history.records import NodeSpan
from lockstep.insight.report import rendering
from lockstep.insight.report.recommending import recommendations
from lockstep.insight.report.summing import Finding, Report, report, wastes

START = timestamp.parse("2026-11-01T00:00:00Z")
END = START + 48 * HOUR
BUSY = NodeSpan("u1", "busy", 2, START)
LAZY = NodeSpan("u2", "lazy", 1, START, spot=True)
CLAIMS = [
    claim("slow", 0, START, START + 6 * HOUR, purpose="starting", node="busy", user="ann"),
    claim("slow", 0, START + 6 * HOUR, END, node="busy", user="ann"),
    claim("half", 1, START, START + 24 * HOUR, share=0.5, node="busy", queue="q2"),
]
PRICES = ({"gpuHour": 2}, {"gpuHour": 0.5, "spot": True})


def made(**more: Any) -> Report:
    given = known(*more.pop("prices", PRICES))
    nodes, claims = more.pop("nodes", [BUSY, LAZY]), more.pop("claims", CLAIMS)
    return report(nodes, claims, given, start=START, end=END, **more)


def test_utilisation_and_goodput_are_parts_of_all_gpu_time() -> None:
    found = made(findings={("s", "slow"): Finding("few-workers", 0.5)})
    assert found.total.gpu_hours == pytest.approx(144)
    assert found.utilisation == pytest.approx((48 + 12) / 144)
    assert found.goodput == pytest.approx((21 + 12) / 144)
    assert found.spot_saved == pytest.approx(48 * 1.5)


def test_every_gpu_hour_is_held_free_or_a_rest() -> None:
    found = made()
    left = sum(n.free.gpu_hours + n.rest.gpu_hours for n in found.nodes.values())
    assert found.held.gpu_hours + left == pytest.approx(found.total.gpu_hours)
    days = sum(one.gpu_hours for one in found.days.values())
    assert days == pytest.approx(found.held.gpu_hours)
    assert sorted(found.capacity) == ["2026-11-01", "2026-11-02"]


def test_the_league_of_waste_begins_with_the_dearest() -> None:
    found = wastes(made(findings={("s", "slow"): Finding("few-workers", 0.5)}))
    told = [(one.kind, one.node or one.job[1], round(one.amount.cost, 2)) for one in found]
    assert told == [
        ("free", "busy", 48.0),
        ("slow steps", "slow", 42.0),
        ("free", "lazy", 24.0),
        ("rest of shared cards", "busy", 24.0),
        ("starting", "slow", 12.0),
    ]


RECOMMENDED = [
    ("lockstep advise slow -n s", 42.0),
    ("lockstep node drain lazy", 24.0),
    ("lockstep top shares", 24.0),
    ("lockstep describe slow -n s", 12.0),
]


def test_each_recommendation_has_money_and_a_command() -> None:
    found = recommendations(made(findings={("s", "slow"): Finding("few-workers", 0.5)}))
    assert [(one.command, round(one.saves.cost, 2)) for one in found] == RECOMMENDED


def test_a_healthy_month_recommends_nothing() -> None:
    held = [claim("a", i, START, END, node="busy") for i in range(2)]
    assert recommendations(made(nodes=[BUSY], claims=held)) == []


HOSTILE = "<script>alert('x')</script>\"&; rm -rf $HOME #"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def _parsed(found: Report) -> _Elements:
    parser = _Elements()
    parser.feed(rendering.page(found))
    return parser


def test_hostile_names_stay_text() -> None:
    name = {"node": HOSTILE, "job": HOSTILE, "namespace": HOSTILE, "queue": HOSTILE}
    held = [
        claim("a", 0, START, START + 9 * HOUR, purpose="starting", user=HOSTILE, **name),
        claim("b", 0, START + 9 * HOUR, END, **name),
    ]
    node = NodeSpan("u1", HOSTILE, 40, START)
    told = {(HOSTILE, HOSTILE): Finding(HOSTILE, 0.9)}
    found = made(nodes=[node], claims=held, findings=told)
    plain = made(findings={("s", "slow"): Finding("few-workers", 0.5)})
    page = _parsed(found)
    assert HOSTILE in page.text
    assert page.tags <= _parsed(plain).tags
    assert page.attributes <= _parsed(plain).attributes
    for one in recommendations(found):
        assert HOSTILE in shlex.split(one.command)


def test_the_page_needs_nothing_but_itself() -> None:
    text = rendering.page(made())
    assert "default-src 'none'" in text
    for word in ("<script", 'src="', "href=", "url(", "@import"):
        assert word not in text


def test_the_page_and_json_say_the_same() -> None:
    found = made()
    tree = json.loads(json.dumps(rendering.tree(found)))
    text = _parsed(found).text
    assert tree["total"] == {"gpuHours": 144.0, "cost": 216.0}
    assert (tree["month"], tree["currency"]) == ("2026-11", "EUR")
    assert f"{tree['utilisation']:.1%}" in text
    for one in tree["recommendations"]:
        assert one["command"] in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"nodes": [], "claims": []}, "No node with GPUs"),
        ({"prices": ()}, "144.00 GPU-hours have no price"),
        ({"nodes": [LAZY]}, "no node on record had the GPUs"),
    ],
)
def test_what_is_not_known_is_said(more: Any, words: str) -> None:
    found = made(**more)
    assert any(words in one for one in rendering.doubts(found))
    assert words in _parsed(found).text


def test_without_gpus_no_ratio_is_claimed() -> None:
    found = made(nodes=[], claims=[])
    assert (found.utilisation, found.goodput) == (None, None)
    assert "unknown" in _parsed(found).text


KEPT = [
    ('{"verdicts": [{"cause": "a", "gain": 0.2}, {"cause": "b", "gain": 0.4}]}', ("b", 0.4)),
    ('{"verdicts": [{"cause": "a", "gain": 7}]}', ("a", 1.0)),
    ('{"verdicts": [{"cause": "a", "gain": NaN}]}', None),
    ('{"verdicts": [{"cause": "a", "gain": -1}]}', None),
    ('{"verdicts": []}', None),
    ('{"verdicts": [3]}', None),
    ("[]", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), KEPT)
def test_kept_advice_counts_where_it_can_be_read(text: str, expected: Any) -> None:
    assert dearest(text) == expected
