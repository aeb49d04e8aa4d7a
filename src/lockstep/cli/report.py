"""``report``: what a month's GPU time went into, what was wasted, and what to do about it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from lockstep.api.code import CODE_LABEL
from lockstep.api.core import CONFIG_MAPS
from lockstep.cli import advising
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Cluster
from lockstep.cli.output import note
from lockstep.cli.usage_records import (
    PricesFile,
    RecordsFile,
    period,
    prices_of,
    usage_asked,
    usage_of,
)
from lockstep.insight.report import rendering
from lockstep.insight.report.summing import Finding, JobName
from lockstep.insight.report.summing import report as summed
from lockstep.kube.errors import Forbidden

app = App()


@app.command()
def report(
    *,
    month: Annotated[str, "The month (2026-11), in UTC; this one by default."] = "",
    records: RecordsFile = None,
    price_file: PricesFile = None,
    output: Annotated[Literal["html", "json"], "--output", "-o", "How to print it."] = "html",
    file: Annotated[Path | None, "--file", "-f", "Write it to this file."] = None,
    target: Cluster,
) -> None:
    """Report a month: utilisation, goodput, what was wasted, what to do and what that saves.

    The recorder answers an administrator. The page needs nothing from elsewhere, and runs no
    script. With --prices and --records no cluster is asked. With --prices what `lockstep advise`
    has said of jobs is not part of it.

    \b
    Examples:
      lockstep report --month 2026-11 --file november.html
      lockstep report -o json
      lockstep report --month 2026-11 --prices prices.yaml --records usage.db
    """
    month = month or datetime.now(UTC).strftime("%Y-%m")
    start, end = period(month, "", "")
    if end <= start:
        raise BadInput(f"--month: given {month!r}; must be a month that has begun")
    known = prices_of(price_file, target)
    findings = run(target, _findings) if price_file is None else {}
    if records is not None:
        usage = usage_of(records, known, start, end)
    else:
        usage = usage_asked(target, known, start, end)
    found = summed(usage.nodes, usage.claims, known, start=start, end=end, findings=findings)
    if output == "json":
        text = json.dumps(rendering.tree(found), indent=2) + "\n"
    else:
        text = rendering.page(found)
    _write(text, file)
    for one in rendering.doubts(found):
        note(one)


def _write(text: str, file: Path | None) -> None:
    if file is None:
        print(text, end="", flush=True)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written: {error.strerror}") from None
    note(f"written to {file}")


async def _findings(session: Session) -> dict[JobName, Finding]:
    """Return the dearest cause that advice has named, for each job."""
    try:
        maps = (await session.client.list(CONFIG_MAPS, label_selector=f"!{CODE_LABEL}")).items
    except Forbidden:
        note("what `lockstep advise` has said is left out: your user may not list ConfigMaps")
        return {}
    found = {}
    for one in maps:
        name = one.metadata.name
        if not name.endswith(advising.SUFFIX):
            continue
        told = advising.dearest(one.data.get(advising.KEY, ""))
        if told is not None:
            found[one.metadata.namespace, name.removesuffix(advising.SUFFIX)] = Finding(*told)
    return found
