"""Makes a cluster from bare hosts, host by host, and takes it off again."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from shlex import join
from typing import Any, Final

from lockstep.cli.failure import CommandFailed
from lockstep.cli.hosts import steps
from lockstep.cli.hosts.file import Host, Site
from lockstep.cli.hosts.reach import Reach, StepFailed
from lockstep.cli.hosts.steps import Facts, Step
from lockstep.keys.files import write_private

Say = Callable[[str], None]
READY: Final = 90.0
"""Seconds for a node to say that it is ready."""
EVERY: Final = 1.0


async def create(site: Site, kubeconfig: Path, version: str, say: Say) -> dict[str, list[str]]:
    """Make the cluster, write the administrator's access, and return the steps done by host.

    Raises:
        CommandFailed: when a step fails on a host; the others were still taken as far as they go.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = _Work(site, Reach(Path(folder)), version, say)
        await work.each(work.look)
        head = site.hosts[0]
        await work.do(head, steps.plane(site, work.facts[head.name]))
        text = await work.reach.run(head, Step("access", f"cat {steps.admin(head)}", "run again"))
        write_private(kubeconfig, text.encode())
        # One after the other: the control plane's keys have one index.
        files = {one.name: await work.credentials(one) for one in site.hosts}
        await work.each(lambda one: work.join(one, files[one.name]))
        await work.wait()
        return work.done


async def remove(site: Site, say: Say) -> None:
    """Take Lockstep off all hosts, the one with the control plane last.

    Raises:
        CommandFailed: when it fails on a host.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = _Work(site, Reach(Path(folder)), "", say)

        async def off(host: Host) -> None:
            await work.reach.trust(host)
            await work.do(host, [steps.removed(site, host)])

        await work.each(off, site.hosts[1:])
        await work.each(off, site.hosts[:1])


class _Work:
    """One run over the hosts."""

    def __init__(self, site: Site, reach: Reach, version: str, say: Say) -> None:
        self.site, self.reach, self._version, self._say = site, reach, version, say
        self._began = time.monotonic()
        self.facts: dict[str, Facts] = {}
        self.done: dict[str, list[str]] = {one.name: [] for one in site.hosts}

    async def each(
        self, what: Callable[[Host], Awaitable[None]], hosts: tuple[Host, ...] | None = None
    ) -> None:
        """Do something on all hosts at the same time, and say all that failed."""
        chosen = self.site.hosts if hosts is None else hosts
        ends = await asyncio.gather(*(what(one) for one in chosen), return_exceptions=True)
        failed = [end for end in ends if isinstance(end, CommandFailed)]
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, CommandFailed):
                raise end
        if len(failed) == 1:
            raise failed[0]
        if failed:
            told = "\n".join(f"{one}\n  {one.hint}" for one in failed)
            raise CommandFailed(
                f"{len(failed)} hosts failed:\n{told}", "mend them and run it again"
            )

    async def do(self, host: Host, planned: list[Step]) -> None:
        """Take steps in order."""
        for step in planned:
            await self.reach.run(host, step)
            self.done[host.name].append(step.name)
            self._say(f"[{time.monotonic() - self._began:5.1f}s] {host.name}: {step.name} done")

    async def look(self, host: Host) -> None:
        """Find out what is on a host, and install Lockstep where that is to be done."""
        await self.reach.trust(host)
        facts = Facts.parse(await self.reach.run(host, steps.probe(host)))
        own = host.program == f"{host.directory}/venv/bin/lockstep"
        wrong = steps.missing(facts, host, self._version, own)
        if wrong:
            raise StepFailed(host, "look", "; ".join(wrong), "mend it and run it again")
        needed = self.site.install or f"lockstep[agent]=={self._version}"
        await self.do(host, steps.program(host, facts, self._version, needed))
        self.facts[host.name] = facts

    async def credentials(self, host: Host) -> Mapping[str, str]:
        """Return the files with which a host joins, by name."""
        head, step = self.site.hosts[0], steps.admit(self.site, host)
        told = await self.reach.run(head, step)
        try:
            found: dict[str, str] = json.loads(told)
        except ValueError:
            raise StepFailed(head, step.name, "it printed no credentials", step.remedy) from None
        return found

    async def join(self, host: Host, files: Mapping[str, str]) -> None:
        """Make a host a node."""
        await self.do(host, steps.node(self.site, host, self.facts[host.name], files))

    async def wait(self) -> None:
        """Wait until all are ready."""
        head = self.site.hosts[0]
        ask = [head.program, "list", "nodes", "-o", "json", "--kubeconfig", steps.admin(head)]
        step = Step("ready", join(ask), "look at the control plane")
        end = time.monotonic() + READY
        while True:
            ready = _ready(json.loads(await self.reach.run(head, step)))
            late = [one for one in self.site.hosts if one.name not in ready]
            if not late:
                return
            if time.monotonic() > end:
                log = f"{late[0].directory}/service/{steps.NODE}.log"
                what = f"the node is not ready after {READY:.0f} s"
                raise StepFailed(late[0], "ready", what, f"its log is {log}, or journalctl")
            await asyncio.sleep(EVERY)


def _ready(listed: Any) -> set[str]:
    """Return the nodes of a list that are ready."""
    nodes = listed["items"] if isinstance(listed, dict) else listed
    return {
        one["metadata"]["name"]
        for one in nodes
        for condition in one["status"].get("conditions") or ()
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }
