"""``cost``: who used which GPUs for how long, and what that cost."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated, Any, Final, Literal, get_args

from lockstep.api import timestamp
from lockstep.api.usage_query import Group, UsageQuerySpec, UsageQueryStatus
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Cluster
from lockstep.cli.output import note, print_table
from lockstep.cli.usage_records import (
    PricesFile,
    RecordsFile,
    Usage,
    lists_of,
    period,
    prices_of,
    usage_of,
)
from lockstep.cli.views.table import Column, table
from lockstep.insight.cost import billing
from lockstep.insight.cost.allocation import allocations
from lockstep.insight.cost.billing import Bill, Line
from lockstep.insight.cost.budgets import standings
from lockstep.kube.usage import NoAnswer, ask, ask_all

app = App()
Printed = Literal["table", "json", "csv", "allocation"]
_GROUPS: Final[dict[str, Group]] = {one: one for one in get_args(Group)}


@app.command()
def cost(
    *,
    by: Annotated[
        str,
        "What to sum up by, separated by commas: job, pod, user, queue, namespace, purpose, month.",
    ] = "job",
    month: Annotated[str, "This month alone (2026-11), in UTC."] = "",
    since: Annotated[str, "From this time on (RFC 3339)."] = "",
    until: Annotated[str, "Until this time (RFC 3339); now by default."] = "",
    namespace: Annotated[
        str | None, "--namespace", "-n", "What this namespace used, alone."
    ] = None,
    records: RecordsFile = None,
    price_file: PricesFile = None,
    output: Annotated[
        Printed,
        "--output",
        "-o",
        "How to print it; allocation is what OpenCost answers at /allocation.",
    ] = "table",
    target: Cluster,
) -> None:
    """Show what jobs, users or queues used of the GPUs, and what it cost.

    The recorder answers: an administrator about all namespaces, others about those of their teams.
    For an administrator GPU time that no pod held is a line of its own, so that the lines sum up to
    the bill of the nodes. Hours for which no PriceList holds a price are shown without money.

    \b
    Examples:
      lockstep cost
      lockstep cost --by queue,month -o csv
      lockstep cost --by user --month 2026-11 --prices prices.yaml
      lockstep cost --by namespace,month -o allocation
    """
    groups = _groups(by)
    start, end = period(month, since, until)
    if records is not None:
        known = prices_of(price_file, target)
        usage = usage_of(records, known, start, end)
        _of_file(usage, groups, output)
        return
    lists = [one.spec for one in lists_of(price_file)] if price_file is not None else []
    spec = UsageQuerySpec(
        by=[_GROUPS[one] for one in groups],
        start=timestamp.show(start) if start else None,
        end=timestamp.show(end) if until else None,
        prices=lists,
        shape="Allocation" if output == "allocation" else "Lines",
    )
    answers = run(target, lambda session: _asked(session, spec, namespace))
    _show_answers(list(answers.values()), groups, output)


async def _asked(
    session: Session, spec: UsageQuerySpec, namespace: str | None
) -> dict[str, UsageQueryStatus]:
    try:
        if namespace is not None:
            return {namespace: await ask(session.client, namespace, spec)}
        return await ask_all(session.client, session.namespace, spec)
    except NoAnswer as error:
        raise CommandFailed(str(error), "--records FILE reads the records of a file") from None


def _show_answers(answers: list[UsageQueryStatus], groups: list[str], output: Printed) -> None:
    if output == "allocation":
        if len(answers) > 1:
            raise BadInput(
                "-o allocation: given several namespaces; name one of them with -n NAMESPACE"
            )
        print(json.dumps(json.loads(answers[0].allocation), indent=2), flush=True)
        return
    found = billing.read_bill(answers)
    _show(found, groups, output, free=answers[0].free is not None)
    _doubts(found)
    for words in dict.fromkeys(words for one in answers for words in one.warnings):
        note(words)


def _of_file(usage: Usage, groups: list[str], output: Printed) -> None:
    start, end, known = usage.start, usage.end, usage.prices
    found = billing.bill(usage.nodes, usage.claims, known, by=groups, start=start, end=end)
    if output == "allocation":
        answer = allocations(usage.nodes, usage.claims, known, by=groups, start=start, end=end)
        print(json.dumps(answer, indent=2), flush=True)
    else:
        _show(found, groups, output, free=True)
    _doubts(found)
    # A month of which only a part was asked for says nothing about its budget.
    if end > start and start <= billing.month_start(end - 1):
        for one in standings(usage.nodes, usage.claims, known, end=end):
            if one.state:
                note(one.words)


def _groups(text: str) -> list[str]:
    found = [one.strip() for one in text.split(",") if one.strip()]
    allowed = [*billing.GROUPS, "month"]
    for one in found:
        if one not in allowed:
            raise BadInput(f"--by: given {one!r}; must be some of {', '.join(allowed)}")
    if not found:
        raise BadInput(f"--by: given {text!r}; must be some of {', '.join(allowed)}")
    return list(dict.fromkeys(found))


def _show(found: Bill, groups: list[str], output: Printed, *, free: bool) -> None:
    names = billing.columns(groups)
    empty = tuple("" for _ in names[1:])
    lines = [(key, found.lines[key]) for key in sorted(found.lines)]
    lines.sort(key=lambda one: -one[1].gpu_hours if "month" not in groups else 0.0)
    rows = [*lines, ((billing.FREE_NAME, *empty), found.free)] if free else lines
    if output == "json":
        print(json.dumps(_json(found, names, rows), indent=2), flush=True)
    elif output == "csv":
        print(_csv(found, names, rows), end="", flush=True)
    else:
        _table(found, names, [*rows, (("(total)", *empty), found.total)])


def _doubts(found: Bill) -> None:
    if found.total.unpriced_gpu_hours > 0:
        hours = found.total.unpriced_gpu_hours
        note(f"{hours:.2f} GPU-hours have no price: no PriceList covers their nodes then")
    if found.stray_gpu_hours > 0.01:
        note(f"{found.stray_gpu_hours:.2f} GPU-hours are left out: no recorded node had these GPUs")


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
