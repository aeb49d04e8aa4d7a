"""``cost``: who used which GPUs for how long, and what that cost."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from lockstep.api import timestamp
from lockstep.api.price_list import PRICE_LISTS, PriceList
from lockstep.api.wire import convert
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Context, Kubeconfig
from lockstep.cli.output import note, print_table
from lockstep.cli.up.parts import RECORDS
from lockstep.cli.views.table import Column, table
from lockstep.insight.cost import billing, prices
from lockstep.insight.cost.billing import Bill, Line
from lockstep.insight.history.store import Store
from lockstep.kube.locate import embedded_data

app = typer.Typer(rich_markup_mode=None)


class Printed(StrEnum):
    """How it is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@app.command()
def cost(
    *,
    by: Annotated[
        str,
        typer.Option(
            help="What to sum up by, separated by commas: job, user, queue, namespace, purpose, "
            "month."
        ),
    ] = "job",
    month: Annotated[str, typer.Option(help="This month alone (2026-11), in UTC.")] = "",
    since: Annotated[str, typer.Option(help="From this time on (RFC 3339).")] = "",
    until: Annotated[str, typer.Option(help="Until this time (RFC 3339); now by default.")] = "",
    records: Annotated[
        Path | None,
        typer.Option(help="The file of usage records; that of `lockstep up` by default."),
    ] = None,
    price_file: Annotated[
        Path | None,
        typer.Option("--prices", help="PriceLists from this file (YAML), not from the cluster."),
    ] = None,
    output: Annotated[
        Printed, typer.Option("--output", "-o", help="How to print it.")
    ] = Printed.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what jobs, users or queues used of the GPUs, and what it cost.

    What nobody held is a line of its own, so that the lines sum up to the bill of the nodes. Hours
    for which no PriceList holds a price are shown without money.

    \b
    Examples:
      lockstep cost
      lockstep cost --by queue,month -o csv
      lockstep cost --by user --month 2026-11 --prices prices.yaml
    """
    groups = _groups(by)
    start, end = _period(month, since, until)
    if price_file is not None:
        lists = _lists_of(price_file)
    else:
        lists = run(Target(kubeconfig, context), _listed)
    known, wrong = prices.read(lists)
    if wrong:
        raise BadInput("; ".join(str(one) for one in wrong))
    found = _bill(records or embedded_data() / RECORDS, known, groups, start, end)
    _show(found, groups, output)


def _groups(text: str) -> list[str]:
    found = [one.strip() for one in text.split(",") if one.strip()]
    allowed = [*billing.GROUPS, "month"]
    for one in found:
        if one not in allowed:
            raise BadInput(f"--by: given {one!r}; must be some of {', '.join(allowed)}")
    if not found:
        raise BadInput(f"--by: given {text!r}; must be some of {', '.join(allowed)}")
    return list(dict.fromkeys(found))


def _period(month: str, since: str, until: str) -> tuple[float, float]:
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


def _lists_of(path: Path) -> list[PriceList]:
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


def _bill(path: Path, known: prices.Prices, groups: list[str], start: float, end: float) -> Bill:
    if not path.is_file():
        raise CommandFailed(
            f"there are no usage records at {path}",
            "`lockstep up` and `lockstep controllers --records FILE` write them; --records names "
            "another file",
        )
    try:
        store = Store(path, read_only=True)
        try:
            nodes, claims = store.nodes(start, end), store.claims(start, end)
        finally:
            store.close()
    except sqlite3.Error as error:
        raise CommandFailed(f"the usage records at {path} cannot be read: {error}") from None
    return billing.bill(nodes, claims, known, by=groups, start=start, end=end)


def _show(found: Bill, groups: list[str], output: Printed) -> None:
    names = billing.columns(groups)
    empty = tuple("" for _ in names[1:])
    lines = [(key, found.lines[key]) for key in sorted(found.lines)]
    lines.sort(key=lambda one: -one[1].gpu_hours if "month" not in groups else 0.0)
    rows = [*lines, ((billing.FREE_NAME, *empty), found.free)]
    if output is Printed.JSON:
        print(json.dumps(_json(found, names, rows), indent=2), flush=True)
    elif output is Printed.CSV:
        print(_csv(found, names, rows), end="", flush=True)
    else:
        _table(found, names, [*rows, (("(total)", *empty), found.total)])
    if found.total.unpriced_gpu_hours > 0:
        hours = found.total.unpriced_gpu_hours
        note(f"{hours:.2f} GPU-hours have no price: no PriceList holds one for their nodes then")
    if found.stray_gpu_hours > 0.01:
        note(f"{found.stray_gpu_hours:.2f} GPU-hours are left out: no node on record had the GPUs")


def _cells(line: Line) -> dict[str, float]:
    return {
        "gpuHours": round(line.gpu_hours, 4),
        "cost": round(line.cost, 4),
        "unpricedGpuHours": round(line.unpriced_gpu_hours, 4),
        "startingGpuHours": round(line.starting_gpu_hours, 4),
    }


Rows = list[tuple[tuple[str, ...], Line]]


def _json(found: Bill, names: list[str], rows: Rows) -> dict[str, Any]:
    lines = [{**dict(zip(names, key, strict=True)), **_cells(line)} for key, line in rows]
    return {
        "currency": found.currency or None,
        "lines": lines,
        "total": _cells(found.total),
        "strayGpuHours": round(found.stray_gpu_hours, 4),
    }


def _csv(found: Bill, names: list[str], rows: Rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, *_cells(Line()), "currency"])
    for key, line in rows:
        writer.writerow([*map(_harmless, key), *_cells(line).values(), found.currency])
    return text.getvalue()


def _harmless(text: str) -> str:
    """Return *text* so that no spreadsheet takes it for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _table(found: Bill, names: list[str], rows: Rows) -> None:
    money = f"Cost ({found.currency})" if found.currency else "Cost"
    numbers = ("GPU hours", "of them starting", "without price", money)
    heads = [name.capitalize() for name in names]
    shown = table(
        (*heads, *(Column(one, number=True) for one in numbers)),
        (
            (
                *key,
                f"{line.gpu_hours:.2f}",
                f"{line.starting_gpu_hours:.2f}",
                f"{line.unpriced_gpu_hours:.2f}",
                f"{line.cost:.2f}" if found.currency else None,
            )
            for key, line in rows
        ),
    )
    print_table(shown)
