"""A Fluid dataset from S3: bound, warmed, mounted by two pods, read by torch, asked for once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.data_caches import can_mount
from tests.support.s3 import S3, SECRET, USER, Bucket
from tests.support.waiting import eventually_sync

pytest.importorskip("obstore", reason="needs the data extra")

FLUID = "apis/data.fluid.io/v1alpha1/namespaces/default"
CORE = "api/v1/namespaces/default"
WITHIN = 120.0
FILES = {f"train/{index:03}.bin": bytes([index]) * (1000 + index) for index in range(40)}
LARGE = bytes(range(256)) * 80_000
"""20 MB: three parts."""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    running = S3(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(tmp_path_factory.mktemp("data") / "up").start()
    secret = {"accessKey": USER, "secretKey": SECRET}
    running.ok(
        "submit",
        "-f",
        "-",
        stdin=dump(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "store", "namespace": "default"},
                "stringData": secret,
            }
        ),
    )
    yield running
    running.stop()


def dump(*objects: dict[str, Any]) -> str:
    return "\n---\n".join(json.dumps(one) for one in objects)


def fluid(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "data.fluid.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def dataset(name: str, bucket: Bucket, **level: Any) -> str:
    """A dataset and its runtime, as Fluid's samples write them."""
    keys = {"aws.accessKeyId": "accessKey", "aws.secretKey": "secretKey"}
    mount = {
        "mountPoint": f"s3://{bucket.name}",
        "name": name,
        "path": "/",
        "options": {"alluxio.underfs.s3.endpoint": bucket.server.url},
        "encryptOptions": [
            {"name": option, "valueFrom": {"secretKeyRef": {"name": "store", "key": key}}}
            for option, key in keys.items()
        ],
    }
    store = {"mediumtype": "SSD", "quota": "2Gi", "high": "0.95", "low": "0.7", **level}
    runtime = fluid(
        "AlluxioRuntime",
        name,
        replicas=1,
        tieredstore={"levels": [store]},
        properties={"alluxio.user.streaming.data.timeout": "300sec"},
    )
    return dump(fluid("Dataset", name, mounts=[mount]), runtime)


def status(plane: ControlPlane, plural: str, name: str) -> dict[str, Any]:
    items = plane.read(f"{FLUID}/{plural}")["items"]
    found = [one.get("status", {}) for one in items if one["metadata"]["name"] == name]
    return found[0] if found else {}


def phase(plane: ControlPlane, plural: str, name: str, wanted: str) -> None:
    def ended() -> dict[str, Any] | None:
        found = status(plane, plural, name)
        return found if found.get("phase") in (wanted, "Failed") else None

    found = eventually_sync(ended, WITHIN, f"{name}: {wanted}")
    assert found is not None
    assert found["phase"] == wanted, found


def pod(name: str, claim: str, script: str) -> str:
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "schedulerName": "lockstep",
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "python",
                        "command": ["python", "-c", script],
                        "volumeMounts": [{"name": "data", "mountPath": "/mnt/lockstep-test"}],
                    }
                ],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            },
        }
    )


def ended(plane: ControlPlane, name: str) -> str:
    """Wait until a pod is over, and return how."""

    def over() -> str | None:
        found = plane.read(f"{CORE}/pods/{name}").get("status", {}).get("phase")
        return found if found in ("Succeeded", "Failed") else None

    return str(eventually_sync(over, WITHIN, f"pod {name} is over"))


TORCH = """
import hashlib, pathlib, torch
root = pathlib.Path("/mnt/lockstep-test")
files = sorted(one for one in root.rglob("*") if one.is_file())
class Files(torch.utils.data.Dataset):
    def __len__(self): return len(files)
    def __getitem__(self, index): return hashlib.sha256(files[index].read_bytes()).hexdigest()
sums = [one for batch in torch.utils.data.DataLoader(Files(), batch_size=8) for one in batch]
print("SUM", len(sums), hashlib.sha256("".join(sums).encode()).hexdigest())
try:
    (root / "new").write_text("x")
    print("WRITTEN")
except OSError as error:
    print("ERROR", error.errno)
"""


