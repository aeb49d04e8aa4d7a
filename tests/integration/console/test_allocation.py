"""OpenCost's /allocation, asked as programs ask it: with a token of their own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.support.apiserver import ApiServer
from tests.support.console import Console, Visitor
from tests.support.console_teams import team
from tests.support.costs import HOUR, claim
from tests.support.waiting import eventually_sync

from lockstep.insight.history.records import NodeSpan
from lockstep.insight.history.store import Store


def test_allocations_are_told_as_far_as_the_user_may_see(
    shared_server: ApiServer, tmp_path: Path
) -> None:
    now = time.time()
    records = tmp_path / "usage.db"
    store = Store(records)
    used = [
        claim(name, number, now - HOUR, None, namespace=space)
        for number, (name, space) in enumerate((("mine", "seeing"), ("theirs", "hiding")))
    ]
    store.put(used, [NodeSpan("nu", "n", 2, now - HOUR)])
    store.close()
    console = Console(shared_server, tmp_path / "state", "--records", str(records))
    try:
        token = team(shared_server, "seeing", "view")
        team(shared_server, "hiding", "view")

        def ask(query: str, bearer: str = token) -> tuple[int, Any]:
            headers = {"Authorization": f"Bearer {bearer}"}
            answer = Visitor(console.url).request("GET", f"/allocation?{query}", headers=headers)
            return answer.status, answer.json

        def names() -> set[str]:
            status, body = ask("window=2h&aggregate=namespace")
            assert status == 200, body
            return set(body["data"][0])

        eventually_sync(lambda: names() == {"seeing"}, what="it is told")
        _, body = ask("window=2h&aggregate=namespace&accumulate=true")
        own = body["data"][0]["seeing"]
        assert own["gpuHours"] > 0.99
        assert (own["properties"]["pod"], own["properties"]["node"]) == ("mine", "n")
        assert ask("window=never")[0] == 400
        assert ask("window=1d", "wrong")[0] == 403
        assert Visitor(console.url).request("GET", "/allocation?window=1d").status == 401
    finally:
        console.stop()
