"""The layout of a job's ranks: nodes as boxes, ranks inside, what the groups cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from lockstep.cli.views.table import cell
from lockstep.scheduler.core.explain.rank_layout import CollectiveCost, RankLayout, RankSeat

WIDTH = 100
"""Columns that a row of boxes may take."""
_AXES = {"tp": "tensor", "cp": "context", "dp": "data", "pp": "stage"}
_UNITS = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def layout_lines(picture: RankLayout, *, placed: bool) -> list[str]:
    """Return the drawing, domain by domain, and the bill below it."""
    lines = [] if placed else ["it would be laid out so, were it the next one:"]
    seats = sorted(picture.seats, key=lambda seat: (seat.domains, seat.ranks.start))
    for domains, inside in groupby(seats, key=lambda seat: seat.domains):
        lines.append(" / ".join(map(cell, domains)) or "all nodes")
        lines += _boxes(list(inside))
    lines += ["", *_bill(picture.shares)]
    ratio = picture.by_chance / picture.seconds if picture.seconds else 1.0
    lines.append(
        f"communication a step: {_seconds(picture.seconds)} without overlap; in random order "
        f"{_seconds(picture.by_chance)} ({ratio:.2f} times as much)"
    )
    return lines


def _boxes(seats: Sequence[RankSeat]) -> Iterator[str]:
    by_node: dict[str, list[RankSeat]] = {}
    for seat in seats:
        by_node.setdefault(seat.node, []).append(seat)
    texts = {node: [_words(seat) for seat in inside] for node, inside in by_node.items()}
    inner = max(max(len(node), *map(len, text)) for node, text in texts.items()) + 2
    a_row = max(1, WIDTH // (inner + 3))
    nodes = list(texts)
    for start in range(0, len(nodes), a_row):
        row = nodes[start : start + a_row]
        height = max(len(texts[node]) for node in row)
        yield "  " + " ".join(f"┌ {cell(node)} {'─' * (inner - len(node) - 2)}┐" for node in row)
        for line in range(height):
            here = (texts[node][line] if line < len(texts[node]) else "" for node in row)
            yield "  " + " ".join(f"│ {text:<{inner - 2}} │" for text in here)
        yield "  " + " ".join(f"└{'─' * inner}┘" for _ in row)


def _words(seat: RankSeat) -> str:
    along = " ".join(f"{_AXES[axis]} {_range(at)}" for axis, at in seat.coordinates.items())
    return f"{cell(seat.pod)}: ranks {_range(seat.ranks)}  {along}".rstrip()


def _range(numbers: range) -> str:
    first, last = numbers.start, numbers.stop - 1
    return str(first) if first == last else f"{first}-{last}"


def _bill(shares: Sequence[CollectiveCost]) -> Iterator[str]:
    yield f"{'groups':<14}{'number':>7}{'size':>6}{'bytes a step':>14}{'seconds':>10}  under one"
    for share in shares:
        under = ", ".join(
            tier if len(share.under) == 1 else f"{tier} ({number})"
            for tier, number in sorted(share.under.items(), key=lambda item: -item[1])
        )
        yield (
            f"{share.name:<14}{share.groups:>7}{share.size:>6}{_amount(share.volume):>14}"
            f"{_seconds(share.seconds):>10}  {under}"
        )


def _amount(volume: float) -> str:
    for suffix, size in _UNITS:
        if volume >= size:
            return f"{volume / size:.3g} {suffix}B"
    return f"{volume:.0f} B"


def _seconds(value: float) -> str:
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