def expected(files: dict[str, bytes]) -> str:
    import hashlib

    sums = "".join(hashlib.sha256(files[path]).hexdigest() for path in sorted(files))
    return f"SUM {len(files)} {hashlib.sha256(sums.encode()).hexdigest()}"


@pytest.mark.torch
def test_a_dataset_is_fetched_once_and_read_by_two_jobs(plane: ControlPlane, s3: S3) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    bucket = s3.bucket("images")
    files = {**FILES, "large.bin": LARGE}
    for key, data in files.items():
        bucket.put(key, data)
    plane.ok("submit", "-f", "-", stdin=dataset("images", bucket))
    phase(plane, "datasets", "images", "Bound")
    told = status(plane, "datasets", "images")
    assert told["fileNum"] == str(len(files))
    ignored = next(one for one in told["conditions"] if one["type"] == "OptionsIgnored")
    assert "properties" in ignored["message"]

    load = fluid("DataLoad", "warm", dataset={"name": "images", "namespace": "default"})
    plane.ok("submit", "-f", "-", stdin=dump(load))
    phase(plane, "dataloads", "warm", "Complete")
    warmed = status(plane, "dataloads", "warm")
    assert warmed["infos"]["progress"] == "100%"
    assert warmed["infos"]["files"] == f"{len(files)}/{len(files)}"
    assert status(plane, "datasets", "images")["cacheStates"]["cachedPercentage"] == "100.0%"
    claim = plane.read(f"{CORE}/persistentvolumeclaims/images")
    assert claim["status"]["phase"] == "Bound"

    asked = len(s3.asked("images"))
    assert asked > len(files)
    for name in ("first", "second"):
        plane.ok("submit", "-f", "-", stdin=pod(name, "images", TORCH))
    for name in ("first", "second"):
        assert ended(plane, name) == "Succeeded"
        said = plane.ok("logs", f"pod/{name}")
        assert expected(files) in said
        assert "ERROR 30" in said, said  # EROFS
    assert len(s3.asked("images")) == asked


def test_people_list_warm_and_evict_datasets(plane: ControlPlane, s3: S3) -> None:
    bucket = s3.bucket("spoken")
    for key, data in FILES.items():
        bucket.put(key, data)
    plane.ok("submit", "-f", "-", stdin=dataset("spoken", bucket))
    phase(plane, "datasets", "spoken", "Bound")
    assert "is warm" in plane.ok("data", "warm", "spoken")
    [row] = [one for one in plane.ok("data", "list").splitlines() if one.startswith("spoken")]
    assert "Bound" in row
    assert "100.0%" in row
    page = plane.ok("data", "describe", "spoken")
    assert "s3://spoken" in page
    assert "40 files" in page
    assert "Complete" in page
    evicted = plane.ok("data", "evict", "spoken")
    assert "evicted from" in evicted
    eventually_sync(
        lambda: cache_of(plane, "spoken").get("cachedBytes", 1) == 0, WITHIN, "its files are gone"
    )
    phase(plane, "datasets", "spoken", "Bound")
    assert "is warm" in plane.ok("data", "warm", "spoken", "--path", "/train")
    assert "spoken" in plane.ok("data", "top")
    refused = plane.run("data", "evict", "spoken", "--node", "elsewhere")
    assert refused.returncode == 1
    assert "elsewhere: keeps nothing of spoken" in refused.stderr


def cache_of(plane: ControlPlane, name: str) -> dict[str, Any]:
    items = plane.read("apis/lockstep.dev/v1alpha1/namespaces/default/datasetcaches")["items"]
    found = [one.get("status", {}) for one in items if one["spec"]["dataset"] == name]
    return found[0] if found else {}


def reason(plane: ControlPlane, name: str) -> str:
    conditions = status(plane, "datasets", name).get("conditions", [])
    return next((str(one.get("reason", "")) for one in conditions if one["type"] == "Ready"), "")


