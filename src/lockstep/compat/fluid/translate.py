"""From a dataset and its runtime to what nodes are to cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from lockstep.api import duration, quantity
from lockstep.api.dataset_cache import (
    OTHER_SCHEMES,
    QUOTA_ANNOTATION,
    CacheMount,
    CacheTier,
    SecretKey,
)
from lockstep.api.wire import Json
from lockstep.compat.fluid.ignored import RUNTIME, ignored, ignored_of
from lockstep.compat.fluid.objects import Dataset, Mount, Runtime

SCHEMES: Final = (
    *("s3", "s3a", "minio", "gs", "az", "abfs", "abfss", "http", "https", "local", "file"),
    *OTHER_SCHEMES,
)
"""Sources that the cache can read."""
SETTINGS: Final = {
    "endpoint": "endpoint",
    "alluxio.underfs.s3.endpoint": "endpoint",
    "minio-url": "endpoint",
    "fs.s3.endpoint": "endpoint",
    "fs.oss.endpoint": "endpoint",
    "region": "region",
    "alluxio.underfs.s3.endpoint.region": "region",
    "alluxio.underfs.s3.region": "region",
    "fs.s3.region": "region",
    "aws.accessKeyId": "access_key_id",
    "aws.secretKey": "secret_access_key",
    "aws.secretAccessKey": "secret_access_key",
    "fs.s3.accessKeyId": "access_key_id",
    "fs.s3.accessKeySecret": "secret_access_key",
    "fs.oss.accessKeyId": "access_key_id",
    "fs.oss.accessKeySecret": "secret_access_key",
    "minio-access-key": "access_key_id",
    "minio-access-secret": "secret_access_key",
    "access-key": "access_key_id",
    "secret-key": "secret_access_key",
    "session-token": "session_token",
    "storage-config": "storage_config",
    "account-name": "account_name",
    "account-key": "account_key",
    "sas-token": "sas_token",
    "service-account-key": "service_account_key",
    "host": "host",
    "port": "port",
    "username": "username",
    "password": "password",
    "token": "token",
}
"""What the engines call a store's settings, and what the cache calls them."""
_SECRET: Final = (
    *("access_key_id", "secret_access_key", "session_token", "storage_config"),
    *("account_key", "sas_token", "service_account_key", "password", "token"),
)


class Problem(Exception):
    """A dataset or runtime that cannot be honoured: field, value and remedy."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the nodes of a dataset are to do."""

    mounts: list[CacheMount]
    tiers: list[CacheTier]
    replicas: int
    ignored: tuple[str, ...]
    """Fields of the dataset and its runtime that mean nothing to the cache."""
    pin: bool = False
    """Whether it stays on its nodes while other datasets need the room."""
    auto_sync: bool = False
    """Whether a source that changed makes a new version by itself."""
    timeout: int = 60
    """Seconds that a read waits for a source that fails."""


def translate(dataset: Dataset, runtime: Runtime) -> Wanted:
    """Return what *dataset* and *runtime* ask for.

    Raises:
        Problem: when one of their fields cannot be honoured.
    """
    if not dataset.spec.mounts:
        raise Problem("spec.mounts of the dataset is empty: name at least one source")
    mounts = [translate_mount(dataset, index, one) for index, one in enumerate(dataset.spec.mounts)]
    _check_overlaps(mounts)
    spec = runtime.spec
    # A CacheRuntime says it of its worker.
    replicas = spec.get("replicas", (spec.get("worker") or {}).get("replicas", 1))
    if not isinstance(replicas, int) or replicas < 0:
        raise Problem(f"spec.replicas of the runtime is {replicas!r}: it must be 0 or more")
    found = [*ignored_of(dataset.spec), *ignored(spec, RUNTIME)]
    named = {*dataset.spec.shared_options, *(o for m in dataset.spec.mounts for o in m.options)}
    named -= {*SETTINGS, "timeout"}
    found += sorted(f"mounts[].options.{name}" for name in named)
    pin = (spec.get("data") or {}).get("pin") is True
    management = spec.get("management") or {}
    synced = (management.get("metadataSyncPolicy") or {}).get("autoSync") is True
    return Wanted(
        mounts=mounts,
        tiers=_tiers(spec),
        replicas=max(replicas, 1),
        ignored=tuple(found),
        pin=pin,
        auto_sync=synced,
        timeout=_timeout(dataset, spec),
    )


def _timeout(dataset: Dataset, spec: Json) -> int:
    """Return the option ``timeout`` of the dataset, else of the runtime's fuse, in seconds."""
    given = [one.options for one in dataset.spec.mounts]
    given += [dataset.spec.shared_options, (spec.get("fuse") or {}).get("options") or {}]
    text = next((one["timeout"] for one in given if "timeout" in one), "60s")
    try:
        seconds = duration.parse(str(text))
    except ValueError:
        seconds = 0.0
    if seconds < 1:
        raise Problem(f"options.timeout is {text!r}: write a time of a second or more, as 60s")
    return int(seconds)


