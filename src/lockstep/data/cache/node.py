"""What the datasets of one node share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from lockstep.data.cache.directories import Directories
from lockstep.data.cache.views import Views
from lockstep.kube.client import Client
from lockstep.kube.events import Recorder


class Node(Protocol):
    """What keepers share."""

    client: Client
    recorder: Recorder
    root: Path
    directories: Directories
    name: str
    address: str
    certificate: str
    views: Views

    def make_room(self, asking: Any, size: int) -> int:
        """Let datasets that nothing reads go for *size* bytes; return how many went."""

    def fits(self, asking: Any, size: int) -> bool:
        """Tell whether *size* bytes more fit the quota of the namespace of *asking*."""
