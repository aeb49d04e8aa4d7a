"""A process that sees a recorded tree at ``/sys``, in a mount namespace of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = """
set -e
mount --make-rprivate /
mkdir -p "$0/sys/fs/cgroup"
mount --rbind /sys/fs/cgroup "$0/sys/fs/cgroup"
mount --rbind "$0/sys" /sys
{more}exec "$@"
"""
VERBS = """
mkdir -p /dev/infiniband
mount -t tmpfs verbs /dev/infiniband
for number in 90 91 92 93; do mknod -m 666 /dev/infiniband/uverbs$number c 1 3; done
"""
"""Makes files of NICs in a namespace alone: ranks of other tests that saw them would want to lock
memory."""


def seeing(root: Path, more: str = "") -> tuple[str, ...]:
    """Return the words before a command, so that it sees the tree below *root* at ``/sys``.

    *more* are lines of shell that make more of its namespace.

    Where that is not permitted the test is skipped.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root")
    words = ("unshare", "--mount", "sh", "-c", SCRIPT.replace("{more}", more), str(root))
    done = subprocess.run([*words, "true"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a mount namespace: {done.stderr.decode().strip()}")
    return words
