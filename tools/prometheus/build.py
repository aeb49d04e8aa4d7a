"""Build Prometheus and promtool, which tests scrape and check rules with, of a pinned module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tools.go_program import GoProgram

TAGS: Final = "remove_all_sd,enable_kubernetes_sd"
"""Without the clients of the clouds' own discoveries, a third of the program."""


def _program(name: str) -> GoProgram:
    return GoProgram(
        Path(__file__).parent, f"github.com/prometheus/prometheus/cmd/{name}", name, TAGS
    )


PROMETHEUS: Final = _program("prometheus")
PROMTOOL: Final = _program("promtool")

if __name__ == "__main__":
    sys.exit(PROMETHEUS.build() or PROMTOOL.build())
