"""Printing: tables, JSON, YAML and names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from lockstep.cli.views.table import NAMESPACE, Table, fit, plain


class Format(StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def structured(format_: Format) -> bool:
    """Return whether the format shows whole objects, not a view of them."""
    return format_ in (Format.JSON, Format.YAML)


def print_table(
    shown: Table, format_: Format = Format.TABLE, *, empty: str = "", namespaces: bool = False
) -> None:
    """Print a table: ruled and coloured on a terminal, plain elsewhere; *empty* when it is."""
    if not shown.rows and empty:
        note(empty)
        return
    shown = fitted(shown, format_, namespaces=namespaces)
    if sys.stdout.isatty():
        _print_rich(shown)
    else:
        print(plain(shown), flush=True)


def fitted(shown: Table, format_: Format, *, namespaces: bool) -> Table:
    """Return the table with the columns that the format shows."""
    if format_ is Format.WIDE:
        return shown
    return shown.narrow(*([NAMESPACE] if namespaces else []))


def print_objects(objects: list[Any], format_: Format, *, single: bool) -> None:
    """Print plain objects as JSON or YAML; several as one List."""
    shown: Any = objects
    if single:
        shown = objects[0]
    else:
        shown = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}
    print(encode(shown, format_), end="", flush=True)


def encode(obj: Any, format_: Format) -> str:
    """Return a plain tree as JSON or YAML text that ends with a newline."""
    if format_ is Format.JSON:
        import json

        return json.dumps(obj, indent=2) + "\n"
    import yaml

    return yaml.safe_dump(obj, sort_keys=False, allow_unicode=True, width=100)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        print(line, flush=True)


def show(tree: Any, lines: Iterable[str], format_: Format) -> None:
    """Print a plain tree where the format is JSON or YAML, else the lines that say the same."""
    if structured(format_):
        print(encode(tree, format_), end="", flush=True)
    else:
        print_lines(lines)


def note(text: str) -> None:
    """Tell a person something that is no result: on standard error."""
    print(text, file=sys.stderr, flush=True)


def _print_rich(shown: Table) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    header, *rows = plain(fit(shown, console.width)).splitlines()
    styled = [Text(header, style="bold"), Text("─" * min(console.width, len(header)), style="dim")]
    for row in rows:
        line = Text(row)
        for word, style in STYLES.items():
            line.highlight_regex(rf"(?<=   ){word}\b", style)
        styled.append(line)
    for line in styled:
        console.print(line, soft_wrap=True)


STYLES = {
    "Running": "green",
    "Ready": "green",
    "Placed": "green",
    "Succeeded": "green",
    "Pending": "yellow",
    "Placing": "yellow",
    "Starting": "yellow",
    "Restarting": "yellow",
    "Suspended": "yellow",
    "Failed": "red",
    "NotReady": "red",
}
