"""What is in the volumes that are made from objects, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep.nodes.process import paths
from lockstep.nodes.process.downward import UnknownField, field_value, resource_value
from lockstep.nodes.process.environment import Around, ConfigError
from lockstep.nodes.process.spec import (
    DownwardFile,
    DownwardVolume,
    KeyToPath,
    Pod,
    Projection,
    Volume,
)


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume; *path* is relative and stays inside."""

    path: str
    data: bytes
    mode: int


def files(volume: Volume, around: Around) -> list[File] | None:
    """Return the files of *volume*; none when its content does not come from objects.

    Raises:
        ConfigError: when something it refers to is not there.
        paths.UnsafeName: when a file would lie outside the volume.
    """
    if volume.config_map is not None:
        return _of(Projection(config_map=volume.config_map), volume.config_map.default_mode, around)
    if volume.secret is not None:
        return _of(Projection(secret=volume.secret), volume.secret.default_mode, around)
    if volume.downward_api is not None:
        mode = volume.downward_api.default_mode
        return _of(Projection(downward_api=volume.downward_api), mode, around)
    if volume.projected is not None:
        mode = volume.projected.default_mode
        return [file for one in volume.projected.sources for file in _of(one, mode, around)]
    return None


def _of(source: Projection, mode: int, around: Around) -> list[File]:
    if source.config_map is not None:
        ref = source.config_map
        content = around.sources.config_map(ref.name, optional=ref.optional)
        return _keys(content, ref.items, mode, ref.optional)
    if source.secret is not None:
        secret = source.secret
        name = secret.secret_name or secret.name
        content = around.sources.secret(name, optional=secret.optional)
        return _keys(content, secret.items, mode, secret.optional)
    if source.downward_api is not None:
        return _downward(source.downward_api, mode, around)
    if source.service_account_token is not None:
        wanted = source.service_account_token
        token = around.sources.tokens[wanted.audience, wanted.expiration_seconds]
        return [File(paths.relative(wanted.path), token.encode(), mode)] if token else []
    raise ConfigError("a projected volume has a source of a kind that a process node lacks")


def _keys(
    content: Mapping[str, bytes] | None, items: Iterable[KeyToPath], mode: int, optional: bool
) -> list[File]:
    if content is None:
        return []
    chosen = list(items)
    if not chosen:
        return [File(paths.relative(key), data, mode) for key, data in sorted(content.items())]
    result = []
    for item in chosen:
        if item.key in content:
            file_mode = mode if item.mode is None else item.mode
            result.append(File(paths.relative(item.path), content[item.key], file_mode))
        elif not optional:
            raise ConfigError(f"references non-existent config key: {item.key}")
    return result


def _downward(volume: DownwardVolume, mode: int, around: Around) -> list[File]:
    return [
        File(
            paths.relative(item.path),
            _downward_text(item, around).encode(),
            mode if item.mode is None else item.mode,
        )
        for item in volume.items
    ]


def _downward_text(item: DownwardFile, around: Around) -> str:
    try:
        if item.field_ref is not None:
            return field_value(item.field_ref, around.pod, around.place)
        if item.resource_field_ref is not None:
            return resource_value(item.resource_field_ref, around.pod, None, around.place)
    except UnknownField as error:
        raise ConfigError(str(error)) from error
    raise ConfigError(f"the file {item.path} of a downwardAPI volume has no source")


def secret_inside(volume: Volume) -> bool:
    """Tell whether *volume* holds secrets, which must not reach a disk."""
    if volume.secret is not None:
        return True
    sources = volume.projected.sources if volume.projected else []
    return any(one.secret is not None or one.service_account_token is not None for one in sources)


def supported(volume: Volume) -> bool:
    """Tell whether a process node knows the kind of *volume*."""
    return any(
        source is not None
        for source in (
            volume.empty_dir,
            volume.host_path,
            volume.config_map,
            volume.secret,
            volume.downward_api,
            volume.projected,
            volume.persistent_volume_claim,
        )
    )


def refreshable(pod: Pod) -> bool:
    """Tell whether *pod* has volumes whose content follows objects while it runs."""
    return any(
        one.config_map is not None
        or one.secret is not None
        or one.projected is not None
        or one.downward_api is not None
        for one in pod.spec.volumes
    )
