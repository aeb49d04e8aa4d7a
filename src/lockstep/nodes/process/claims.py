"""Claims of volumes: the directories of this machine that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.api.core import CLAIMS, VOLUMES, AnyObject
from lockstep.api.dataset_cache import DATASET_CACHES, DRIVER, cache_name, shown
from lockstep.api.resource import Resource
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.nodes.process.environment import ConfigError
from lockstep.nodes.process.spec import Pod


@dataclass(frozen=True, slots=True)
class Claimed:
    """A directory that a claim stands for."""

    path: Path
    read_only: bool = False


class NotYet(ConfigError):
    """What a claim stands for is on its way to this node."""


class Claims:
    """Finds what claims stand for on the node *name*; none lies in *hidden*, but for *shown*."""

    def __init__(
        self, client: Client, name: str, hidden: tuple[str, ...] = (), shown: str = ""
    ) -> None:
        self._client, self._name, self._shown = client, name, shown
        self._hidden = tuple(Path(one) for one in hidden)
        self.no_cache: Callable[[], str] = str
        """Tells why this node keeps no datasets; empty where it does."""

    async def of(self, pod: Pod) -> dict[str, Claimed]:
        """Return what each claim of *pod* stands for, by the claim's name.

        Raises:
            NotYet: when a dataset is not whole on this node yet.
            ConfigError: when a claim or its volume is missing, or of a kind that the node lacks.
        """
        wanted = {
            one.persistent_volume_claim.claim_name
            for one in pod.spec.volumes
            if one.persistent_volume_claim is not None
        }
        return {name: await self._one(pod.metadata.namespace, name) for name in sorted(wanted)}

    async def _one(self, namespace: str, name: str) -> Claimed:
        claim = await self._get(CLAIMS, name, namespace)
        volume_name = claim.spec.get("volumeName")
        if not volume_name:
            raise ConfigError(f"persistentvolumeclaim {name!r} is not bound to a volume")
        volume = await self._get(VOLUMES, volume_name, None)
        reference = volume.spec.get("claimRef") or {}
        if (reference.get("namespace"), reference.get("name")) != (namespace, name):
            raise ConfigError(
                f"persistentvolume {volume_name!r} is not for the claim {namespace}/{name}"
            )
        csi = volume.spec.get("csi") or {}
        if csi.get("driver") == DRIVER:
            return await self._dataset(namespace, csi.get("volumeAttributes") or {})
        plain = volume.spec.get("hostPath") or volume.spec.get("local")
        if plain is None:
            raise ConfigError(
                f"persistentvolume {volume_name!r} is of a kind that a process node lacks; it has "
                f"hostPath, local, and csi of {DRIVER}"
            )
        return self._directory(volume_name, Path(str(plain.get("path", ""))))

    async def _dataset(self, namespace: str, attributes: dict[str, Any]) -> Claimed:
        dataset = str(attributes.get("dataset", ""))
        # The volume, which the cluster's own controller makes, says whose dataset a claim shows:
        # one of another namespace only where its owner shares it.
        space = str(attributes.get("namespace", namespace))
        below = str(attributes.get("path", ""))
        if ".." in below.split("/"):
            raise ConfigError(f"dataset {dataset!r}: {below!r} leads out of it")
        try:
            found = await self._client.get(DATASET_CACHES, cache_name(dataset, self._name), space)
            place, why_not = shown(found)
        except NotFound:
            place, why_not = "", f"dataset {dataset!r} is not asked of this node yet"
        if not place and (problem := self.no_cache()):
            raise ConfigError(f"dataset {dataset!r}: {problem}")
        if not place:
            raise NotYet(why_not)
        return Claimed(Path(place, below), read_only=True)

    def _directory(self, volume: str, path: Path) -> Claimed:
        real = path.resolve()
        if not path.is_absolute() or not real.is_dir():
            raise ConfigError(f"persistentvolume {volume!r}: {path} is no directory of this node")
        # Volumes there are made for one claim each, by the controller or an administrator.
        within = bool(self._shown) and Path(self._shown) in real.parents
        for one in () if within else self._hidden:
            if real.is_relative_to(one) or one.is_relative_to(real):
                raise ConfigError(
                    f"persistentvolume {volume!r}: {path} holds what pods may not see"
                )
        return Claimed(path)

    async def _get(self, resource: Resource[Any], name: str, namespace: str | None) -> AnyObject:
        try:
            found: AnyObject = await self._client.get(resource, name, namespace)
        except NotFound:
            raise ConfigError(f"{resource.kind.lower()} {name!r} not found") from None
        return found
