"""PriceList: what nodes and GPUs cost an hour."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.timestamp import Time
from lockstep.api.wire import Wire

Money = Annotated[float, Meta(ge=0)]


class Price(Wire, frozen=True):
    """The price of some nodes from a time on: exactly one of ``node_hour`` and ``gpu_hour``."""

    selector: dict[str, str] = {}
    """Labels of the nodes that it holds for; all nodes when left out. The price with most labels
    goes before the others."""
    node_hour: Money | None = None
    """A whole node costs that an hour."""
    gpu_hour: Money | None = None
    """One GPU costs that an hour."""
    spot: bool = False
    """Whether it is the price of nodes that the cloud may take back."""
    valid_from: Time | None = None
    """Since when it holds, until a later one of the same selector does."""


class Budget(Wire, frozen=True):
    """What a queue, a namespace, a user or the whole cluster is to spend in a month (UTC)."""

    month: Money
    """The most to spend in a month, more than 0."""
    queue: str = ""
    """What jobs of this queue cost."""
    namespace: str = ""
    """What jobs of this namespace cost."""
    user: str = ""
    """What jobs of this user cost. Without queue, namespace and user: what all nodes cost, free GPU
    time included."""
    warn_at: Annotated[float, Meta(ge=0, le=1)] = 0.8
    """Part of it from which on there is a warning."""
    hold: bool = False
    """Whether jobs that have not started wait once it is spent."""


class PriceListSpec(Wire, frozen=True):
    """Prices in one currency."""

    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")]
    """Its code, such as EUR or USD."""
    prices: Annotated[list[Price], Meta(max_length=1000)] = []
    """What which nodes cost."""
    budgets: Annotated[list[Budget], Meta(max_length=1000)] = []
    """What is to be spent at most in a month."""


class PriceList(OwnObject, frozen=True):
    """What nodes cost; all lists of a cluster together say it."""

    spec: PriceListSpec
    kind: str = "PriceList"


PRICE_LISTS = Resource(GROUP, VERSION, "pricelists", "PriceList", False, PriceList)