def translate_mount(dataset: Dataset, index: int, mount: Mount) -> CacheMount:
    """Return where one mount of *dataset* comes from, and with which Secrets.

    Raises:
        Problem: when one of its fields cannot be honoured.
    """
    field = f"spec.mounts[{index}]"
    scheme = urlsplit(mount.mount_point).scheme
    if scheme not in SCHEMES:
        raise Problem(
            f"{field}.mountPoint is {mount.mount_point!r}: its scheme must be one of "
            f"{', '.join(SCHEMES)}"
        )
    listed = [*dataset.spec.shared_encrypt_options, *mount.encrypt_options]
    secrets = dict(_secret(f"{field}.encryptOptions", one) for one in listed)
    single = len(dataset.spec.mounts) == 1
    path = mount.path or ("/" if single and not mount.name else f"/{mount.name}")
    if ".." in path.split("/"):
        raise Problem(f"{field}.path is {path!r}: it must not contain '..'")
    plain = {**dataset.spec.shared_options, **mount.options}
    options = {SETTINGS[name]: value for name, value in plain.items() if name in SETTINGS}
    for name in _SECRET:
        if name in options:
            raise Problem(f"{field}.options holds {name}: put it into a Secret and encryptOptions")
    return CacheMount(uri=mount.mount_point, path=path.strip("/"), options=options, secrets=secrets)


def _secret(field: str, option: Json) -> tuple[str, SecretKey]:
    ref = (option.get("valueFrom") or {}).get("secretKeyRef") or {}
    name, secret, key = option.get("name"), ref.get("name"), ref.get("key")
    if not (name and secret and key):
        raise Problem(f"{field} needs name and valueFrom.secretKeyRef with name and key")
    if name not in SETTINGS:
        raise Problem(f"{field}: {name!r} is no setting of a store; there are {_known()}")
    optional = ref.get("optional") is True
    return SETTINGS[name], SecretKey(name=str(secret), key=str(key), optional=optional)


def _known() -> str:
    return ", ".join(name for name, own in SETTINGS.items() if own in _SECRET)


def _check_overlaps(mounts: list[CacheMount]) -> None:
    for one in mounts:
        for other in mounts:
            inside = not one.path or f"{other.path}/".startswith(f"{one.path}/")
            if one is not other and inside:
                raise Problem(
                    f"spec.mounts overlap: {other.uri} at /{other.path} lies in {one.uri} at "
                    f"/{one.path}; give each a path of its own"
                )


def _tiers(spec: Json) -> list[CacheTier]:
    levels = (spec.get("tieredstore") or {}).get("levels") or []
    if store := (spec.get("worker") or {}).get("tieredStore"):
        levels = [_as_level(one) for one in store.get("levels") or []]
    return [tier for index, one in enumerate(levels) for tier in _level(index, one)]


def _as_level(given: Json) -> Json:
    """Return a level of a CacheRuntime's worker in the words of the other runtimes."""
    medium = given.get("medium") or {}
    volume = medium.get("volume") or {}
    in_memory = (
        "processMemory" in medium or (volume.get("emptyDir") or {}).get("medium") == "Memory"
    )
    paths: list[str] = []
    if host := (volume.get("hostPath") or {}).get("path"):
        paths = [str(one) for one in given.get("path") or [host]]
    quotas = [str(one) for one in given.get("quota") or []]
    return {
        "mediumtype": "MEM" if in_memory else "SSD",
        "path": ",".join(paths),
        "quotaList": ",".join(quotas if paths else quotas[:1]),
        **{name: given[name] for name in ("high", "low") if given.get(name)},
    }


def _level(index: int, level: Json) -> list[CacheTier]:
    field = f"spec.tieredstore.levels[{index}]"
    medium = level.get("mediumtype")
    if medium not in ("MEM", "SSD", "HDD"):
        raise Problem(f"{field}.mediumtype is {medium!r}: it must be MEM, SSD or HDD")
    high, low = _mark(field, level, "high", 0.95), _mark(field, level, "low", 0.7)
    if low >= high:
        raise Problem(f"{field}: low is {low} and high is {high}; low must be below high")
    paths = [one for one in str(level.get("path") or "").split(",") if one] or [""]
    listed = [one for one in str(level.get("quotaList") or "").split(",") if one]
    quotas: list[Any] = listed or [level.get("quota") or 0] * len(paths)
    if len(quotas) != len(paths):
        raise Problem(f"{field}: quotaList has {len(quotas)} parts and path has {len(paths)}")
    share = 1 if listed else len(paths)
    return [
        CacheTier(
            medium=medium,
            path=path,
            bytes=_quota(f"{field}.quota", one) // share,
            high=high,
            low=low,
        )
        for path, one in zip(paths, quotas, strict=True)
    ]


def _mark(field: str, level: Json, name: str, default: float) -> float:
    text = level.get(name) or default
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = 0.0
    if not 0 < value <= 1:
        raise Problem(f"{field}.{name} is {text!r}: it must be a share above 0 and up to 1")
    return value


def quota_of(text: str) -> int:
    """Return what a namespace's annotation says its datasets may take; 0 where it says nothing.

    Raises:
        Problem: when it is no quantity.
    """
    return _quota(f"the annotation {QUOTA_ANNOTATION} of the namespace", text) if text else 0


def _quota(field: str, text: Any) -> int:
    plain = str(text)
    # Fluid also takes 2GB, which Kubernetes writes 2G.
    for suffix in ("KB", "MB", "GB", "TB"):
        if plain.endswith(suffix):
            plain = plain[:-1].replace("K", "k")
    try:
        value = quantity.to_int(plain)
    except ValueError as error:
        raise Problem(f"{field} is {text!r}: write a quantity such as 20Gi") from error
    if value < 0:
        raise Problem(f"{field} is {text!r}: it must not be negative")
    return value
