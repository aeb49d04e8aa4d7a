"""Where a fault is, as far as a line of a log names it: node, rank, GPU, network card, disk."""

from __future__ import annotations

import re
from typing import Final

from lockstep.health.core.findings import pci

_RANKS: Final = (
    re.compile(r"\[(?:default)?(\d{1,6})\]:"),
    re.compile(r"\[1,(\d{1,6})\]<std"),
    re.compile(r"\b[Rr]ank[ _]?(?:\d+ of )?[:=#]?\s*\[?(\d{1,6})\b"),
)
_NODES: Final = (
    re.compile(r"from peer (\d+\.\d+\.\d+\.\d+)"),
    re.compile(r"remote peer ([\w.-]+)<"),
    re.compile(r"^\W*([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] "),
    re.compile(r"^\[pod/([\w.-]+)/"),
    re.compile(r"\bip=(\d+\.\d+\.\d+\.\d+)\)"),
    re.compile(r"\bhost(?:name)?\s*[:=]\s*([A-Za-z][\w.-]*)"),
    re.compile(r"\bnode[ :=]+\"?([A-Za-z][\w.-]*\d[\w.-]*)"),
    re.compile(
        r"^(?:\w{3} [ \d]\d|\d{4}-\d\d-\d\dT)[\d:.+-]* ?(?:\d\d:\d\d:\d\d )?"
        r"([a-zA-Z][\w.-]*) [\w./-]+(?:\[\d+\])?: "
    ),
    re.compile(r"^([a-z][\w-]*\d+): "),
)
_GPU: Final = re.compile(
    r"\b(?:GPU|gpu|CUDA device)[ :/#]*(\d{1,2})\b(?![:.\d])|:\d+:\d+ \[(\d{1,2})\] NCCL"
)
_OTHERS: Final = re.compile(
    r"\b(mlx\d_\d+(?::\d)?|rocep\w+|bond\d+|ib\d+|eth\d+|en[ospx]\w+|nvme\d+(?:n\d+)?(?:p\d+)?|sd[a-z]{1,2}\d*"
    r"|md\d+|dm-\d+|MC\d+|CPU\d+|ata\d+|nvswitch\d+|GPU-[0-9a-f-]{8,})\b"
)
MOST: Final = 16


def rank_of(text: str) -> int | None:
    """Return the rank that *text* is of, where it says so."""
    found = next((m for pattern in _RANKS if (m := pattern.search(text))), None)
    return None if found is None else int(found[1])


def node_of(text: str) -> str:
    """Return the node, pod or address that *text* names."""
    found = next((m for pattern in _NODES if (m := pattern.search(text))), None)
    return "" if found is None else found[1]


def devices_of(text: str) -> list[str]:
    """Return the devices that *text* names: PCI addresses, ``gpu/3``, and what Linux calls them."""
    found = dict.fromkeys(filter(None, (pci(word) for word in re.split(r"[\s()\[\],;=]+", text))))
    if not found:
        found |= dict.fromkeys(f"gpu/{one or other}" for one, other in _GPU.findall(text))
    return [*(found | dict.fromkeys(_OTHERS.findall(text)))][:MOST]