def test_a_changed_object_is_never_mixed_with_its_old_version(plane: ControlPlane, s3: S3) -> None:
    bucket = s3.bucket("changing")
    for key in ("a", "b"):
        bucket.put(key, key.encode() * 1000)
    plane.ok("submit", "-f", "-", stdin=dataset("changing", bucket))
    phase(plane, "datasets", "changing", "Bound")
    first = cache_of(plane, "changing")["listed"]
    bucket.put("b", b"B" * 1000)

    load = fluid("DataLoad", "stale", dataset={"name": "changing"})
    plane.ok("submit", "-f", "-", stdin=dump(load))
    eventually_sync(
        lambda: reason(plane, "changing") == "SourceChanged", WITHIN, "the change is told"
    )
    assert status(plane, "dataloads", "stale")["phase"] == "Executing"

    fresh = fluid("DataLoad", "fresh", dataset={"name": "changing"}, loadMetadata=True)
    plane.ok("submit", "-f", "-", stdin=dump(fresh))
    phase(plane, "dataloads", "fresh", "Complete")
    phase(plane, "dataloads", "stale", "Complete")
    assert cache_of(plane, "changing")["version"] != first
    script = "import pathlib; print('READ', pathlib.Path('/mnt/lockstep-test/b').read_text()[:3])"
    plane.ok("submit", "-f", "-", stdin=pod("after", "changing", script))
    assert ended(plane, "after") == "Succeeded"
    assert "READ BBB" in plane.ok("logs", "pod/after")


@pytest.mark.parametrize(
    ("name", "change", "expected_reason"),
    [
        (
            "nosecret",
            {"valueFrom": {"secretKeyRef": {"name": "gone", "key": "k"}}},
            "SecretMissing",
        ),
        (
            "badkey",
            {"valueFrom": {"secretKeyRef": {"name": "store", "key": "accessKey"}}},
            "SourceRefused",
        ),
    ],
)
def test_a_source_that_gives_nothing_says_why(
    plane: ControlPlane, s3: S3, name: str, change: dict[str, Any], expected_reason: str
) -> None:
    bucket = s3.bucket(name)
    bucket.put("a", b"a")
    first, _, runtime = dataset(name, bucket).partition("\n---\n")
    body = json.loads(first)
    body["spec"]["mounts"][0]["encryptOptions"][1] = {"name": "aws.secretKey", **change}
    plane.ok("submit", "-f", "-", stdin=f"{json.dumps(body)}\n---\n{runtime}")
    eventually_sync(lambda: reason(plane, name) == expected_reason, WITHIN, expected_reason)
    assert SECRET not in json.dumps(status(plane, "datasets", name))


def test_a_dataset_no_tier_takes_says_so_and_is_read(plane: ControlPlane, s3: S3) -> None:
    bucket = s3.bucket("toolarge")
    for key in ("a", "b"):
        bucket.put(key, key.encode() * 50_000)
    plane.ok("submit", "-f", "-", stdin=dataset("toolarge", bucket, quota="64Ki"))
    plane.ok(
        "submit", "-f", "-", stdin=dump(fluid("DataLoad", "toolarge", dataset={"name": "toolarge"}))
    )
    phase(plane, "dataloads", "toolarge", "Failed")
    assert reason(plane, "toolarge") == "TooLargeForTheCache"
    message = status(plane, "datasets", "toolarge")["conditions"][0]["message"]
    assert "quota" in message
    if not can_mount():
        return
    script = (
        "import pathlib; root = pathlib.Path('/mnt/lockstep-test');"
        "print('READ', [one.read_text() == one.name * 50_000 for one in sorted(root.iterdir())])"
    )
    plane.ok("submit", "-f", "-", stdin=pod("through", "toolarge", script))
    assert ended(plane, "through") == "Succeeded"
    assert "READ [True, True]" in plane.ok("logs", "pod/through")


