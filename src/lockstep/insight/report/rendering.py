"""A report as JSON, and as a page that needs nothing but itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from lockstep.api import timestamp
from lockstep.api.wire import Json
from lockstep.insight.report.recommending import recommendations
from lockstep.insight.report.summing import Amount, Report, Waste, wastes

LEAGUE: Final = 20
"""Rows of the league of waste that the page shows; JSON has all."""

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2430; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: #55606e; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d8dee6;
  overflow-wrap: anywhere; }
.n { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
code { font: 13px ui-monospace, monospace; background: #eef1f5; padding: .1rem .3rem; }
.figures { display: flex; flex-wrap: wrap; gap: 2rem; } .figures b { display: block;
  font-size: 1.7rem; }
rect { fill: #2563a8; } rect.all { fill: #d8dee6; } .doubt { color: #7a3d00; }
@media (prefers-color-scheme: dark) { body { color: #e3e8ee; background: #14181e; }
  th, td { border-color: #333c48; } caption { color: #9aa6b4; } code { background: #232a33; }
  rect { fill: #6aa6e8; } rect.all { fill: #333c48; } .doubt { color: #f0b27a; } }
"""


def tree(found: Report) -> Json:
    """Return the report as JSON; amounts are GPU-hours, and money in ``currency``."""
    return {
        "month": found.month,
        "start": timestamp.show(found.start),
        "end": timestamp.show(found.end),
        "currency": found.currency or None,
        "utilisation": _rounded(found.utilisation),
        "goodput": _rounded(found.goodput),
        "total": _amount(found.total),
        "held": _amount(found.held),
        "running": _amount(found.running),
        "slowed": _amount(found.slowed),
        "spotSaved": round(found.spot_saved, 2),
        "unpricedGpuHours": round(found.unpriced_gpu_hours, 4),
        "strayGpuHours": round(found.stray_gpu_hours, 4),
        "days": [
            {
                "day": day,
                "gpuHours": round(hours, 4),
                "heldGpuHours": round(found.days[day].gpu_hours if day in found.days else 0, 4),
            }
            for day, hours in sorted(found.capacity.items())
        ],
        "budgets": [one.tree() for one in found.budgets],
        "waste": [_waste(one) for one in wastes(found)],
        "recommendations": [
            {"words": one.words, "command": one.command, "saves": _amount(one.saves)}
            for one in recommendations(found)
        ],
    }


def page(found: Report) -> str:
    """Return the report as one HTML page: no script, and nothing from elsewhere."""
    body = [
        f"<h1>GPU time of {escape(found.month)}</h1>",
        f"<p>{escape(timestamp.show(found.start))} until {escape(timestamp.show(found.end))}, "
        "in UTC.</p>",
        _figures(found),
        *(f'<p class="doubt">{escape(one)}</p>' for one in doubts(found)),
        _days(found),
        *(["<h2>Budgets</h2>", _budgets(found)] if found.budgets else []),
        "<h2>What to do</h2>",
        _recommended(found),
        "<h2>Where GPU time was wasted</h2>",
        _league(found),
    ]
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Lockstep: GPU time of {escape(found.month)}</title><style>{_STYLE}</style></head>"
    )
    return f"{head}<body>{''.join(body)}</body></html>\n"


def doubts(found: Report) -> list[str]:
    """Return what of the report is not known, as sentences."""
    told = []
    if found.total.gpu_hours <= 0:
        told.append("No node with GPUs is on record for this month.")
    if found.unpriced_gpu_hours > 0:
        hours = found.unpriced_gpu_hours
        told.append(f"{hours:.2f} GPU-hours have no price, and count as no money.")
    if found.stray_gpu_hours > 0.01:
        hours = found.stray_gpu_hours
        told.append(f"{hours:.2f} GPU-hours are left out: no node on record had the GPUs.")
    return told


