"""The kernel's process and its channels, as the keeper sees them."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import logging
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from lockstep.notebooks.inside import session_state

log = logging.getLogger(__name__)

Message = dict[str, Any]
Hear = Callable[[str, Message], None]

READY_SECONDS: Final = 120.0
_CODE: Final = Path(session_state.__file__)
_CHANNELS: Final = ("shell", "control", "iopub", "stdin")


class Gone(Exception):
    """The kernel's process has ended."""


@dataclass
class Kernel:
    """One kernel's process; *hear* gets each of its messages with the name of the channel."""

    python: str
    hear: Hear
    environ: dict[str, str]
    extra_path: str = ""
    """Directory in which the kernel finds cloudpickle where its environment lacks it."""
    info: Message = field(default_factory=dict)
    _manager: AsyncKernelManager | None = None
    _client: AsyncKernelClient | None = None
    _reading: list[asyncio.Task[None]] = field(default_factory=list)
    _asked: dict[str, asyncio.Future[Message]] = field(default_factory=dict)

    async def start(self) -> None:
        """Start the process and return once it answers.

        Raises:
            RuntimeError: when it does not.
        """
        folder = tempfile.mkdtemp(prefix="lk-")
        manager = AsyncKernelManager(transport="ipc", ip=f"{folder}/k")
        manager.connection_file = f"{folder}/connection.json"
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        manager._kernel_spec = KernelSpec(argv=argv, display_name="Python 3", language="python")
        self._manager = manager
        await manager.start_kernel(env=self.environ)
        self._client = manager.client()
        self._client.start_channels()
        await self._client.wait_for_ready(timeout=READY_SECONDS)
        reply = await self._request(self._client.session.msg("kernel_info_request", {}))
        self.info = reply["content"]
        await self._prepare()

    async def _prepare(self) -> None:
        assert self._client is not None  # noqa: S101  start has made it
        if not self._reading:
            self._reading = [asyncio.create_task(self._read(name)) for name in _CHANNELS]
        code = (
            "import importlib.util, sys\n"
            f"name, file = {session_state.MODULE!r}, {str(_CODE)!r}\n"
            "spec = importlib.util.spec_from_file_location(name, file)\n"
            "module = importlib.util.module_from_spec(spec)\n"
            "sys.modules[spec.name] = module\n"
            "spec.loader.exec_module(module)\n"
        )
        if self.extra_path:
            code += f"sys.path.append({self.extra_path!r})\n"
        await self._evaluate(f"exec({code!r}, {{}})")
        await self.ask("begin")

    def send(self, channel: str, message: Message) -> None:
        """Send a client's message as it is."""
        assert self._client is not None  # noqa: S101
        getattr(self._client, f"{channel}_channel").send(message)

    async def ask(self, name: str, *arguments: Any) -> Message:
        """Call a function of ``session_state`` in the kernel; return ``done`` or what kept it."""
        asked = json.dumps([name, arguments])
        module = f"__import__('sys').modules[{session_state.MODULE!r}]"
        found = await self._evaluate(f"{module}.call({asked!r})")
        answer: Message = json.loads(ast.literal_eval(found))
        return answer

    async def _evaluate(self, expression: str) -> str:
        assert self._client is not None  # noqa: S101
        content = {
            "code": "",
            "silent": True,
            "store_history": False,
            "user_expressions": {"it": expression},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        reply = await self._request(self._client.session.msg("execute_request", content))
        found = reply["content"].get("user_expressions", {}).get("it", {})
        if found.get("status") != "ok":
            raise RuntimeError(f"{found.get('ename')}: {found.get('evalue')}")
        return str(found["data"]["text/plain"])

    async def _request(self, message: Message) -> Message:
        """Send a message of our own on the shell channel; return its reply.

        Raises:
            Gone: when the process ends instead.
        """
        assert self._client is not None  # noqa: S101
        wanted = message["header"]["msg_id"]
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[wanted] = waiting
        if not self._reading:
            self._reading = [asyncio.create_task(self._read(name)) for name in _CHANNELS]
        self._client.shell_channel.send(message)
        try:
            while True:
                done, _ = await asyncio.wait([waiting], timeout=1.0)
                if done:
                    return waiting.result()
                if not await self.alive():
                    raise Gone("the kernel ended while it was asked")
        finally:
            self._asked.pop(wanted, None)

    async def _read(self, channel: str) -> None:
        assert self._client is not None  # noqa: S101
        get: Callable[[], Coroutine[Any, Any, Message]]
        get = getattr(self._client, f"get_{channel}_msg")
        own = self._client.session.session
        while True:
            try:
                message = await get()
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                # What the kernel's user made it send must not make it unreachable.
                log.warning("a message on %s cannot be read: %s", channel, error)
                continue
            parent = message.get("parent_header") or {}
            waiting = self._asked.get(parent.get("msg_id", ""))
            if channel == "shell" and waiting is not None and not waiting.done():
                waiting.set_result(message)
            elif parent.get("session") != own:
                self.hear(channel, message)

    async def alive(self) -> bool:
        """Return whether the process runs."""
        return self._manager is not None and bool(await self._manager.is_alive())

    async def interrupt(self) -> None:
        """Interrupt what the kernel computes."""
        if self._manager is not None:
            await self._manager.interrupt_kernel()

    async def restart(self) -> None:
        """End the process and start a fresh one on the same channels."""
        assert self._manager is not None  # noqa: S101
        assert self._client is not None  # noqa: S101
        await self._manager.restart_kernel(now=True)
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        self._reading = []
        await self._client.wait_for_ready(timeout=READY_SECONDS)
        await self._prepare()

    async def stop(self) -> None:
        """End the process."""
        for task in self._reading:
            task.cancel()
        if self._client is not None:
            self._client.stop_channels()
        if self._manager is not None:
            with contextlib.suppress(RuntimeError):
                await self._manager.shutdown_kernel(now=True)
