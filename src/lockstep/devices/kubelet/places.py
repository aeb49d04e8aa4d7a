"""Where a container that a kubelet starts sees what holds its share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLACE: Final = Path("/run/lockstep")
"""Directory of the front, its share, and the driver's own libraries."""
LIBRARIES: Final = f"{PLACE}/front:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
"""The front first, then what images of NVIDIA have in this variable."""
