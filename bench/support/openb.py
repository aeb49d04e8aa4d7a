"""Where the public lists are that the protocol of "Beware of Fragmentation" runs on.

They come with https://github.com/hkust-adsl/kubernetes-scheduler-simulator as CSV.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "LOCKSTEP_OPENB"
ROOT = Path(__file__).resolve().parents[2]
PLACES = (ROOT / "traces" / "openb", ROOT.parent / "shared" / "traces" / "openb")
NODES = "openb_node_list_gpu_node.csv"
ABSENT = f"no {NODES} in {' or '.join(map(str, PLACES))}; set {VARIABLE} to its directory"


def directory() -> Path | None:
    """Return the directory of the lists, None where there is none."""
    named = os.environ.get(VARIABLE)
    places = (Path(named),) if named else PLACES
    return next((place for place in places if (place / NODES).is_file()), None)


def nodes(lists: Path) -> Path:
    """Return the list of nodes."""
    return lists / NODES


def pods(lists: Path, name: str) -> Path:
    """Return the list of pods called *name*."""
    return lists / f"openb_pod_list_{name}.csv"


def names(lists: Path) -> list[str]:
    """Return the names of the lists of pods that are there."""
    return sorted(
        path.stem.removeprefix("openb_pod_list_") for path in lists.glob("openb_pod_list_*.csv")
    )
