"""Runs commands that end with this process, and this process with whoever holds its stdin.

``python -m tests.support.leash COMMANDS`` takes a JSON list of commands, each a list of words. A
test run that is killed cannot clean up; the kernel closes its pipes, and that ends all of them.
"""

from __future__ import annotations

import ctypes
import json
import selectors
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1


def main(commands: list[list[str]]) -> int:
    """Run them until stdin closes or one of them ends; return 1 if one ended by itself."""
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    children = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)  # noqa: PLW1509
        for command in commands
    ]
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            while not selector.select(0.5):
                if any(child.poll() is not None for child in children):
                    return 1
        return 0
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
