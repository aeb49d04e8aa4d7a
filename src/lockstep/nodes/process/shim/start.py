"""Turning a forked process into the container's: namespaces, mounts, limits, user, command."""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn

from lockstep.nodes.process.shim import calls
from lockstep.nodes.process.shim.calls import Refused, check, libc, mount, put
from lockstep.nodes.process.shim.mounts import View

STOP_SIGNAL = signal.SIGTERM
KILL_SIGNAL = signal.SIGUSR2
RESET_SIGNALS = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGCHLD,
    STOP_SIGNAL,
    KILL_SIGNAL,
)

Orders = dict[str, Any]


def enter_namespaces(orders: Orders) -> None:
    """Give the process its own mounts and host name, through a user namespace if need be."""
    flags = 0
    if "mount" in orders["namespaces"]:
        flags |= calls.CLONE_NEWNS
    if "uts" in orders["namespaces"]:
        flags |= calls.CLONE_NEWUTS
    if not flags:
        return
    uid, gid = os.geteuid(), os.getegid()
    if "user" in orders["namespaces"]:
        check(libc.unshare(flags | calls.CLONE_NEWUSER), "create a user namespace")
        put("/proc/self/setgroups", "deny")
        put("/proc/self/uid_map", f"{uid} {uid} 1")
        put("/proc/self/gid_map", f"{gid} {gid} 1")
    else:
        check(libc.unshare(flags), "create namespaces")
    if flags & calls.CLONE_NEWNS:
        mount("none", "/", calls.MS_REC | calls.MS_PRIVATE)
    if flags & calls.CLONE_NEWUTS:
        name = orders["hostname"].encode()
        check(libc.sethostname(name, len(name)), "set the host name")


def enter_container(orders: Orders) -> None:
    """Enter the namespaces of the running process *target* of a container.

    Raises:
        Refused: when it is gone or the kernel says no.
    """
    kinds = {"user": calls.CLONE_NEWUSER, "mount": calls.CLONE_NEWNS, "uts": calls.CLONE_NEWUTS}
    flags = 0
    for name in orders["namespaces"]:
        flags |= kinds[name]
    if flags:
        target = os.pidfd_open(orders["target"])
        check(libc.setns(target, flags), "enter the container's namespaces")


def become(orders: Orders) -> NoReturn:
    """Turn this process into the container's: limits first, privileges last.

    Raises:
        Refused: when a step fails.
    """
    for procs in orders["cgroups"]:
        put(procs, str(os.getpid()))
    drop_privileges(orders)
    libc.prctl(calls.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    execute(orders)


def drop_privileges(orders: Orders) -> None:
    """Take on the groups and the user that the container asks for."""
    if orders["groups"] is not None:
        os.setgroups(orders["groups"])
    if orders["gid"] is not None:
        os.setgid(orders["gid"])
    if orders["uid"] is not None:
        os.setuid(orders["uid"])


def execute(orders: Orders) -> NoReturn:
    """Replace this process by the command.

    Raises:
        Refused: when there is no such directory or command.
    """
    try:
        os.chdir(orders["cwd"])
    except OSError as error:
        raise Refused(f"working directory {orders['cwd']}: {error.strerror}") from error
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    command = orders["argv"][0]
    try:
        os.execvpe(command, orders["argv"], orders["env"])
    except OSError as error:
        raise Refused(f"cannot run {command!r}: {error.strerror}") from error


def child(orders: Orders, output: int, errors: int, report: int) -> NoReturn:
    """Run in the forked process: set up, become the command, or report what failed."""
    try:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        enter_namespaces(orders)
        view = View(orders["scratch"])
        view.mount_all(orders["mounts"])
        view.hide_all(orders.get("hidden", []))
        become(orders)
    except (Refused, OSError) as error:
        os.write(report, str(error).encode())
    os._exit(127)
