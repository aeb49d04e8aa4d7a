"""Write docs/reference.md: every command with its arguments and options, as the program has them.

Run it as ``python -m tools.reference`` after a change of the command line.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from lockstep.cli.main import ENTRIES, app

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
HEAD = """# Reference of all commands

This page is made from the program by `python -m tools.reference`; `lockstep COMMAND --help` says
the same. [Command line](cli.md) tells what belongs together.

`--namespace`, `--kubeconfig` and `--context` are also taken before the command.
"""


def page() -> str:
    """Return the whole page."""
    root: Any = typer.main.get_command(app)
    parts = [HEAD]
    for section in dict.fromkeys(entry.section for entry in ENTRIES):
        parts.append(f"## {section}\n")
        for entry in ENTRIES:
            if entry.section == section:
                parts += _command(entry.name, root.get_command(None, entry.name))
    return "\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    children = getattr(command, "commands", {})
    yield _described(name, command, own=not children or command.invoke_without_command)
    for child, one in children.items():
        if not one.hidden:
            yield from _command(f"{name} {child}", one)


def _described(name: str, command: Any, *, own: bool) -> str:
    context = typer.Context(command, info_name=f"lockstep {name}")
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    lines = [f"### lockstep {name}", ""]
    if own:
        lines += ["```", " ".join(command.get_usage(context).split()), "```", ""]
    lines += _paragraphs(text)
    rows = [row for one in command.get_params(context) if (row := _row(one, context))]
    if own and rows:
        lines += ["| | |", "| --- | --- |", *rows, ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> Iterator[str]:
    for block in text.split("\n\n"):
        if block.startswith("Example"):
            yield "```console"
            for line in block.removeprefix("Examples:").removeprefix("Example:").splitlines():
                if line.strip():
                    yield f"$ {line.strip()}" if line.strip().startswith("lockstep") else line
            yield "```"
        else:
            yield " ".join(block.split())
        yield ""


def _row(parameter: Any, context: Any) -> str:
    record = parameter.get_help_record(context)
    if record is None or "--help" in parameter.opts:
        return ""
    names, told = (" ".join(str(one).split()).replace("|", "\\|") for one in record)
    return f"| `{names}` | {told} |"


if __name__ == "__main__":
    PAGE.write_text(page())
