"""Which kinds of isolation this machine allows the node's processes."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lockstep.nodes.process.shim import calls


@dataclass(frozen=True, slots=True)
class Isolation:
    """The namespaces that containers get; without ``mount`` no volume can be mounted."""

    namespaces: tuple[str, ...]
    problem: str = ""
    hidden: tuple[str, ...] = ()
    """Directories that containers see empty: keys and credentials of the control plane."""
    by_namespace: str = ""
    """A hidden directory; pods mount what lies in its part of their own namespace."""

    @property
    def mounts(self) -> bool:
        """Tell whether a container can have mounts of its own."""
        return "mount" in self.namespaces


def find() -> Isolation:
    """Try out what is allowed, in a child process: plain, then inside a user namespace."""
    problem = _try(calls.CLONE_NEWNS | calls.CLONE_NEWUTS)
    if not problem:
        return Isolation(("mount", "uts"))
    as_user = _try(calls.CLONE_NEWUSER | calls.CLONE_NEWNS | calls.CLONE_NEWUTS)
    if not as_user:
        return Isolation(("user", "mount", "uts"))
    return Isolation((), f"mount namespaces: {problem}; in a user namespace: {as_user}")


def _try(flags: int) -> str:
    """Return why *flags* are refused; empty when they are not."""
    report, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _enter(flags)
        except (OSError, calls.Refused) as error:
            os.write(end, str(error).encode()[:1000])
        os._exit(0)
    os.close(end)
    with os.fdopen(report) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return text


def _enter(flags: int) -> None:
    uid = os.geteuid()
    calls.check(calls.libc.unshare(flags), "create namespaces")
    if flags & calls.CLONE_NEWUSER:
        calls.put("/proc/self/uid_map", f"{uid} {uid} 1")
    calls.mount("none", "/", calls.MS_REC | calls.MS_PRIVATE)
