"""One client's connection to a kernel, which may come and go meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp import WSMsgType, web

from lockstep.api.notebooks import Kernel
from lockstep.notebooks.gateway import answers
from lockstep.notebooks.inside import messages
from lockstep.notebooks.inside.messages import OWN, Message

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.5
PATIENCE: Final = 1.0
"""Seconds that a cell waits before it says for what."""
LOOK_SECONDS: Final = 5.0
"""Seconds between two looks whether the user is to be warned that the kernel idles."""
MOST_PENDING: Final = 64 << 20
_RESTING: Final = ("Parked", "Lost", "Failed")


@dataclass
class Sent:
    """A message of the client, as it came."""

    channel: str
    message: Message
    frame: str | bytes
    since: float = field(default_factory=time.monotonic)

    @property
    def number(self) -> str:
        """Return its id."""
        return str(self.message["msg_id"])


@dataclass(eq=False)
class Session:
    """Carries messages both ways; while there is no kernel, cells wait here and wake it."""

    client: web.WebSocketResponse
    find: Callable[[], Kernel | None]
    wake: Callable[[Kernel, str], Awaitable[None]]
    connect: Callable[[Kernel], Awaitable[aiohttp.ClientWebSocketResponse]]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _pending: list[Sent] = field(default_factory=list)
    _unacknowledged: dict[str, Sent] = field(default_factory=dict)
    _upstream: aiohttp.ClientWebSocketResponse | None = None
    _asked: str = ""
    _shown: tuple[str, str] = ("", "")
    """Display id and text of what is shown below the first cell that waits."""
    _last: Sent | None = None
    """The last cell that the client sent: the warning is shown below it."""
    _warned: tuple[str, str] = ("", "")
    """Display id and text of that warning."""

    async def run(self) -> None:
        """Carry messages until the client is gone or the kernel is deleted."""
        carrying = asyncio.create_task(self._follow())
        listening = asyncio.create_task(self._listen())
        warning = asyncio.create_task(self._keep_warning())
        tasks = (carrying, listening, warning)
        try:
            await asyncio.wait([carrying, listening], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            if self._upstream is not None:
                await self._upstream.close()
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionError):
                log.error("a client's connection ended", exc_info=outcome)

    async def _listen(self) -> None:
        async for frame in self.client:
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                continue
            try:
                channel, message = messages.read(frame.data)
            except ValueError as error:
                log.warning("a client's message was refused: %s", error)
                continue
            await self._take(Sent(channel, message, frame.data))

    async def _keep_warning(self) -> None:
        while True:
            kernel = self.find()
            if kernel is not None:
                await self.warn(kernel)
            await asyncio.sleep(LOOK_SECONDS)

    async def warn(self, kernel: Kernel) -> None:
        """Show below the client's last cell that the kernel idles, until it does no more."""
        display, shown = self._warned
        text = answers.idling(kernel)
        if self._last is None or text == shown:
            return
        name = display or uuid.uuid4().hex
        self._warned = (name, text)
        parent = self._last.message["header"]
        await self._tell([answers.notice(parent, text, name, update=bool(display))])

    async def _take(self, sent: Sent) -> None:
        if _is_cell(sent):
            # What was said below an earlier cell stays there as it was.
            self._last, self._warned = sent, ("", "")
        if self._upstream is not None:
            await self._send(sent)
            return
        kernel = self.find()
        info = kernel.status.info if kernel is not None else {}
        answer = answers.instead(sent.channel, sent.message, info)
        if answer is not None:
            await self._tell(answer)
            return
        if sum(len(one.frame) for one in self._pending) + len(sent.frame) > MOST_PENDING:
            why = "too much waits for this kernel already"
            await self._tell(answers.failed(sent.message, "QueueFull", why, sent.channel))
            return
        self._pending.append(sent)
        self.changed.set()

    async def _send(self, sent: Sent) -> None:
        assert self._upstream is not None  # noqa: S101  the callers have looked
        self._unacknowledged[sent.number] = sent
        try:
            if isinstance(sent.frame, str):
                await self._upstream.send_str(sent.frame)
            else:
                await self._upstream.send_bytes(sent.frame)
        except ConnectionError:
            # It is sent again once the kernel is back.
            return

    async def _tell(self, frames: list[str | bytes]) -> None:
        for frame in frames:
            if isinstance(frame, str):
                await self.client.send_str(frame)
            else:
                await self.client.send_bytes(frame)

    async def _follow(self) -> None:
        """Be connected to the kernel whenever it runs."""
        while (kernel := self.find()) is not None:
            if kernel.status.phase in ("Running", "Parking") and kernel.status.address:
                await self._carry(kernel)
                timeout: float | None = RETRY_SECONDS
            else:
                timeout = await self._wait_for(kernel)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), timeout)
            self.changed.clear()

    async def _wait_for(self, kernel: Kernel) -> float | None:
        """Wake a kernel that rests and is waited for; return when to look again at the latest."""
        if not self._pending:
            return None
        status, wake = kernel.status, kernel.spec.wake
        if status.phase in _RESTING and wake == status.woken:
            if status.phase == "Failed" and self._asked and self._asked == wake:
                await self._fail("KernelNotStarted", status.message)
                return None
            self._asked = uuid.uuid4().hex
            await self.wake(kernel, self._asked)
        text = f"The kernel starts. {status.message}".strip()
        if status.phase == "Waiting":
            text = f"The kernel waits for its place. {status.message}".strip()
        await self._show(text)
        return PATIENCE

    async def _show(self, text: str) -> None:
        cell = next((one for one in self._pending if _is_cell(one)), None)
        display, shown = self._shown
        if cell is None or text == shown or time.monotonic() - cell.since < PATIENCE:
            return
        parent = cell.message["header"]
        frames = [answers.notice(parent, text, display or cell.number, update=bool(display))]
        if not display:
            frames.insert(0, messages.status("busy", parent))
        self._shown = (display or cell.number, text)
        await self._tell(frames)

    async def _fail(self, name: str, why: str) -> None:
        """Let all that waits fail."""
        failed, self._pending = self._pending, []
        self._shown, self._asked = ("", ""), ""
        for one in failed:
            await self._tell(answers.failed(one.message, name, why, one.channel))

    async def interrupt(self) -> bool:
        """Let cells that wait for the kernel fail; return whether there were any."""
        waiting = bool(self._pending)
        await self._fail("KeyboardInterrupt", "interrupted before the kernel had its place")
        return waiting

    async def _carry(self, kernel: Kernel) -> None:
        """Carry messages until the kernel's keeper closes or parks."""
        try:
            upstream = await self.connect(kernel)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.debug("kernel %s: %s", kernel.metadata.name, error)
            return
        async with upstream:
            self._upstream = upstream
            try:
                await self._deliver()
                await self._pump(upstream)
            finally:
                self._upstream = None
                self._pending = [*self._unacknowledged.values(), *self._pending]
                self._unacknowledged.clear()

    async def _deliver(self) -> None:
        """Send what has waited."""
        waiting, self._pending = self._pending, []
        display, _ = self._shown
        self._shown, self._asked = ("", ""), ""
        for one in waiting:
            if display == one.number:
                await self._tell([answers.no_notice(one.message["header"])])
            await self._send(one)

    async def _pump(self, upstream: aiohttp.ClientWebSocketResponse) -> None:
        async for frame in upstream:
            if frame.type is WSMsgType.BINARY:
                await self.client.send_bytes(frame.data)
            elif frame.type is WSMsgType.TEXT:
                if not frame.data.startswith(OWN):
                    await self.client.send_str(frame.data)
                elif self._heard(json.loads(frame.data)):
                    return

    def _heard(self, said: dict[str, Any]) -> bool:
        """Take what the keeper says to the gateway; return whether it takes nothing any more."""
        if said["lockstep"] == "accepted":
            self._unacknowledged.pop(said["msg_id"], None)
        return said["lockstep"] in ("parked", "returned")


def _is_cell(sent: Sent) -> bool:
    return bool(sent.message["msg_type"] == "execute_request")
