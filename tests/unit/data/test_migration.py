"""DataMigrates and DataBackups: what their pods run, and what that does to real directories."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import convert
from lockstep.compat.fluid.objects import (
    DataBackup,
    DataBackupSpec,
    DataMigrate,
    DataMigrateSpec,
    Dataset,
    DatasetSpec,
    Mount,
)
from lockstep.compat.fluid.operations import about, process
from lockstep.compat.fluid.translate import Problem

Json = dict[str, Any]
META = ObjectMeta(name="op", namespace="n", uid="u")
SECRET = {"name": "aws.secretKey", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
IMAGES = Dataset(
    ObjectMeta(name="images", namespace="n"),
    DatasetSpec(
        mounts=[
            Mount(
                mount_point="s3://b/train",
                path="/",
                options={"fs.s3.endpoint": "http://s3"},
                encrypt_options=[SECRET],
            )
        ]
    ),
)
STORE = {"externalStorage": {"uri": "s3://other/x", "encryptOptions": [SECRET]}}
SET = {"dataset": {"name": "images", "namespace": "n"}}


def migrate(**spec: Any) -> DataMigrate:
    return DataMigrate(META, convert(spec, DataMigrateSpec))


def known(namespace: str, name: str) -> Dataset | None:
    return IMAGES if (namespace, name) == ("n", "images") else None


def container(one: DataMigrate | DataBackup) -> Json:
    found: Json = process(one, known).spec.processor["job"]["podSpec"]["containers"][0]
    return found


def test_files_reach_a_datasets_source_and_secrets_stay_references() -> None:
    one = migrate(**{"from": STORE, "to": SET})
    assert about(one) == "images"
    found = container(one)
    assert "--from=s3://other/x" in found["args"]
    assert "--to=s3://b/train" in found["args"]
    assert "--to-option=endpoint=http://s3" in found["args"]
    names = {one["name"]: one["valueFrom"]["secretKeyRef"]["name"] for one in found["env"]}
    assert names == {"FROM_SECRET_ACCESS_KEY": "s", "TO_SECRET_ACCESS_KEY": "s"}
    assert process(one, known).spec.dataset.name == ""


def test_out_of_a_dataset_files_are_read_through_its_cache() -> None:
    one = migrate(**{"from": {"dataset": {"name": "images", "path": "/a"}}, "to": STORE})
    made = process(one, known)
    assert (made.kind, made.spec.dataset.name) == ("DataMigrate", "images")
    assert f"--from=file://{made.spec.dataset.mount_path}/a" in container(one)["args"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"from": STORE}, "spec.to needs one of"),
        ({"from": {**STORE, **SET}, "to": SET}, "spec.from needs one of"),
        ({"from": STORE, "to": {"dataset": {"name": "none"}}}, "no dataset 'none'"),
        ({"from": {"dataset": {"name": "images", "path": "../x"}}, "to": STORE}, "no '..'"),
        ({"from": {"externalStorage": {"uri": "local:///etc"}}, "to": SET}, "object stores"),
        ({"from": STORE, "to": SET, "parallelism": 0}, "from 1 to 64"),
        ({"from": {"dataset": {"name": "images", "namespace": "m"}}, "to": STORE}, "namespace"),
    ],
)
def test_a_migration_that_cannot_be_is_refused_with_its_field(spec: Json, says: str) -> None:
    with pytest.raises(Problem, match=says):
        process(migrate(**spec), known)


@pytest.mark.parametrize(
    ("path", "says"),
    [("s3://b/x", "local:///PATH"), ("local:///a/../b", "local:///PATH"), ("pvc://", "pvc://")],
)
def test_a_backup_goes_to_a_directory_or_a_claim(path: str, says: str) -> None:
    with pytest.raises(Problem, match=says):
        process(DataBackup(META, DataBackupSpec("images", path)), known)


def test_a_backup_mounts_the_claim_it_writes_to() -> None:
    one = DataBackup(META, DataBackupSpec("images", "pvc://safe/below"))
    pod = process(one, known).spec.processor["job"]["podSpec"]
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "safe"}
    assert container(one)["volumeMounts"][0]["subPath"] == "below"


async def test_a_copy_goes_on_where_one_was_cut_off(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="needs the data extra")
    from lockstep.data.operations import end
    from lockstep.data.operations import migrate as copy

    source, target = tmp_path / "from", tmp_path / "to"
    (source / "a").mkdir(parents=True)
    target.mkdir()
    (source / "a" / "one").write_bytes(b"1" * 100)
    (source / "two").write_bytes(b"2" * 200)
    ends = [end(f"file://{place}", [], {}, "X_") for place in (source, target)]
    assert await copy(*ends, 4) == (2, 300, 0)
    assert (target / "a" / "one").read_bytes() == b"1" * 100
    (target / "two").write_bytes(b"2" * 50)
    assert await copy(*ends, 4) == (1, 200, 1)
    assert (target / "two").read_bytes() == b"2" * 200


def test_a_backup_lists_each_file(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="needs the data extra")
    from lockstep.data.operations import backup

    place = tmp_path / "data"
    (place / "a").mkdir(parents=True)
    (place / "a" / "one").write_bytes(b"1")
    (place / "two").write_bytes(b"22")
    assert backup(place, tmp_path / "list.gz") == 2
    with gzip.open(tmp_path / "list.gz", "rt") as file:
        lines = file.read().splitlines()
    assert {(one["path"], one["size"]) for one in map(json.loads, lines)} == {
        ("a/one", 1),
        ("two", 2),
    }