def _figures(found: Report) -> str:
    shown = [
        ("utilisation: GPU time that gangs held", _percent(found.utilisation)),
        ("goodput: without starting and what advice says is lost", _percent(found.goodput)),
        ("GPU-hours", f"{found.total.gpu_hours:,.0f}"),
    ]
    if found.currency:
        shown.append((f"{found.currency} for all nodes", f"{found.total.cost:,.2f}"))
        if found.spot_saved:
            shown.append(
                (f"{found.currency} less by spot, before lost work", f"{found.spot_saved:,.2f}")
            )
    cells = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in shown)
    return f'<div class="figures">{cells}</div>'


def _days(found: Report) -> str:
    most = max(found.capacity.values(), default=0.0)
    if most <= 0:
        return ""
    bars = []
    for i, (day, hours) in enumerate(sorted(found.capacity.items())):
        held = found.days[day].gpu_hours if day in found.days else 0.0
        tall, filled = 80 * hours / most, 80 * held / most
        said = f"{day}: {held:.1f} of {hours:.1f} GPU-hours held"
        bars.append(
            f"<g><title>{escape(said)}</title>"
            f'<rect class="all" x="{i * 20}" y="{80 - tall:.1f}" width="16" height="{tall:.1f}"/>'
            f'<rect x="{i * 20}" y="{80 - filled:.1f}" width="16" height="{filled:.1f}"/></g>'
        )
    width = 20 * len(bars)
    label = "GPU-hours of each day, and what of them gangs held"
    return (
        f'<h2>Day by day</h2><svg role="img" aria-label="{label}" viewBox="0 0 {width} 80" '
        f'width="{width}" height="80">{"".join(bars)}</svg>'
    )


def _budgets(found: Report) -> str:
    rows = [
        (
            escape(one.subject),
            escape(one.state or "within"),
            f"{one.ratio:.1%}",
            f"{one.spent:,.2f}",
            f"{one.budget.month:,.2f}",
        )
        for one in found.budgets
    ]
    money = f"Cost ({found.currency})"
    return _table(
        ("Of", "State", "Cost of budget", money, f"Cost at most ({found.currency})"), rows
    )


def _recommended(found: Report) -> str:
    rows = [
        (escape(one.words), f"<code>{escape(one.command)}</code>", *_numbers(one.saves, found))
        for one in recommendations(found)
    ]
    if not rows:
        return "<p>Nothing that would save at least one GPU-hour.</p>"
    return _table(("", "Command", *_heads(found)), rows)


def _league(found: Report) -> str:
    rows = [
        (
            escape(f"{one.kind} ({one.cause})" if one.cause else one.kind),
            escape(f"node {one.node}" if one.node else "/".join(one.job)),
            escape(one.queue),
            escape(one.user),
            *_numbers(one.amount, found),
        )
        for one in wastes(found)[:LEAGUE]
    ]
    if not rows:
        return "<p>None.</p>"
    return _table(("What", "Whose", "Queue", "User", *_heads(found)), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells are HTML already, the last of them numbers."""
    numbers = sum(one in _AMOUNTS or one.startswith("Cost") for one in heads)
    first = len(heads) - numbers

    def line(cells: Sequence[str], tag: str) -> str:
        shown = (
            f'<{tag} class="n">{one}</{tag}>' if i >= first else f"<{tag}>{one}</{tag}>"
            for i, one in enumerate(cells)
        )
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    head = line([escape(one) for one in heads], "th")
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


_AMOUNTS: Final = ("GPU-hours",)


def _heads(found: Report) -> tuple[str, ...]:
    return (*_AMOUNTS, f"Cost ({found.currency})") if found.currency else _AMOUNTS


def _numbers(amount: Amount, found: Report) -> tuple[str, ...]:
    hours = f"{amount.gpu_hours:,.2f}"
    return (hours, f"{amount.cost:,.2f}") if found.currency else (hours,)


def _waste(one: Waste) -> Json:
    told = {
        "kind": one.kind,
        "cause": one.cause,
        "node": one.node,
        "namespace": one.job[0],
        "job": one.job[1],
        "queue": one.queue,
        "user": one.user,
    }
    return {**{key: value for key, value in told.items() if value}, **_amount(one.amount)}


def _amount(one: Amount) -> Json:
    return {"gpuHours": round(one.gpu_hours, 4), "cost": round(one.cost, 2)}


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)


def _percent(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.1%}"
