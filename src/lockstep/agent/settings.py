"""What the node agent is told, also as the text with which its process starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lockstep.devices.core.exposition import Compat
from lockstep.runtime.endpoints import Ports


@dataclass(frozen=True, slots=True)
class Settings:
    """What the agent was told."""

    node: str
    ports: Ports
    compat: Compat = ""
    kubelet: Path | None = None
    """The kubelet's directory; none where there is no kubelet."""
    shares: Path | None = None
    """Where the shares of this node's containers lie; none where the node makes none."""
    kernel_log: Path | None = None
    """What the kernel's messages are read from; none where they may not be read."""
    reset_hook: Path | None = None
    """What resets a device of this node."""
    cdi: Path | None = None
    """Where container runtimes look for CDI specifications; none for the usual place."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the agent's process starts."""

    settings: Settings
    kubeconfig: Path | None
    leashed: bool
    verbose: bool

    def text(self) -> str:
        """Return it as one word of a command line."""
        return msgspec.json.encode(self, enc_hook=str).decode()

    @staticmethod
    def read(text: str) -> Start:
        """Return what ``text`` wrote."""
        return msgspec.json.decode(text, type=Start, dec_hook=_path)


def _path(_: type, text: Any) -> Path:
    return Path(text)
