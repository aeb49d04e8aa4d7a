"""The server's page of metrics, under the names that Prometheus' clients give to processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from lockstep.serve.server.repository import Repository

_STATM: Final = Path("/proc/self/statm")


def page(repository: Repository) -> bytes:
    """Return the metrics as text."""
    resident = int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    lines = [
        "# TYPE process_cpu_seconds_total counter",
        f"process_cpu_seconds_total {time.process_time():.3f}",
        "# TYPE process_resident_memory_bytes gauge",
        f"process_resident_memory_bytes {resident}",
    ]
    for model, counts in repository.counts().items():
        label = model.replace("\\", "\\\\").replace('"', '\\"')
        lines += [
            f'lockstep_model_{name}{{model="{label}"}} {value}' for name, value in counts.items()
        ]
    return ("\n".join(lines) + "\n").encode()
