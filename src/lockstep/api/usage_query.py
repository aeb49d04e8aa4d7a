"""UsageQuery: a question to the recorder about what a namespace has used and what that cost."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.price_list import Price, PriceListSpec
from lockstep.api.resource import Resource
from lockstep.api.timestamp import Time
from lockstep.api.wire import Wire

Group = Literal["job", "pod", "user", "queue", "namespace", "purpose", "month"]


class UsageQuerySpec(Wire, frozen=True):
    """The period, and what usage is summed up by."""

    by: Annotated[list[Group], Meta(min_length=1, max_length=7)]
    """What usage is summed up by."""
    start: Time | None = None
    """From when on; from the first record on."""
    end: Time | None = None
    """Until when; until now when left out."""
    prices: Annotated[list[PriceListSpec], Meta(max_length=20)] = []
    """Prices to count with, in place of the PriceLists."""
    shape: Literal["Lines", "Allocation", "Records", "Jobs"] = "Lines"
    """Lines, the JSON that OpenCost answers at /allocation, what is on record (in the namespace
    lockstep-system alone), or the namespace's jobs, also deleted ones."""
    job: Annotated[str, Meta(max_length=253)] = ""
    """With Jobs: those of this name; all when empty."""


class UsageLine(Wire, frozen=True):
    """What one group used: GPU hours by whole cards, and their cost."""

    key: list[str] = []
    gpu_hours: float = 0.0
    cost: float = 0.0
    unpriced_gpu_hours: float = 0.0
    starting_gpu_hours: float = 0.0


class UsageQueryStatus(Wire, frozen=True):
    """The recorder's answer."""

    state: Literal["", "Answered", "Refused"] = ""
    message: str = ""
    """Why the recorder refused."""
    currency: str = ""
    columns: list[str] = []
    """What the values of a key are."""
    lines: list[UsageLine] = []
    free: UsageLine | None = None
    """GPU time that no pod held; told in the namespace lockstep-system alone."""
    stray_gpu_hours: float = 0.0
    prices: list[Price] = []
    """Prices that hold for what was used."""
    warnings: list[str] = []
    """Budgets that are nearly spent."""
    allocation: str = ""
    """The answer in OpenCost's shape, as JSON."""
    records: str = ""
    """Nodes and claims, or jobs, newest first: JSON, zlib, base64."""


class UsageQuery(OwnObject, frozen=True):
    """A question about the use of GPUs in its namespace; the recorder answers and deletes it.

    In the namespace lockstep-system it asks about all namespaces.
    """

    spec: UsageQuerySpec
    status: UsageQueryStatus = UsageQueryStatus()
    kind: str = "UsageQuery"


USAGE_QUERIES = Resource(GROUP, VERSION, "usagequeries", "UsageQuery", True, UsageQuery)
