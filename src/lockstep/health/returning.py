"""The agent's part that resets devices by its hook, and checks a node that is to come back."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from lockstep.api.node_health import (
    NODE_HEALTHS,
    Checked,
    CheckResult,
    Finding,
    NodeHealth,
    Reset,
    ResetDone,
)
from lockstep.api.timestamp import show
from lockstep.api.wire import to_builtins
from lockstep.health import checking
from lockstep.health.core.findings import merged
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Conflict
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

RETRY: Final = 2.0
HOOK_PATIENCE: Final = 600.0
DIRECTORY: Final = Path("/var/tmp")  # noqa: S108 - a file with a name of its own, for a moment
CAUSE: Final = "the check {} failed"
SURE: Final = 0.9


class ReturnPart:
    """Does what remediation asks for of the NodeHealth of *node*.

    *cleared* learns which devices were reset or passed their checks, *fenced* which are not to be
    handed out now.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        hook: Path | None = None,
        cleared: Callable[[set[str]], None] = lambda _: None,
        fenced: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._client, self._node, self._hook = client, node, hook
        self._cleared, self._fenced = cleared, fenced
        self._health: Informer[NodeHealth] = Informer(
            client, NODE_HEALTHS, field_selector=f"metadata.name={node}"
        )
        self._due = asyncio.Event()

    async def run(self) -> None:
        """Act until cancelled."""
        following = asyncio.ensure_future(self._health.run())
        end = self._health.subscribe(self._changed)
        try:
            while True:
                self._due.clear()
                try:
                    await self._act()
                except Conflict:
                    continue
                except ApiError as error:
                    log.warning("the health of node %s: %s", self._node, error)
                    await asyncio.sleep(RETRY)
                    continue
                await self._due.wait()
        finally:
            following.cancel()
            end()

    def _changed(self, change: Change[NodeHealth]) -> None:
        self._fenced(change.new.status.fenced if change.new is not None else ())
        self._due.set()

    async def _act(self) -> None:
        health = self._health.get("", self._node)
        if health is None:
            return
        wanted, done = health.status.reset, health.spec.reset
        if wanted is not None and (done is None or done.asked != wanted.asked):
            failed = await self._reset(wanted)
            self._cleared(set(wanted.devices) - failed.keys())
            await self._write(lambda there: after_reset(there, wanted, failed))
            return
        asked, checked = health.status.asked, health.spec.checked
        if asked and (checked is None or checked.asked != asked):
            found = await self._check(health.status.checks)
            for one in found:
                log.info("check %s %s: %s: %s", one.name, one.device, one.state, one.evidence)
            answer = Checked(asked=asked, results=found)
            self._cleared(sound(found))
            await self._write(lambda there: after_checks(there, answer, show(time.time())))

    async def _check(self, names: Sequence[str]) -> list[CheckResult]:
        # What nodes measure with each other is asked of all of them by remediation.
        local = [one for one in names if one != "network"]
        return await asyncio.to_thread(checking.run, local, DIRECTORY) if local else []

    async def _reset(self, wanted: Reset) -> dict[str, str]:
        """Run the hook for each device; return why it failed for some."""
        if self._hook is None:
            why = "the agent of this node was given no hook (lockstep agent --reset-hook)"
            return dict.fromkeys(wanted.devices, why)
        failed = {}
        for device in wanted.devices:
            if why := await _hooked(self._hook, self._node, device):
                log.warning("the reset of %s failed: %s", device or "the node", why)
                failed[device] = why
        return failed

    async def _write(self, change: Callable[[NodeHealth], dict[str, Any]]) -> None:
        there = await self._client.get(NODE_HEALTHS, self._node)
        body = {
            "metadata": {"resourceVersion": there.metadata.resource_version},
            "spec": change(there),
        }
        await self._client.patch(NODE_HEALTHS, self._node, body)


async def _hooked(hook: Path, node: str, device: str) -> str:
    """Run the hook; return why it failed, empty where it did not."""
    try:
        child = await asyncio.create_subprocess_exec(
            str(hook),
            device,
            env={**os.environ, "LOCKSTEP_NODE": node},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        return f"{hook}: {error.strerror}"
    try:
        said, _ = await asyncio.wait_for(child.communicate(), HOOK_PATIENCE)
    except TimeoutError:
        child.kill()
        await child.wait()
        return f"{hook} did not end within {HOOK_PATIENCE:.0f} s"
    last = (said.decode(errors="replace").strip().splitlines() or [""])[-1][:200]
    return f"{hook} ended with {child.returncode}: {last}" if child.returncode else ""


def after_reset(there: NodeHealth, wanted: Reset, failed: dict[str, str]) -> dict[str, Any]:
    """Return the spec after resets: what was found before on devices that were reset is over."""
    done = set(wanted.devices) - failed.keys()

    def over(one: Finding) -> bool:
        known = one.device if one.device.partition("/")[0] in ("gpu", "nic") else ""
        return known in done and one.last <= wanted.asked

    kept = [one for one in there.spec.findings if not over(one)]
    told = ResetDone(
        asked=wanted.asked, failed=[f"{one or 'the node'}: {why}" for one, why in failed.items()]
    )
    return {"findings": to_builtins(kept), "reset": {**to_builtins(told), "failed": told.failed}}


def sound(results: Sequence[CheckResult]) -> set[str]:
    """Return the devices that passed a check of their own and failed none."""
    failed = {one.device for one in results if one.state == "failed"}
    return {one.device for one in results if one.state == "ok" and one.device} - failed


def after_checks(there: NodeHealth, answer: Checked, now: str) -> dict[str, Any]:
    """Return the spec after checks: one that failed is a finding of its own."""
    bad = [
        Finding(
            cause=CAUSE.format(one.name),
            class_="hardware",
            action="isolate_node",
            device=one.device,
            confidence=SURE,
            evidence=one.evidence,
            by="checks",
        )
        for one in answer.results
        if one.state == "failed"
    ]
    kept = [one for one in there.spec.findings if one.by != "checks"]
    return {
        "findings": to_builtins(merged(kept, bad, now)),
        "checked": {"asked": answer.asked, "results": to_builtins(answer.results)},
    }