def test_a_process_follows_a_warm_up_and_others_read_references(
    plane: ControlPlane, s3: S3
) -> None:
    bucket = s3.bucket("common")
    for key, data in FILES.items():
        bucket.put(key, data)
    plane.ok("submit", "-f", "-", stdin=dataset("common", bucket))
    script = {
        "image": "python",
        "command": ["python"],
        "source": "import os; print('COUNT', len(os.listdir('/mnt/lockstep-test/train')))",
    }
    process = fluid(
        "DataProcess",
        "counted",
        dataset={"name": "common", "namespace": "default", "mountPath": "/mnt/lockstep-test"},
        processor={"script": script},
        runAfter={"kind": "DataLoad", "name": "first-of-all"},
    )
    plane.ok("submit", "-f", "-", stdin=dump(process))
    eventually_sync(
        lambda: status(plane, "dataprocesses", "counted").get("waitingFor"), WITHIN, "it waits"
    )
    load = fluid("DataLoad", "first-of-all", dataset={"name": "common"})
    plane.ok("submit", "-f", "-", stdin=dump(load))
    phase(plane, "dataprocesses", "counted", "Complete")
    assert "COUNT 40" in plane.ok("logs", "pod/counted-process")

    asked = len(s3.asked("common"))
    mount = {"mountPoint": "dataset://default/common/train", "name": "mine"}
    reference = fluid("Dataset", "mine", mounts=[mount])
    reader = json.loads(
        pod("elsewhere", "mine", "import os; print('SEEN', len(os.listdir('/mnt/lockstep-test')))")
    )
    for one in (reference, reader):
        one["metadata"]["namespace"] = "team"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    plane.ok("submit", "-f", "-", stdin=dump(space))
    plane.ok("submit", "-f", "-", stdin=dump(reference))
    plane.ok("submit", "-f", "-", stdin=dump(reader))

    def over() -> str | None:
        found = plane.read("api/v1/namespaces/team/pods/elsewhere").get("status", {}).get("phase")
        return found if found in ("Succeeded", "Failed") else None

    assert eventually_sync(over, WITHIN, "the pod of the other team is over") == "Succeeded"
    assert "SEEN 40" in plane.ok("logs", "-n", "team", "pod/elsewhere")
    assert len(s3.asked("common")) == asked


def test_files_are_migrated_into_a_dataset_and_written_down(
    plane: ControlPlane, s3: S3, tmp_path: Path
) -> None:
    outside, inside = s3.bucket("outside"), s3.bucket("inside")
    for key, data in list(FILES.items())[:5]:
        outside.put(key, data)
    plane.ok("submit", "-f", "-", stdin=dataset("inside", inside))
    settings = {"aws.accessKeyId": "accessKey", "aws.secretKey": "secretKey"}
    secrets = [
        {"name": option, "valueFrom": {"secretKeyRef": {"name": "store", "key": key}}}
        for option, key in settings.items()
    ]
    store = {"uri": "s3://outside", "encryptOptions": secrets, "options": {"endpoint": s3.url}}
    ends = {"from": {"externalStorage": store}, "to": {"dataset": {"name": "inside"}}}
    plane.ok("submit", "-f", "-", stdin=dump(fluid("DataMigrate", "moved", **ends)))
    phase(plane, "datamigrates", "moved", "Complete")
    assert "copied 5 objects" in plane.ok("logs", "pod/moved-migrate")
    assert (inside.server.buckets / "inside" / "train" / "000.bin").read_bytes() == FILES[
        "train/000.bin"
    ]

    tmp_path.chmod(0o777)
    after = {"kind": "DataMigrate", "name": "moved"}
    load = fluid("DataLoad", "again", dataset={"name": "inside"}, loadMetadata=True, runAfter=after)
    plane.ok("submit", "-f", "-", stdin=dump(load))
    phase(plane, "dataloads", "again", "Complete")
    backup = fluid("DataBackup", "kept", dataset="inside", backupPath=f"local://{tmp_path}")
    plane.ok("submit", "-f", "-", stdin=dump(backup))
    phase(plane, "databackups", "kept", "Complete")
    lines = gzip.decompress((tmp_path / "metadata-backup-inside-default.jsonl.gz").read_bytes())
    assert len(lines.splitlines()) == 5
