"""Claims and prices of jobs, as tests of costs write them."""

from __future__ import annotations

from typing import Any

from lockstep.api.price_list import PriceList
from lockstep.api.wire import convert
from lockstep.insight.cost import prices
from lockstep.insight.history.records import Claim

Json = dict[str, Any]


HOUR = 3600.0


def listed(*given: Json, currency: str = "EUR", name: str = "list") -> PriceList:
    spec = {"currency": currency, "prices": list(given)}
    return convert({"metadata": {"name": name}, "spec": spec}, PriceList)


def known(*given: Json) -> prices.Prices:
    found, wrong = prices.read([listed(*given)])
    assert not wrong
    return found


def claim(uid: str, gpu: int, start: float, end: float | None, **more: Any) -> Claim:
    fields: Json = {
        "purpose": "running",
        "node": "n",
        "namespace": "s",
        "pod": uid,
        "gang": uid,
        "job": uid,
        "queue": "q",
        "user": "",
        "share": 1.0,
    }
    return Claim(pod_uid=uid, gpu=gpu, start=start, end=end, **(fields | more))
