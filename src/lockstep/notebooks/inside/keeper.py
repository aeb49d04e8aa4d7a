"""The keeper: stands between a kernel and those who use it, and parks it.

It outlives clients and gateway: what the kernel says while none is connected is kept for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from lockstep.notebooks.inside import messages
from lockstep.notebooks.inside.kernel import Gone, Kernel, Message
from lockstep.notebooks.inside.shelf import Refused, Shelf

log = logging.getLogger(__name__)

KEPT_BYTES: Final = 64 << 20
"""Most that is kept of what the kernel says while no client is connected."""
INTERRUPT_SECONDS: Final = 10.0


class Client(Protocol):
    """A connection through which a gateway speaks for one of its clients."""

    def put(self, frame: str | bytes) -> None:
        """Send a frame, some time soon."""


@dataclass
class Keeper:
    """One kernel, its clients, and what is known of both."""

    shelf: Shelf | None
    since: int = 0
    clock: Callable[[], float] = time.monotonic
    others: Callable[[], bool] = lambda: False
    """Whether people were at work in the pod beside its cells since the last call."""
    kernel: Kernel | None = None
    clients: set[Client] = field(default_factory=set)
    parked: Message | None = None
    restored: Message | None = None
    failure: str = ""
    """Why the session cannot be used; empty while it can."""
    _busy: dict[str, Client | None] = field(default_factory=dict)
    _active: float = 0.0
    _kept: deque[str | bytes] = field(default_factory=deque)
    _kept_bytes: int = 0
    _lost_bytes: int = 0
    _held: list[tuple[Client, str, Message]] = field(default_factory=list)
    _parking: bool = False
    _seen: dict[str, None] = field(default_factory=dict)
    _said: asyncio.Event = field(default_factory=asyncio.Event)
    _unanswered: set[str] = field(default_factory=set)
    """Messages of kinds that get no reply, and that the kernel is at work on."""

    async def start(self, kernel: Kernel) -> None:
        """Start *kernel* and bring the newest state on the shelf into it."""
        self.kernel = kernel
        self._active = self.clock()
        try:
            await kernel.start()
            newest = self.shelf.newest(self.since) if self.shelf else None
            if newest is not None:
                found = await kernel.ask("load", str(newest))
                if "error" in found:
                    raise Refused(f"the state in {newest} cannot be loaded: {found['error']}")
                self.restored = {"generation": int(newest.name), **found["done"]}
        except (Refused, RuntimeError, Gone, OSError) as error:
            self.failure = str(error)
        self._active = self.clock()

    @property
    def _works(self) -> bool:
        return bool(self._busy or self._unanswered)

    def state(self) -> Message:
        """Return what the controller wants to know."""
        assert self.kernel is not None  # noqa: S101
        if self.others():
            self._active = self.clock()
        return {
            "execution_state": "busy" if self._works else "idle",
            "idle_for": 0.0 if self._works else max(0.0, self.clock() - self._active),
            "connections": len(self.clients),
            "parked": self.parked,
            "restored": self.restored,
            "failure": self.failure,
            "info": self.kernel.info,
            "ready": bool(self.kernel.info) and not self.failure,
        }

    def connect(self, client: Client) -> None:
        """Take a client, and give it what was said while there was none."""
        self.clients.add(client)
        while self._kept:
            client.put(self._kept.popleft())
        self._kept_bytes = 0
        if self.parked is not None:
            client.put(messages.PARKED)

    def disconnect(self, client: Client) -> None:
        """Forget a client."""
        self.clients.discard(client)

    def take(self, client: Client, frame: str | bytes) -> None:
        """Pass a client's message on, or give it back where the session is parked."""
        channel, message = messages.read(frame)
        number = message["header"]["msg_id"]
        if self.parked is not None or self.failure:
            client.put(messages.returned(number))
        elif self._parking:
            self._held.append((client, channel, message))
        else:
            self._pass_on(client, channel, message)

    def _pass_on(self, client: Client, channel: str, message: Message) -> None:
        assert self.kernel is not None  # noqa: S101
        number = message["header"]["msg_id"]
        client.put(messages.accepted(number))
        if number in self._seen:
            return
        self._seen[number] = None
        if message["msg_type"].startswith("comm_"):
            self._unanswered.add(number)
        elif channel in ("shell", "control"):
            self._busy[number] = client
        self._active = self.clock()
        self.kernel.send(channel, message)

    def hear(self, channel: str, message: Message) -> None:
        """Give a message of the kernel to whom it concerns."""
        self._active = self.clock()
        parent = (message.get("parent_header") or {}).get("msg_id", "")
        frame = messages.write(channel, message)
        if channel == "iopub":
            if (message.get("content") or {}).get("execution_state") == "idle":
                self._unanswered.discard(parent)
            self._said.set()
            self._tell(frame)
            return
        client = self._busy.get(parent)
        if channel in ("shell", "control"):
            self._busy.pop(parent, None)
        self._said.set()
        if client in self.clients and client is not None:
            client.put(frame)
        else:
            self._tell(frame)

    def _tell(self, frame: str | bytes) -> None:
        for client in self.clients:
            client.put(frame)
        if self.clients:
            return
        if self._kept_bytes + len(frame) > KEPT_BYTES:
            self._lost_bytes += len(frame)
            return
        self._kept.append(frame)
        self._kept_bytes += len(frame)

    async def park(self, *, drop: bool = False) -> Message:
        """Write the session to the shelf; return its generation, or what keeps it from that.

        With *drop* what cannot be kept is left out. A message that comes meanwhile undoes it.
        """
        if self.parked is not None:
            return {"parked": self.parked}
        if self.shelf is None:
            return {"error": "the kernel has no volume to keep its state on"}
        if self._works or self._parking or self.failure:
            return {"busy": True}
        self._parking = True
        try:
            answer = await self._write(drop=drop)
        finally:
            self._parking = False
        held, self._held = self._held, []
        if "parked" in answer and not held:
            self.parked = answer["parked"]
            for client in self.clients:
                client.put(messages.PARKED)
            return answer
        for client, channel, message in held:
            self._pass_on(client, channel, message)
        return {"busy": True} if held else answer

    async def _write(self, *, drop: bool) -> Message:
        assert self.kernel is not None  # noqa: S101
        assert self.shelf is not None  # noqa: S101
        partial: Path | None = None
        try:
            left: list[str] = []
            found = (await self.kernel.ask("obstacles")).get("done", [])
            if found and not drop:
                return {"obstacles": found}
            left = [one["name"] for one in found]
            partial = self.shelf.begin()
            answer = await self.kernel.ask("save", str(partial), left)
            if "done" not in answer:
                self.shelf.abandon(partial)
                return answer
            number = self.shelf.finish(partial)
        except (OSError, RuntimeError, Gone) as error:
            if partial is not None:
                self.shelf.abandon(partial)
            return {"error": f"{type(error).__name__}: {error}"}
        done = answer["done"]
        kept = {"bytes": done["bytes"], "variables": len(done["variables"]), "dropped": left}
        return {"parked": {"generation": number, **kept}}

    async def last_park(self) -> None:
        """Keep what can be kept before the pod ends; what computes is interrupted first."""
        if self.kernel is None or self.parked is not None or self.failure:
            return
        if self._busy:
            await self.kernel.interrupt()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._calm(), INTERRUPT_SECONDS)
        answer = await self.park(drop=True)
        log.info("the pod ends: %s", answer)

    async def _calm(self) -> None:
        """Return once nothing is computed."""
        while self._works:
            self._said.clear()
            await self._said.wait()

    async def restart(self) -> None:
        """Start the kernel anew, without its variables."""
        assert self.kernel is not None  # noqa: S101
        self._busy.clear()
        self._unanswered.clear()
        self.restored, self.failure = None, ""
        await self.kernel.restart()
        self._active = self.clock()

    async def watch(self) -> None:
        """Start the kernel anew whenever its process ends by itself, and tell clients."""
        assert self.kernel is not None  # noqa: S101
        while True:
            await asyncio.sleep(1.0)
            if self.failure or self.parked is not None or await self.kernel.alive():
                continue
            self._tell(messages.status("restarting"))
            await self.restart()
            self._tell(messages.status("idle"))
