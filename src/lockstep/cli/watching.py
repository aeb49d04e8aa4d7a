"""``--watch``: a table, then each row that changes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from lockstep.api.resource import Resource
from lockstep.cli.connect import Session
from lockstep.cli.output import Format, fitted
from lockstep.cli.views import catalog
from lockstep.cli.views.table import Table, plain
from lockstep.kube.informer import Informer

BATCH = 0.1
"""Seconds in which changes are gathered, so that a burst prints each row once."""


async def watch_table(session: Session, res: Resource[Any], selector: str, output: Format) -> None:
    """Print the table of *res*, then its rows as they change, until cancelled."""
    view = catalog.view(res)
    client = session.client
    sources: dict[str, Informer[Any]] = {more.kind: Informer(client, more) for more in view.more}
    sources[res.kind] = Informer(client, res, namespace=session.scope(res), label_selector=selector)
    changed = asyncio.Event()
    for source in sources.values():
        source.subscribe(lambda _: changed.set())
    async with asyncio.TaskGroup() as group:
        for source in sources.values():
            group.create_task(source.run())
        for source in sources.values():
            await source.wait_synced()
        shown: Table | None = None
        while True:
            changed.clear()
            built = view.build({kind: list(s) for kind, s in sources.items()}, time.time())
            now = fitted(built, output, namespaces=session.all_namespaces)
            rows = None if shown is None else catalog.changed(shown, now)
            if rows is None or rows:
                print(plain(now, rows), flush=True)
            shown = now
            await changed.wait()
            await asyncio.sleep(BATCH)
