"""The environment, command line and directory of a container."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.core import ConfigMap, Secret
from lockstep.api.pipeline import STEP_ANNOTATION
from lockstep.nodes.process.downward import Place, UnknownField, field_value, resource_value
from lockstep.nodes.process.expansion import expand
from lockstep.nodes.process.images import Entry
from lockstep.nodes.process.spec import Container, EnvFrom, EnvVar, KeyRef, Pod

ROOT_CA: Final = "kube-root-ca.crt"
"""The ConfigMap of each namespace with the authority that signed the server's certificate."""
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


class ConfigError(Exception):
    """What a container refers to is not there: it waits with ``CreateContainerConfigError``."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The ConfigMaps, Secrets and tokens that a pod refers to and that exist."""

    config_maps: Mapping[str, ConfigMap] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    tokens: Mapping[tuple[str, int], str] = field(default_factory=dict, repr=False)
    """Tokens of the pod's service account by audience and life in seconds."""

    def config_map(self, name: str, *, optional: bool) -> Mapping[str, bytes] | None:
        """Return the content of a ConfigMap, or none when it may be missing and is.

        Raises:
            ConfigError: when it is missing.
        """
        found = self.config_maps.get(name)
        if found is None:
            if optional:
                return None
            raise ConfigError(f'configmap "{name}" not found')
        plain = {key: value.encode() for key, value in found.data.items()}
        return plain | {key: base64.b64decode(data) for key, data in found.binary_data.items()}

    def secret(self, name: str, *, optional: bool) -> Mapping[str, bytes] | None:
        """Return the content of a Secret, or none when it may be missing and is.

        Raises:
            ConfigError: when it is missing.
        """
        found = self.secrets.get(name)
        if found is None:
            if optional:
                return None
            raise ConfigError(f'secret "{name}" not found')
        return {key: base64.b64decode(data) for key, data in found.data.items()}


@dataclass(frozen=True, slots=True)
class Around:
    """What a container's settings may refer to."""

    pod: Pod
    sources: Sources
    place: Place


@dataclass(frozen=True, slots=True)
class Command:
    """What to execute."""

    argv: list[str]
    env: dict[str, str]
    cwd: str


def packages(pod: Pod, image: Entry | None) -> dict[str, str]:
    """Return where pip installs in a step of a pipeline: beside the node's own environment.

    An image whose programs the table names has an environment of its own.
    """
    if STEP_ANNOTATION not in pod.metadata.annotations or (image is not None and image.furnished):
        return {}
    place = f"/tmp/lockstep-packages-{pod.metadata.uid}"  # noqa: S108 - the pod's own, by its uid
    return {"PIP_TARGET": place, "PYTHONPATH": place}


def command(
    container: Container, around: Around, base: Mapping[str, str], image: Entry | None = None
) -> Command:
    """Return the command of *container*, its variables laid over those of *base*.

    *image* is what its image stands for; its command counts where the container names none.

    Raises:
        ConfigError: when there is no command, or something it refers to is not there.
    """
    env = {**base, **(image.env if image else {})}
    for one in container.env_from:
        env.update(_all_keys(one, around.sources))
    for variable in container.env:
        value = _value(variable, container, env, around)
        if value is not None:
            env[variable.name] = value
    entry = container.command or (image.command if image else [])
    if not entry and not container.args:
        raise ConfigError(
            f"no command specified, and image {container.image!r} is not in the node's table: a "
            "process node pulls no images, so the command must be in the pod or in that table"
        )
    argv = [expand(one, env) for one in [*entry, *container.args]]
    if any("\0" in text for text in [*argv, *env.values()]):
        raise ConfigError("a command or variable contains a null character")
    return Command(argv, env, container.working_dir or "/")


def _all_keys(one: EnvFrom, sources: Sources) -> Iterator[tuple[str, str]]:
    for ref, read in ((one.config_map_ref, sources.config_map), (one.secret_ref, sources.secret)):
        if ref is None:
            continue
        content = read(ref.name, optional=ref.optional) or {}
        for key, data in sorted(content.items()):
            name = one.prefix + key
            if _NAME.fullmatch(name):
                yield name, data.decode(errors="surrogateescape")


def _value(
    variable: EnvVar, container: Container, env: Mapping[str, str], around: Around
) -> str | None:
    pod, sources, place = around.pod, around.sources, around.place
    source = variable.value_from
    if source is None:
        return expand(variable.value, env)
    try:
        if source.field_ref is not None:
            return field_value(source.field_ref, pod, place)
        if source.resource_field_ref is not None:
            return resource_value(source.resource_field_ref, pod, container, place)
    except UnknownField as error:
        raise ConfigError(str(error)) from error
    if source.config_map_key_ref is not None:
        ref = source.config_map_key_ref
        return _key(ref, sources.config_map(ref.name, optional=ref.optional), "ConfigMap", pod)
    if source.secret_key_ref is not None:
        ref = source.secret_key_ref
        return _key(ref, sources.secret(ref.name, optional=ref.optional), "Secret", pod)
    raise ConfigError(f"variable {variable.name} has a source of an unknown kind")


def _key(ref: KeyRef, content: Mapping[str, bytes] | None, kind: str, pod: Pod) -> str | None:
    if content is not None and ref.key in content:
        return content[ref.key].decode(errors="surrogateescape")
    if ref.optional:
        return None
    raise ConfigError(f"couldn't find key {ref.key} in {kind} {pod.metadata.namespace}/{ref.name}")


def referenced(pod: Pod) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the ConfigMaps and of the Secrets that *pod* refers to anywhere.

    The node itself answers for the ConfigMap of the server's authority.
    """
    maps, secrets = set[str](), set[str]()
    for container in [*pod.spec.init_containers, *pod.spec.containers]:
        for one in container.env_from:
            maps.update([one.config_map_ref.name] if one.config_map_ref else [])
            secrets.update([one.secret_ref.name] if one.secret_ref else [])
        for source in [variable.value_from for variable in container.env]:
            if source is not None:
                maps.update([source.config_map_key_ref.name] if source.config_map_key_ref else [])
                secrets.update([source.secret_key_ref.name] if source.secret_key_ref else [])
    for volume in pod.spec.volumes:
        maps.update([volume.config_map.name] if volume.config_map else [])
        secrets.update([volume.secret.secret_name] if volume.secret else [])
        for projection in volume.projected.sources if volume.projected else []:
            maps.update([projection.config_map.name] if projection.config_map else [])
            secrets.update([projection.secret.name] if projection.secret else [])
    return frozenset(maps - {ROOT_CA}), frozenset(secrets)
