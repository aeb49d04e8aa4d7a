"""What the launcher makes of the files that its ranks' probes write: one sheet for each rank."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def variables(env: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return what starts the probes in ranks; nothing where the user has switched them off."""
    if env.get("LOCKSTEP_PROBES") == "off":
        return {"LOCKSTEP_PROBES": ""}
    # Otherwise the profiler writes lines of its own among the user's.
    quiet = {} if "KINETO_LOG_LEVEL" in env else {"KINETO_LOG_LEVEL": "99"}
    return {"LOCKSTEP_PROBES": str(directory), **quiet}


def sheets(directory: Path) -> list[Json]:
    """Return what each local rank measured, with that of its loader's workers."""
    mains: dict[str, tuple[float, Json]] = {}
    fetches: dict[str, list[Json]] = {}
    for path in sorted(directory.glob("*-*-*.json")):
        local, kind, _ = path.stem.split("-", 2)
        try:
            told, written = json.loads(path.read_text()), path.stat().st_mtime
        except (OSError, ValueError):
            continue
        if kind == "fetch":
            fetches.setdefault(local, []).append(told)
        elif local not in mains or mains[local][0] < written:
            mains[local] = (written, told)
    return [_merged(main, fetches.get(local, [])) for local, (_, main) in sorted(mains.items())]


def _merged(main: Json, workers: list[Json]) -> Json:
    """Return the sheet of a rank, with what its workers did during its window."""
    begun = main["begun"]
    end = begun + main["wall"]
    sums: Counter[str] = Counter(main["sums"])
    lines = dict(main["lines"])
    for one in workers:
        shared = min(end, one["begun"] + one["wall"]) - max(begun, one["begun"])
        part = max(0.0, shared) / one["wall"] if one["wall"] > 0 else 0.0
        for name, value in one["sums"].items():
            if name.startswith("fetch."):
                sums[name] += value * part
        for line in one["lines"].values() if part else ():
            lines["fetch"] = (lines.get("fetch", []) + line)[:3]
    return {**main, "sums": {k: round(v, 6) for k, v in sums.items()}, "lines": lines}


def forget(directory: Path) -> None:
    """Take away what ranks of an earlier generation wrote."""
    for path in directory.glob("*-*-*.json*"):
        path.unlink(missing_ok=True)
