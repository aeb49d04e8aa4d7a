"""DataMigrates and DataBackups as what runs over a dataset: a pod with a program of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lockstep.api.dataset_cache import CacheMount
from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Json
from lockstep.compat.fluid.objects import (
    DataBackup,
    DataMigrate,
    DataProcess,
    DataProcessSpec,
    Dataset,
    DatasetSpec,
    End,
    Mount,
    ProcessedDataset,
)
from lockstep.compat.fluid.translate import Problem, translate_mount

Datasets = Callable[[str, str], Dataset | None]
"""From namespace and name to the dataset."""

IMAGE: Final = "lockstep/data-operation:latest"
SHOWN: Final = "/mnt/lockstep/dataset"
"""Where the files of the dataset that is read are shown to the program."""
_TARGET: Final = "/mnt/lockstep/target"
_MOST: Final = 64
"""Copies at once."""
_NOBODY: Final = ObjectMeta()


def about(one: DataMigrate | DataBackup) -> str:
    """Return the name of the dataset that an operation is about: the one it writes to, or reads."""
    if isinstance(one, DataBackup):
        return one.spec.dataset
    for end in (one.spec.to, one.spec.source):
        if end.dataset is not None:
            return end.dataset.name
    return ""


def process(one: DataMigrate | DataBackup, datasets: Datasets) -> DataProcess:
    """Return what carries out *one*, as a DataProcess of its name and kind.

    Raises:
        Problem: when one of its fields cannot be honoured.
    """
    pod = _backup(one) if isinstance(one, DataBackup) else _migrate(one, datasets)
    shown = one.spec.dataset if isinstance(one, DataBackup) else _read(one)
    return DataProcess(
        metadata=one.metadata,
        spec=DataProcessSpec(
            dataset=ProcessedDataset(name=shown, mount_path=SHOWN),
            processor={"job": {"podSpec": pod}},
            run_after=one.spec.run_after,
            policy=one.spec.policy,
            schedule=one.spec.schedule,
        ),
        status=one.status,
        kind=one.kind,
    )


def _read(one: DataMigrate) -> str:
    return one.spec.source.dataset.name if one.spec.source.dataset is not None else ""


def _migrate(one: DataMigrate, datasets: Datasets) -> Json:
    spec = one.spec
    if not 1 <= spec.parallelism <= _MOST:
        raise Problem(f"spec.parallelism is {spec.parallelism}: it must be from 1 to {_MOST}")
    env: list[Json] = []
    args = ["migrate", f"--at-once={max(8, spec.parallelism)}"]
    namespace = one.metadata.namespace
    for name, end in (("from", spec.source), ("to", spec.to)):
        if (end.dataset is None) == (end.external_storage is None):
            raise Problem(f"spec.{name} needs one of dataset and externalStorage")
        if name == "from" and end.dataset is not None:
            if end.dataset.namespace not in ("", namespace):
                raise Problem("spec.from.dataset.namespace must be that of the DataMigrate")
            path = end.dataset.path.strip("/")
            if ".." in path.split("/"):
                raise Problem(f"spec.from.dataset.path is {end.dataset.path!r}: no '..' in it")
            args.append(f"--from=file://{SHOWN}" + (f"/{path}" if path else ""))
            continue
        mount = _mount(f"spec.{name}", end, namespace, datasets)
        args.append(f"--{name}={mount.uri}")
        args += [f"--{name}-option={key}={value}" for key, value in sorted(mount.options.items())]
        for key, ref in sorted(mount.secrets.items()):
            found = {"name": ref.name, "key": ref.key, "optional": ref.optional}
            variable = f"{name.upper()}_{key.upper()}"
            env.append({"name": variable, "valueFrom": {"secretKeyRef": found}})
    return {"containers": [{"name": "migrate", "image": IMAGE, "args": args, "env": env}]}


def _mount(where: str, end: End, namespace: str, datasets: Datasets) -> CacheMount:
    """Return the store of one end; that of a dataset is its own source."""
    if end.external_storage is not None:
        store = end.external_storage
        made = Mount(
            mount_point=store.uri,
            path="/",
            options=store.options,
            encrypt_options=store.encrypt_options,
        )
        plain = Dataset(metadata=_NOBODY, spec=DatasetSpec(mounts=[made]))
        found = translate_mount(plain, 0, made)
    elif end.dataset is None:
        raise Problem(f"{where} needs one of dataset and externalStorage")
    else:
        if end.dataset.namespace not in ("", namespace):
            raise Problem(f"{where}.dataset.namespace must be that of the DataMigrate")
        dataset = datasets(namespace, end.dataset.name)
        if dataset is None or not dataset.spec.mounts:
            raise Problem(f"{where}.dataset.name: there is no dataset {end.dataset.name!r} here")
        found = translate_mount(dataset, 0, dataset.spec.mounts[0])
        path = end.dataset.path.strip("/")
        if path:
            uri = f"{found.uri.rstrip('/')}/{path}"
            found = CacheMount(uri=uri, options=found.options, secrets=found.secrets)
    scheme = found.uri.partition("://")[0]
    if scheme not in ("s3", "s3a", "minio", "gs", "az", "abfs", "abfss"):
        raise Problem(f"{where}: {found.uri!r}: files are copied from and to object stores")
    return found


def _backup(one: DataBackup) -> Json:
    uri = one.spec.backup_path
    scheme, _, rest = uri.partition("://")
    path = rest.strip("/")
    if ".." in path.split("/") or not path:
        raise Problem(f"spec.backupPath is {uri!r}: write local:///PATH or pvc://CLAIM/PATH")
    mount: Json = {"name": "target", "mountPath": _TARGET}
    if scheme == "local":
        volume: Json = {"hostPath": {"path": f"/{path}", "type": "DirectoryOrCreate"}}
    elif scheme == "pvc":
        claim, _, below = path.partition("/")
        volume = {"persistentVolumeClaim": {"claimName": claim}}
        mount |= {"subPath": below} if below else {}
    else:
        raise Problem(f"spec.backupPath is {uri!r}: write local:///PATH or pvc://CLAIM/PATH")
    name = f"metadata-backup-{one.spec.dataset}-{one.metadata.namespace}.jsonl.gz"
    args = ["backup", f"--from={SHOWN}", f"--to={_TARGET}/{name}"]
    container = {"name": "backup", "image": IMAGE, "args": args, "volumeMounts": [mount]}
    return {"containers": [container], "volumes": [{"name": "target", **volume}]}
