"""``python -m bench [NAME ...]``: measure, print a table, write it as JSON.

Every module of this package with a ``run() -> list[Figure]`` is a benchmark, called by its module's
name. One with ``SLOW = True`` runs when it is named, or with ``--all``, as in ``make bench``.
It prints what was measured beside the bar and the peer, and ends with 1 where a figure misses its
bar or a benchmark breaks. What a machine cannot measure is named and is no failure.

``python -m bench fgd --nodes FILE --pods FILE ...`` fills a cluster from lists of one's own.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import json
import os
import pkgutil
import platform
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import bench
import lockstep
from bench.fgd.command import main as fill_one_list
from bench.figure import Figure, NotMeasured


def benchmarks() -> list[str]:
    return [
        m.name
        for m in pkgutil.iter_modules(bench.__path__)
        if m.name not in ("__main__", "figure", "support")
    ]


def chosen(everything: bool, console: Console) -> list[str]:
    """Return what to run when nothing was named, and say what is left out."""
    names = benchmarks()
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    slow = [name for name, module in modules.items() if getattr(module, "SLOW", False)]
    if everything or not slow:
        return names
    console.print(f"bench: left out, for they take long: {', '.join(slow)} (--all)", style="dim")
    return [name for name in names if name not in slow]


def measure(
    names: list[str], console: Console
) -> tuple[list[Figure], dict[str, str], dict[str, str]]:
    """Return the figures, why some benchmarks could not run, and how others broke."""
    figures: list[Figure] = []
    not_run: dict[str, str] = {}
    broken: dict[str, str] = {}
    for name in names:
        start = time.perf_counter()
        console.print(f"bench: {name} ...", style="dim")
        try:
            figures += importlib.import_module(f"bench.{name}").run()
        except NotMeasured as error:
            not_run[name] = str(error)
        except Exception as error:
            # Hours of other figures must not be lost over one.
            console.print_exception()
            broken[name] = f"{type(error).__name__}: {error}"
        console.print(f"bench: {name} took {time.perf_counter() - start:.1f} s", style="dim")
    return figures, not_run, broken


def table(figures: list[Figure]) -> Table:
    out = Table("figure", "measured", "bar", "kept", "peer", "ratio")
    for f in figures:
        kept = {True: "yes", False: "[red]NO[/red]", None: ""}[f.met]
        bar = "" if f.limit is None else f"{'>=' if f.better == 'higher' else '<='} {f.limit:g}"
        peer = "" if f.peer is None else f"{f.peer:g} {f.peer_name} ({f.source})"
        ratio = "" if f.ratio is None else f"{f.ratio:.2f}x"
        out.add_row(f.name, f"{f.value:,.4g} {f.unit}", bar, kept, peer, ratio)
    return out


def main() -> None:
    if sys.argv[1:2] == ["fgd"] and sys.argv[2:] and sys.argv[2] not in ("--all", "--json"):
        fill_one_list(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"which; default all of: {', '.join(benchmarks())}")
    parser.add_argument("--all", action="store_true", help="also those that take many minutes")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"))
    args = parser.parse_args()
    unknown = set(args.name) - set(benchmarks())
    if unknown:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(benchmarks())}"
        )
    console = Console(stderr=True)
    # Processes of Lockstep start as those of an installed one do: compiled.
    compileall.compile_dir(Path(lockstep.__file__).parent, quiet=1)
    figures, not_run, broken = measure(args.name or chosen(args.all, console), console)
    Console().print(table(figures))
    for name, reason in not_run.items():
        Console().print(f"not run: {name}: {reason}")
    for name, reason in broken.items():
        Console().print(f"[red]broken[/red]: {name}: {reason}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": os.cpu_count(), "python": sys.version.split()[0], "os": platform.platform()}
    result = {
        "machine": machine,
        "figures": [f.as_json() for f in figures],
        "not_run": not_run,
        "broken": broken,
    }
    args.json.write_text(json.dumps(result, indent=1))
    console.print(f"written to {args.json}", style="dim")
    missed = [f.name for f in figures if f.met is False]
    if missed or broken:
        sys.exit(1)


if __name__ == "__main__":
    main()
