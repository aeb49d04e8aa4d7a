"""A kernel that idles says so in the page, below the cell that its user ran last."""

from __future__ import annotations

import json
from typing import Any

from lockstep.api.notebooks import Kernel
from lockstep.api.wire import convert
from lockstep.notebooks.gateway.session import Sent, Session


class Page:
    """Takes what is sent to a browser."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []

    async def send_str(self, frame: str) -> None:
        self.frames.append(json.loads(frame))


def kernel(**status: Any) -> Kernel:
    return convert({"metadata": {"name": "k"}, "status": status}, Kernel)


def session(page: Page) -> Session:
    async def unused(*_: Any) -> Any:
        raise AssertionError

    return Session(page, lambda: None, unused, unused)  # type: ignore[arg-type]


def cell(number: str) -> Sent:
    header = {"msg_id": number, "msg_type": "execute_request", "session": "s", "username": "u"}
    return Sent("shell", {"header": header, "msg_id": number, "msg_type": "execute_request"}, "")


def told(page: Page) -> list[tuple[str, str, str]]:
    """Return of each frame its kind, the cell that it belongs to, and the beginning of its text."""
    return [
        (
            one["header"]["msg_type"],
            one["parent_header"]["msg_id"],
            one["content"]["data"]["text/plain"][:21],
        )
        for one in page.frames
    ]


async def test_the_warning_stands_below_the_last_cell_and_changes_there() -> None:
    page = Page()
    one = session(page)
    idle, nearer = (kernel(phase="Running", warned=level) for level in ("600s", "120s"))
    await one.warn(idle)
    assert not page.frames
    await one._take(cell("1"))
    for state in (idle, idle, nearer, kernel(phase="Parked")):
        await one.warn(state)
    assert told(page) == [
        ("display_data", "1", "This kernel idles. In"),
        ("update_display_data", "1", "This kernel idles. In"),
        ("update_display_data", "1", "This kernel idled: it"),
    ]
    texts = [one["content"]["data"]["text/plain"] for one in page.frames]
    assert "In 10m or less" in texts[0]
    assert "In 2m or less" in texts[1]
    assert len({one["content"]["transient"]["display_id"] for one in page.frames}) == 1


async def test_a_new_cell_begins_without_a_warning() -> None:
    page = Page()
    one = session(page)
    await one._take(cell("1"))
    await one.warn(kernel(phase="Running", warned="120s"))
    await one._take(cell("2"))
    await one.warn(kernel(phase="Running"))
    assert [parent for _, parent, _ in told(page)] == ["1"]


async def test_a_warning_goes_when_the_kernel_is_in_use_again() -> None:
    page = Page()
    one = session(page)
    await one._take(cell("1"))
    await one.warn(kernel(phase="Running", warned="120s"))
    await one.warn(kernel(phase="Running"))
    assert told(page)[-1] == ("update_display_data", "1", "")
