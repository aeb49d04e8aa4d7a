"""``python -m lockstep.cli.agent_process TEXT``: the agent without the command line's libraries."""

from __future__ import annotations

import sys

from lockstep.agent.main import run
from lockstep.agent.settings import Start
from lockstep.cli.failure import reported
from lockstep.cli.foreground import announce, serve


def main() -> None:
    """Run the agent as the text on the command line says."""
    start = Start.read(sys.argv[1])
    serve(run(kubeconfig=start.kubeconfig, settings=start.settings, ready=announce), start)


if __name__ == "__main__":
    reported(main)
