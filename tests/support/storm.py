"""Writers and watchers of an API server that is killed under them, and what they were told."""

from __future__ import annotations

import asyncio
import hashlib
import random
from dataclasses import dataclass, field

from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound, Unreachable

Told = tuple[int, str]
"""Resource version and value."""
SPACE = "default"
AGAIN = 0.05
"""Seconds after which somebody whose connection broke tries again."""


@dataclass
class Writer:
    """Creates, changes and deletes objects of its own; keeps what was acknowledged."""

    client: Client
    name: str
    dice: random.Random
    acknowledged: list[tuple[str, Told | None]] = field(default_factory=list)
    """In order: the object, and version and value, or None for a deletion."""
    uncertain: dict[str, list[str | None]] = field(default_factory=dict)
    """Values of writes that were never answered since the last that was; None for a deletion."""
    _alive: list[str] = field(default_factory=list)
    _made: int = 0

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            choice = self.dice.random()
            if not self._alive or choice < 0.5:
                await self._create()
            elif choice < 0.85:
                await self._change(self.dice.choice(self._alive))
            else:
                await self._delete(self._alive.pop(self.dice.randrange(len(self._alive))))

    async def _create(self) -> None:
        self._made += 1
        name = f"{self.name}-{self._made}"
        value = self._value(name)
        body = {"metadata": {"name": name, "namespace": SPACE}, "data": {"value": value}}
        self.uncertain.setdefault(name, []).append(value)
        try:
            made = await self.client.create(CONFIG_MAPS, body)
        except ApiError as error:
            await self._broken(error)
            return
        self._alive.append(name)
        self._note(name, made)

    async def _change(self, name: str) -> None:
        value = self._value(name)
        self.uncertain.setdefault(name, []).append(value)
        try:
            new = await self.client.patch(CONFIG_MAPS, name, {"data": {"value": value}}, SPACE)
        except ApiError as error:
            await self._broken(error)
            return
        self._note(name, new)

    async def _delete(self, name: str) -> None:
        self.uncertain.setdefault(name, []).append(None)
        try:
            await self.client.delete(CONFIG_MAPS, name, SPACE)
        except NotFound:
            pass  # an earlier attempt had worked, and its answer was lost
        except ApiError as error:
            await self._broken(error)
            return
        del self.uncertain[name]
        self.acknowledged.append((name, None))

    def _note(self, name: str, obj: ConfigMap) -> None:
        del self.uncertain[name]
        told = (int(obj.metadata.resource_version), obj.data["value"])
        self.acknowledged.append((name, told))

    async def _broken(self, error: ApiError) -> None:
        assert isinstance(error, Unreachable) or error.status >= 500, error
        await asyncio.sleep(AGAIN)

    def _value(self, name: str) -> str:
        """Return something of any size that cannot be mistaken for another."""
        text = f"{name} {self.dice.random()}"
        return f"{text} {hashlib.sha256(text.encode()).hexdigest() * self.dice.randint(1, 40)}"


@dataclass
class Watcher:
    """Follows all objects over every restart, from where it was."""

    client: Client
    version: str
    events: list[tuple[str, str, Told]] = field(default_factory=list)
    """Type, name, version and value, as they came."""

    async def run(self) -> None:
        """Watch until cancelled.

        Raises:
            ApiError: such as that the version is no longer known, which would be a gap.
        """
        while True:
            try:
                await self._watch()
            except Unreachable:
                await asyncio.sleep(AGAIN)

    async def _watch(self) -> None:
        found = self.client.watch(CONFIG_MAPS, SPACE, resource_version=self.version)
        async for event in found:
            self.version = event.resource_version
            if event.object is not None:
                told = (int(event.resource_version), event.object.data.get("value", ""))
                self.events.append((event.type, event.object.metadata.name, told))

    def replayed(self) -> dict[str, Told]:
        """Return what is there after all that was told."""
        there: dict[str, Told] = {}
        for type_, name, told in self.events:
            if type_ == "DELETED":
                del there[name]
            else:
                there[name] = told
        return there
