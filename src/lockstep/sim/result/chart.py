"""Charts of a simulation as SVG, alone or in a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import Any

import numpy as np

from lockstep.sim.result.figures import CLASSES, size_classes
from lockstep.sim.result.job_records import JobRecords
from lockstep.sim.result.record import Compared, Result, Sample

WIDTH, HEIGHT = 860, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 34
BARS = 46
UNITS = ((86400 * 2, 86400.0, "days"), (7200, 3600.0, "hours"), (120, 60.0, "minutes"))
SHORT = {"days": "d", "hours": "h", "minutes": "min", "seconds": "s"}

STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--faint:#8793a5;--line:#dde3ea;--paper:#fff;
--used:#2f6fde;--stranded:#e7a13c;--waiting:#c8455b}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf1;--faint:#8b97a9;--line:#313a48;
--paper:#161b22;--used:#5c93f0;--stranded:#e0a550;--waiting:#e06a7d}}
svg{font:12px system-ui,sans-serif;background:var(--paper)}
text{fill:var(--ink)}.faint{fill:var(--faint)}.grid{stroke:var(--line);stroke-width:1}
.used{fill:var(--used);fill-opacity:.85}.stranded{fill:var(--stranded)}
.capacity{fill:none;stroke:var(--ink);stroke-width:1.2}
.waiting{fill:none;stroke:var(--waiting);stroke-width:1.6}.bar{fill:var(--used)}
""".replace("\n", "")
PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
    "max-width:900px;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}"
    "td,th{padding:.2rem .8rem;border-bottom:1px solid var(--line);text-align:right}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
)


def svg(result: Result) -> str:
    """Return one picture: GPUs over time, below it the waits by size of job.

    Last come the communication costs, where jobs state their parallelism.
    """
    parts = [_over_time(result.samples, result.end), _waits(result.lives)]
    if result.communication:
        parts.append(_communication(result.communication, result.end))
    height = len(parts) * HEIGHT
    drawn = "".join(
        f'<g transform="translate(0 {number * HEIGHT})">{part}</g>'
        for number, part in enumerate(parts)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'width="{WIDTH}" height="{height}"><title>GPUs over time, and waits</title>'
        f"<style>{STYLE}</style>{drawn}</svg>\n"
    )


def page(result: Result, shown: dict[str, Any]) -> str:
    """Return a web page with the pictures and the figures."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
        for name, value in shown.items()
        if not isinstance(value, dict)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Simulation</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}{PAGE_STYLE}</style><h1>Simulation</h1>{svg(result)}"
        f"{_waits_table(shown)}<h2>Figures</h2><table>{rows}</table></html>\n"
    )


def _waits_table(shown: dict[str, Any]) -> str:
    head = (
        "<tr><th></th><th>jobs</th><th>mean</th><th>median</th><th>95 %</th><th>longest</th></tr>"
    )
    parts = []
    for title, field in (("queue", "waitsByQueue"), ("size", "waitsByClass")):
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{w['jobs']}</td>"
            + "".join(f"<td>{_wait(w[key])}</td>" for key in ("mean", "p50", "p95", "max"))
            + "</tr>"
            for name, w in shown[field].items()
        )
        parts.append(f"<h2>Waits by {title}</h2><table>{head}{rows}</table>")
    return "".join(parts)


def _over_time(samples: Sequence[Sample], end: float) -> str:
    most = max((max(s.capacity, s.used + s.waiting) for s in samples), default=0) or 1
    top = min(most, 2 * max((s.capacity for s in samples), default=1) or 1)
    end = end or 1.0

    def x(time: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * time / end

    def y(gpus: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(gpus, top) / top

    used = _area([(x(s.time), y(s.used)) for s in samples], x(end), y(0))
    stranded = _area([(x(s.time), y(s.used + s.stranded)) for s in samples], x(end), y(0))
    capacity = _steps([(x(s.time), y(s.capacity)) for s in samples], x(end))
    waiting = _steps([(x(s.time), y(s.used + s.waiting)) for s in samples], x(end))
    return (
        _title(
            "GPUs: in use (blue), free on nodes partly in use (orange), asked for (red line"
            + (f", up to {most:g})" if most > top else ")")
        )
        + "".join(_level(y(gpus), f"{gpus:g}") for gpus in _round_steps(top))
        + f'<path class="stranded" d="{stranded}"/><path class="used" d="{used}"/>'
        + f'<path class="capacity" d="{capacity}"/><path class="waiting" d="{waiting}"/>'
        + _time_axis(end)
    )


def _time_axis(end: float) -> str:
    size, name = _unit(end)
    parts = []
    for value in _round_steps(end / size):
        at = LEFT + (WIDTH - LEFT - RIGHT) * value * size / end
        parts.append(
            f'<text class="faint" x="{at:.1f}" y="{HEIGHT - 12}" '
            f'text-anchor="middle">{value:g}</text>'
        )
    # Where no number stands: before the first one that is not 0.
    parts.append(f'<text class="faint" x="{LEFT + 8}" y="{HEIGHT - 12}">{name}</text>')
    return "".join(parts)


def _unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a time is best told, and its seconds."""
    return next(((u, n) for least, u, n in UNITS if seconds >= least), (1.0, "seconds"))


def _round_steps(most: float) -> list[float]:
    """Return four to ten values from 0 to at most *most* whose step is 1, 2 or 5 times a power."""
    rough = most / 8
    power = 10.0 ** floor(log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    return [round(step * number, 9) for number in range(int(most / step + 1e-9) + 1)]


def _waits(lives: JobRecords) -> str:
    """Return bars: the median and the 95th percentile of waits by size of job."""
    waited = lives.column("started") - lives.column("arrival")
    classes = size_classes(lives.column("gpus"))
    by_class = ((name, waited[classes == number]) for number, name in enumerate(CLASSES))
    shown = {name: (there, there[~np.isnan(there)]) for name, there in by_class if len(there)}
    bars = {
        name: np.percentile(found, (50, 95)).tolist() if len(found) else (0.0, 0.0)
        for name, (_, found) in shown.items()
    }
    tall = max((high for _, high in bars.values()), default=0) or 1
    parts = [_title("Wait until the first start by GPUs of the job: median, and 95 % (pale)")]
    size, unit = _unit(tall)
    steps = [(value, _up(value * size, tall)) for value in _round_steps(tall / size)]
    parts += [_level(at, f"{value:g} {SHORT[unit]}") for value, at in steps]
    room = (WIDTH - LEFT - RIGHT) / max(1, len(shown))
    for number, (name, (there, found)) in enumerate(shown.items()):
        at = LEFT + room * (number + 0.5)
        middle, high = bars[name]
        parts += [_bar(at, high, tall, 0.35), _bar(at, middle, tall, 1.0)]
        all_did = len(found) == len(there)
        told = f"{len(there)} jobs" if all_did else f"{len(found)} of {len(there)} started"
        for line, kind, text in ((20, "", name), (5, ' class="faint"', told)):
            parts.append(
                f'<text{kind} x="{at:.1f}" y="{HEIGHT - line}" '
                f'text-anchor="middle">{escape(text)}</text>'
            )
    return "".join(parts)


def _communication(found: Sequence[Compared], end: float) -> str:
    """Return a dot for each job: when it started, and how far it is from its best place."""
    most = max(1.1, *(one.ratio for one in found))

    def y(ratio: float) -> float:
        return _up(ratio - 1, most - 1)

    dots = "".join(
        f'<circle class="bar" r="3" fill-opacity=".6" cy="{y(one.ratio):.1f}" '
        f'cx="{LEFT + (WIDTH - LEFT - RIGHT) * one.start / (end or 1.0):.1f}">'
        f"<title>{escape(one.job)}: {one.ratio:.3f}</title></circle>"
        for one in found
    )
    steps = [1 + over for over in _round_steps(most - 1)]
    return (
        _title("Communication of each job against its best place (1), by the time of its start")
        + "".join(_level(y(step), f"{step:g}") for step in steps)
        + dots
        + _time_axis(end or 1.0)
    )


def _up(value: float, tall: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / tall


def _bar(at: float, value: float, tall: float, opacity: float) -> str:
    top = _up(value, tall)
    return (
        f'<rect class="bar" fill-opacity="{opacity}" x="{at - BARS / 2:.1f}" y="{top:.1f}" '
        f'width="{BARS}" height="{HEIGHT - BOTTOM - top:.1f}"/>'
    )


def _title(text: str) -> str:
    return f'<text x="{LEFT}" y="18" font-weight="600">{escape(text)}</text>'


def _level(at: float, label: str) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        f'<text class="faint" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
    )


def _steps(points: Sequence[tuple[float, float]], end: float) -> str:
    if not points:
        return ""
    first, *rest = points
    path = f"M{first[0]:.1f},{first[1]:.1f}"
    path += "".join(f"H{at:.1f}V{high:.1f}" for at, high in rest)
    return f"{path}H{end:.1f}"


def _area(points: Sequence[tuple[float, float]], end: float, floor: float) -> str:
    if not points:
        return ""
    return f"{_steps(points, end)}V{floor:.1f}H{points[0][0]:.1f}Z"


def _wait(seconds: float | None) -> str:
    return "-" if seconds is None else _duration(seconds)


def _duration(seconds: float) -> str:
    size, name = _unit(seconds)
    return f"{seconds / size:.3g} {SHORT[name]}"
