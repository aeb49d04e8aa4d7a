"""What a shim does from its start to its end.

Its orders come as JSON on standard input, so that nothing secret is in an argument or on disk.
It starts the container's process in its namespaces and cgroups, copies its output into the log,
forwards signals, and at the end writes down how it ended. Only the standard library is imported,
and of it little: start-up time is paid by every container.

As a subreaper the shim inherits the processes that the container leaves behind, so nothing of the
container survives it. It was given a locked file and holds the lock while it lives: who wants to
know whether it still runs asks the kernel, and is not fooled by a reused process id.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import termios
import time
from typing import Any, NoReturn

from lockstep.nodes.process.shim.calls import PR_SET_CHILD_SUBREAPER, Refused, libc
from lockstep.nodes.process.shim.log import Log
from lockstep.nodes.process.shim.start import become, child, enter_container
from lockstep.nodes.process.shim.watch import Watch

Orders = dict[str, Any]


def save(path: str, content: Orders) -> None:
    """Write *content* so that a reader sees all of it or nothing."""
    fd = os.open(path + ".new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w") as file:
        json.dump(content, file)
    os.replace(path + ".new", path)


def out_of_memory_kills(path: str) -> int:
    """Return how often the kernel killed for want of memory, from either cgroup version's file."""
    with contextlib.suppress(OSError, ValueError), open(path) as file:
        for line in file:
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def tell(content: Orders) -> None:
    """Answer the node, if it is still there to listen, and then say no more."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(content).encode() + b"\n")
    os.dup2(os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC), 1)


def fork(orders: Orders, out: int, err: int) -> tuple[int, str]:
    """Start the container's process; return its id and, when it could not start, why."""
    failure, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        child(orders, out, err, report)
    for fd in (out, err, report):
        os.close(fd)
    with open(failure) as file:
        return pid, file.read()


def run(orders: Orders) -> None:
    """Start the container, tell the node, watch over it, and write down how it ended."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(orders["lock"], False)
    state = orders["state"]
    log = Log(orders["log"], orders["log_bytes"], orders["log_files"])
    kills = out_of_memory_kills(orders["oom"])
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    watch = Watch(log, {out: "stdout", err: "stderr"})
    pid, failure = fork(orders, out_end, err_end)
    begun = time.time()
    if failure:
        save(f"{state}/exit.json", {"error": failure, "started": begun, "finished": begun})
        tell({"error": failure})
        return
    started = {"shim": os.getpid(), "pid": pid, "started": begun}
    save(f"{state}/run.json", started)
    tell(started)
    code = os.waitstatus_to_exitcode(watch.run(pid))
    log.close()
    ended = {
        "exit_code": code if code >= 0 else 128 - code,
        "signal": -code if code < 0 else 0,
        "started": begun,
        "finished": time.time(),
        "oom": out_of_memory_kills(orders["oom"]) > kills,
    }
    save(f"{state}/exit.json", ended)


def join(orders: Orders) -> NoReturn:
    """Run a command beside a container's process: in its namespaces, cgroups and as its user."""
    if orders.get("terminal"):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    try:
        enter_container(orders)
        become(orders)
    except (Refused, OSError) as error:
        print(f"lockstep: {error}", file=sys.stderr, flush=True)
    os._exit(126)


def main() -> None:
    """Read the orders, from another file than standard input if one is named, and obey them."""
    if sys.argv[-1].isdigit():
        with open(int(sys.argv[-1]), "rb") as source:
            orders = json.loads(source.read())
    else:
        orders = json.loads(sys.stdin.buffer.read())
    if orders["do"] == "run":
        run(orders)
    else:
        join(orders)
