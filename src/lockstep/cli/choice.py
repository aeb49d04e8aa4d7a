"""Which objects a list shows, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from lockstep.api import duration
from lockstep.api.wire import Json
from lockstep.cli.failure import BadInput
from lockstep.cli.views.table import Table, natural

PHASE_COLUMNS = ("phase", "state", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options of lists that choose among what there is."""

    selector: Annotated[str, "--selector", "-l", "Only objects with these labels."] = ""
    phase: Annotated[str, "PHASE,...", "Only in one of these phases: Running,Pending."] = ""
    sort: Annotated[str, "--sort", "--sort-by", "COLUMN", "Order rows by a column: age."] = ""
    reverse: Annotated[bool, "--reverse", "The last row first."] = False

    def phases(self) -> set[str]:
        """Return the phases that are chosen, in lower case; none means all."""
        return {one.strip().lower() for one in self.phase.split(",") if one.strip()}

    def plain(self) -> bool:
        """Return whether nothing but labels is chosen by."""
        return not (self.phase or self.sort or self.reverse)

    def of_rows(self, shown: Table) -> Table:
        """Return the rows of a table that are chosen, in their order.

        Raises:
            BadInput: when the table lacks the column.
        """
        rows = list(shown.rows)
        if phases := self.phases():
            at = _column(shown, PHASE_COLUMNS, "--phase", "none of these objects has a phase")
            rows = [row for row in rows if row[at].split()[0].lower() in phases]
        if self.sort:
            names = ", ".join(column.name.lower() for column in shown.columns)
            at = _column(shown, (self.sort.lower(),), "--sort", f"the columns are {names}")
            rows.sort(key=lambda row: _order(row[at]))
        if self.reverse:
            rows.reverse()
        return Table(shown.columns, tuple(rows))

    def of_objects(self, items: Sequence[Json]) -> list[Json]:
        """Return the plain objects that are chosen.

        Raises:
            BadInput: when they are to be sorted, which columns are.
        """
        if self.sort or self.reverse:
            raise BadInput("--sort: orders the rows of a table", "leave -o out, or use -o wide")
        if not (phases := self.phases()):
            return list(items)
        return [one for one in items if str(_phase(one)).lower() in phases]


def _phase(obj: Json) -> str:
    return (obj.get("status") or {}).get("phase") or ""


def _column(shown: Table, names: Sequence[str], option: str, hint: str) -> int:
    found: Iterator[int] = (
        i for i, column in enumerate(shown.columns) if column.name.lower() in names
    )
    at = next(found, None)
    if at is None:
        raise BadInput(f"{option}: there is no column {names[0]!r}", hint)
    return at


def _order(text: str) -> tuple[int, float, Any]:
    """Return what sorts numbers and durations by their size, and what is empty last."""
    if text == "-":
        return 2, 0.0, ()
    try:
        return 0, float(text.rstrip("%")), ()
    except ValueError:
        pass
    try:
        return 0, duration.parse(text), ()
    except ValueError:
        return 1, 0.0, natural(text)
