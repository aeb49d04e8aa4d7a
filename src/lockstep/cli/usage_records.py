"""What ``cost`` and ``report`` start from: a period, prices, and the usage records within it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from lockstep.api import timestamp
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.packing import unpack
from lockstep.api.price_list import PRICE_LISTS, PriceList
from lockstep.api.usage_query import UsageQuerySpec
from lockstep.api.wire import convert
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.target import Target
from lockstep.insight.cost import billing, prices
from lockstep.insight.cost.prices import HOUR
from lockstep.insight.history.records import Claim, NodeSpan, Records, merge
from lockstep.insight.history.store import Store
from lockstep.kube.usage import NoAnswer, Refused, ask

RecordsFile = Annotated[
    Path | None, "--records", "Usage records from this file, not from the recorder."
]
PricesFile = Annotated[
    Path | None, "--prices", "PriceLists from this file (YAML), not from the cluster."
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Nodes and claims that last some time within a period (Unix seconds), and the prices."""

    nodes: list[NodeSpan]
    claims: list[Claim]
    prices: prices.Prices
    start: float
    end: float


def prices_of(path: Path | None, target: Target) -> prices.Prices:
    """Return the prices in the file *path*, or those of the cluster *target*.

    Raises:
        BadInput: when they contradict each other, or the file holds none.
    """
    lists = lists_of(path) if path is not None else run(target, _listed)
    known, wrong = prices.read(lists)
    if wrong:
        raise BadInput("; ".join(str(one) for one in wrong))
    return known


def usage_of(path: Path, known: prices.Prices, start: float, end: float) -> Usage:
    """Return what the file *path* has on record.

    Raises:
        CommandFailed: when there is no such file, or it cannot be read.
    """
    if not path.is_file():
        raise CommandFailed(
            f"there are no usage records at {path}",
            "`lockstep up` and `lockstep controllers --records FILE` write them; --records names "
            "another file",
        )
    try:
        with closing(Store(path, read_only=True)) as store:
            return Usage(store.nodes(start, end), store.claims(start, end), known, start, end)
    except sqlite3.Error as error:
        raise CommandFailed(f"the usage records at {path} cannot be read: {error}") from None


def usage_asked(target: Target, known: prices.Prices, start: float, end: float) -> Usage:
    """Return what the recorder of the cluster *target* has on record.

    Raises:
        CommandFailed: when it does not answer, or refuses.
    """
    nodes, claims = run(target, lambda session: _asked(session, start, end))
    return Usage(nodes, claims, known, start, end)


async def _asked(session: Session, start: float, end: float) -> Records:
    spec = UsageQuerySpec(
        by=["job"], start=timestamp.show(start), end=timestamp.show(end), shape="Records"
    )
    try:
        answer = await ask(session.client, SYSTEM_NAMESPACE, spec)
        found: Records = unpack(answer.records, Records)
        return found
    except Refused as error:
        if end - start < 2 * HOUR:
            raise CommandFailed(str(error), "--records FILE reads the records of a file") from None
    except NoAnswer as error:
        raise CommandFailed(str(error), "--records FILE reads the records of a file") from None
    # An answer has a largest size: each half is asked for.
    middle = (start + end) // 2
    return merge(await _asked(session, start, middle), await _asked(session, middle, end))


def period(month: str, since: str, until: str) -> tuple[float, float]:
    """Return the start and end (Unix seconds) that the options of these names mean.

    Raises:
        BadInput: when one is no such time, or they contradict each other.
    """
    now = time.time()
    if month:
        if since or until:
            raise BadInput("--month cannot be given together with --since or --until")
        try:
            start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise BadInput(f"--month: given {month!r}; must be a month such as 2026-11") from None
        return start, min(now, billing.month_end(start))
    start, end = _time("--since", since, 0.0), _time("--until", until, now)
    if end <= start:
        raise BadInput(f"--until: given {until!r}; must be later than --since")
    return start, min(end, now)


def _time(option: str, text: str, default: float) -> float:
    if not text:
        return default
    try:
        return timestamp.parse(text)
    except ValueError:
        raise BadInput(
            f"{option}: given {text!r}; must be a time such as 2026-11-01T00:00:00Z"
        ) from None


def lists_of(path: Path) -> list[PriceList]:
    """Return the price lists in the file *path*.

    Raises:
        BadInput: when it cannot be read, or holds others.
    """
    import yaml

    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadInput(f"--prices: {path} cannot be read: {error}") from None
    found = []
    for one in documents:
        if one is None:
            continue
        try:
            found.append(convert(one, PriceList))
        except msgspec.ValidationError as error:
            raise BadInput(f"--prices: {path} holds no valid PriceList: {error}") from None
    return found


async def _listed(session: Session) -> list[PriceList]:
    return list((await session.client.list(PRICE_LISTS)).items)
