"""What the comparison has found, in words and as the table in the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.conformance.known import Known, Refused, reason_for

PAGE: Final = Path(__file__).parents[3] / "docs/conformance.md"
BEGIN: Final = "<!-- written by `make conformance` -->"
END: Final = "<!-- end -->"
_SHOWN: Final = 160

Found = Mapping[str, list[str]]
"""The differences of each request, by its name."""


def share(found: Found) -> float:
    """Return the share of the requests that are answered alike."""
    return sum(not lines for lines in found.values()) / len(found)


def unexplained(found: Found) -> dict[str, list[str]]:
    """Return the differences for which no reason is known."""
    rest = {
        name: [line for line in lines if reason_for(name, line) is None]
        for name, lines in found.items()
    }
    return {name: lines for name, lines in rest.items() if lines}


def reasons(found: Found) -> dict[Known | Refused | None, list[str]]:
    """Return the requests that differ, by the first reason for it."""
    listed: dict[Known | Refused | None, list[str]] = {}
    for name, lines in found.items():
        if lines:
            listed.setdefault(reason_for(name, lines[0]), []).append(name)
    return listed


def spoken(found: Found) -> Iterator[str]:
    """Yield every difference with its reason, and the percentage last."""
    for known, names in reasons(found).items():
        yield f"{known.sort}: {known.reason}" if known else "not explained"
        for name in names:
            yield f"  {name}"
            yield from (f"    {line[:_SHOWN]}" for line in found[name])
    alike = sum(not lines for lines in found.values())
    yield f"{alike} of {len(found)} requests are answered alike: {share(found):.1%}"


def table(found: Found) -> str:
    """Return the part of the documentation that is written from the findings."""
    alike = sum(not lines for lines in found.values())
    lines = [
        f"{alike} of {len(found)} requests are answered alike: {share(found):.1%}.",
        "",
        "| | why the others differ | requests |",
        "| --- | --- | --- |",
    ]
    for known, names in sorted(
        ((k, n) for k, n in reasons(found).items() if k), key=lambda e: (e[0].sort, e[0].reason)
    ):
        listed = ", ".join(sorted(names))
        lines.append(f"| {known.sort} | {known.reason} | {listed} |")
    return "\n".join(lines)


def written(page: str, found: Found) -> str:
    """Return the documentation *page* with its table renewed."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}"
