"""Where the embedded control plane keeps its data when nobody says."""

from __future__ import annotations

import os
from pathlib import Path

DEFAULT_PORT = 7443


def default_data() -> Path:
    """Return ``$XDG_DATA_HOME/lockstep``."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "share") / "lockstep"
