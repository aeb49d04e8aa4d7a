"""PriceList: what nodes and GPUs cost an hour."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lockstep.api.meta import ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.timestamp import Time
from lockstep.api.wire import Wire

Money = Annotated[float, Meta(ge=0)]


class Price(Wire, frozen=True):
    """The price of some nodes from a time on: exactly one of ``node_hour`` and ``gpu_hour``."""

    selector: Annotated[
        dict[str, str],
        Meta(
            description="Labels of the nodes that it holds for; all nodes when left out. The price "
            "with most labels goes before the others."
        ),
    ] = {}
    node_hour: Annotated[Money | None, Meta(description="A whole node costs that an hour.")] = None
    gpu_hour: Annotated[Money | None, Meta(description="One GPU costs that an hour.")] = None
    spot: Annotated[
        bool,
        Meta(description="Whether it is the price of nodes that the cloud may take back."),
    ] = False
    valid_from: Annotated[
        Time | None,
        Meta(description="Since when it holds, until a later one of the same selector does."),
    ] = None


class PriceListSpec(Wire, frozen=True):
    """Prices in one currency."""

    currency: Annotated[
        str, Meta(pattern="^[A-Z]{3}$", description="Its code, such as EUR or USD.")
    ]
    prices: Annotated[list[Price], Meta(max_length=1000, description="What which nodes cost.")] = []


class PriceList(Wire, frozen=True):
    """What nodes cost; all lists of a cluster together say it."""

    metadata: ObjectMeta
    spec: PriceListSpec
    api_version: str = API_VERSION
    kind: str = "PriceList"


PRICE_LISTS = Resource(GROUP, VERSION, "pricelists", "PriceList", False, PriceList)
