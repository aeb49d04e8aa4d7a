"""What the gateway says in the place of a kernel that has no process at the moment."""

from __future__ import annotations

from typing import Any, Final

from lockstep.api import duration
from lockstep.api.notebooks import Kernel
from lockstep.notebooks.inside.messages import Message, make, status, write

_EMPTY: Final[dict[str, Message]] = {
    "comm_info_request": {"comms": {}},
    "history_request": {"history": []},
    "complete_request": {"matches": [], "cursor_start": 0, "cursor_end": 0, "metadata": {}},
    "inspect_request": {"found": False, "data": {}, "metadata": {}},
    "is_complete_request": {"status": "unknown"},
    "debug_request": {"type": "response", "success": False, "body": {}},
}
"""Answers to what clients ask by themselves: it must wake no kernel."""


def instead(channel: str, message: Message, info: Message) -> list[str | bytes] | None:
    """Return the frames that answer *message* without a kernel; none when it takes one."""
    kind = message["msg_type"]
    if kind == "kernel_info_request":
        return _answer(channel, message, info) if info else None
    if kind in _EMPTY:
        return _answer(channel, message, {"status": "ok", **_EMPTY[kind]})
    return None


def _answer(channel: str, message: Message, content: Message) -> list[str | bytes]:
    parent = message["header"]
    reply = make(message["msg_type"].replace("_request", "_reply"), content, parent)
    return [status("busy", parent), write(channel, reply), status("idle", parent)]


def failed(message: Message, name: str, why: str, channel: str = "shell") -> list[str | bytes]:
    """Return the frames by which a cell fails that no kernel ran."""
    parent = message["header"]
    content: dict[str, Any] = {"ename": name, "evalue": why, "traceback": [f"{name}: {why}"]}
    reply = make(
        message["msg_type"].replace("_request", "_reply"), {"status": "error", **content}, parent
    )
    return [
        status("busy", parent),
        write("iopub", make("error", content, parent)),
        write(channel, reply),
        status("idle", parent),
    ]


def notice(parent: Message, text: str, display: str, *, update: bool) -> str | bytes:
    """Return the frame that shows *text* below a cell that waits, or changes it there."""
    kind = "update_display_data" if update else "display_data"
    content = {
        "data": {"text/plain": text},
        "metadata": {},
        "transient": {"display_id": display},
    }
    return write("iopub", make(kind, content, parent))


def idling(kernel: Kernel) -> str:
    """Return what a kernel's user is told below a cell of its idling; empty while it does not."""
    status = kernel.status
    if status.warned and status.phase == "Running":
        left = duration.show(float(status.warned.removesuffix("s")))
        return (
            f"This kernel idles. In {left} or less its state is kept and its place is given back; "
            "the next cell gets it a place again. Run a cell to keep the place."
        )
    if status.phase == "Parked":
        return "This kernel idled: its state is kept. The next cell gets it a place again."
    return ""


def no_notice(parent: Message) -> str | bytes:
    """Return the frame that takes away what was shown below a cell."""
    return write("iopub", make("clear_output", {"wait": False}, parent))
