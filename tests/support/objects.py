"""Small objects to follow, and a model of a server that keeps their history."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockstep.api.core import ConfigMap
from lockstep.api.meta import ObjectMeta
from lockstep.kube.codec import WatchEvent


def config_map(
    name: str, *, version: int = 1, uid: str = "u", value: str = "", space: str = "s"
) -> ConfigMap:
    """Return an object whose label ``colour`` is *value*."""
    return ConfigMap(
        metadata=ObjectMeta(
            name=name,
            namespace=space,
            uid=uid,
            resource_version=str(version),
            labels={"colour": value} if value else {},
        ),
        data={"value": value},
    )


@dataclass
class History:
    """What a server did to a collection, in order; versions count from 1."""

    objects: dict[str, ConfigMap] = field(default_factory=dict)
    events: list[WatchEvent[ConfigMap]] = field(default_factory=list)
    version: int = 1
    compacted: int = 0
    """Versions up to this one can no longer be watched from."""

    def put(self, name: str, value: str) -> None:
        self.version += 1
        old = self.objects.get(name)
        uid = old.metadata.uid if old else f"uid-{self.version}"
        obj = config_map(name, version=self.version, uid=uid, value=value)
        self.objects[name] = obj
        self._add("MODIFIED" if old else "ADDED", obj)

    def delete(self, name: str) -> None:
        old = self.objects.pop(name, None)
        if old is None:
            return
        self.version += 1
        last = config_map(name, version=self.version, uid=old.metadata.uid, value=old.data["value"])
        self._add("DELETED", last)

    def compact(self) -> None:
        self.compacted = self.version

    def after(self, version: str) -> list[WatchEvent[ConfigMap]] | None:
        """Return what happened after *version*, None where that is no longer known."""
        if int(version) < self.compacted:
            return None
        return [e for e in self.events if int(e.resource_version) > int(version)]

    def initial(self) -> list[WatchEvent[ConfigMap]]:
        """Return what a streaming list begins with."""
        present = [
            WatchEvent("ADDED", obj, obj.metadata.resource_version) for obj in self.objects.values()
        ]
        return [*present, WatchEvent("BOOKMARK", None, str(self.version), synced=True)]

    def _add(self, type_: str, obj: ConfigMap) -> None:
        self.events.append(WatchEvent(type_, obj, str(self.version)))
