"""``top --local``: this machine's GPUs, or the processes on them, as NVML tells them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from lockstep.api.device_usage import DeviceUsage
from lockstep.api.meta import ObjectMeta
from lockstep.cli.output import note
from lockstep.cli.views import devices
from lockstep.cli.views.table import Column, Table, table
from lockstep.devices import nvml
from lockstep.devices.core.exposition import Shown
from lockstep.devices.core.model import Card
from lockstep.devices.core.usage import usage
from lockstep.devices.sampling import Lost, Process, Sample, Sampler
from lockstep.nodes.process.machine_info import node_name

FIRST: Final = 0.1
"""Seconds between the first two readings: rates are known from the second on."""
COLUMNS: Final[tuple[Column | str, ...]] = (
    *(Column(name, number=True) for name in ("GPU", "PID")),
    "User",
    *(Column(name, number=True) for name in ("Memory", "SM %")),
    Column("Command", text=True),
)


def pictures(*, processes: bool) -> Iterator[tuple[Table, str, str]]:
    """Yield this machine's GPUs, or their processes, with a line below and one for none."""
    with nvml.session() as (lib, why):
        if lib is None:
            note(f"no GPU of this machine can be read: {why}")
            return
        cards = nvml.all_cards(lib)
        samplers = {card.index: Sampler(lib, card.index) for card in cards if not card.trouble}
        for card in cards:
            _read(lib, card, samplers)
        time.sleep(FIRST)
        while True:
            read = [_read(lib, card, samplers) for card in cards]
            now = [card for card, _ in read]
            shown = [Shown(card, sample.values) for card, sample in read]
            here = DeviceUsage(metadata=ObjectMeta(name=node_name(None)), gpus=usage(now, shown))
            if processes:
                yield process_table(read), "", "no process uses a GPU of this machine"
            else:
                yield devices.gpu_table([here], {}), devices.summary([here]), ""


def _read(lib: Any, card: Card, samplers: dict[int, Sampler]) -> tuple[Card, Sample]:
    """Return a card with its reading, or with what is wrong with it."""
    try:
        return card, samplers[card.index].read() if card.index in samplers else Sample()
    except (Lost, lib.NVMLError) as error:
        return replace(card, trouble=str(error)), Sample()


def process_table(read: Iterable[tuple[Card, Sample]]) -> Table:
    """Return each process on a card with its user and command."""
    return table(
        COLUMNS,
        ((card.index, *_row(one)) for card, sample in read for one in sample.processes),
    )


def _row(one: Process) -> tuple[Any, ...]:
    user, command = "", ""
    # Processes of other containers and users are not to be seen from everywhere.
    with contextlib.suppress(OSError, KeyError):
        place = Path(f"/proc/{one.pid}")
        command = (place / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
        user = place.owner()
    return one.pid, user, f"{one.memory:.0f}Mi", round(one.sm), command
