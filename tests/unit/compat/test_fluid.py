"""Fluid's manifests: what they mean, and what is refused with field and remedy."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.dataset_cache import CacheTier, SecretKey
from lockstep.api.wire import convert
from lockstep.compat.fluid.ignored import RUNTIME, ignored, ignored_of
from lockstep.compat.fluid.objects import (
    DataBackupSpec,
    DataLoadSpec,
    DataMigrateSpec,
    DataProcessSpec,
    Dataset,
    DatasetSpec,
    Runtime,
)
from lockstep.compat.fluid.translate import Problem, Wanted, translate

Json = dict[str, Any]
MOUNT: Json = {"mountPoint": "s3://bucket/x", "name": "x"}


def translated(mounts: list[Json], spec: Json | None = None, **dataset: Any) -> Wanted:
    meta = {"name": "d", "namespace": "n"}
    body = {"metadata": meta, "spec": {"mounts": mounts, **dataset}}
    runtime = {"metadata": meta, "spec": spec or {}}
    return translate(convert(body, Dataset), convert(runtime, Runtime))


def level(**fields: Any) -> Json:
    return {"tieredstore": {"levels": [{"mediumtype": "SSD", **fields}]}}


@pytest.mark.parametrize(
    ("mounts", "spec", "words"),
    [
        ([], {}, "spec.mounts"),
        ([{"mountPoint": "gopher://x", "name": "x"}], {}, "scheme must be one of"),
        ([MOUNT, {**MOUNT, "path": "/"}], {}, "overlap"),
        ([{**MOUNT, "path": "/a"}, {**MOUNT, "path": "/a/b"}], {}, "overlap"),
        ([{**MOUNT, "path": "/../a"}], {}, "must not contain '..'"),
        ([{**MOUNT, "options": {"access-key": "k"}}], {}, "encryptOptions"),
        ([{**MOUNT, "encryptOptions": [{"name": "aws.secretKey"}]}], {}, "secretKeyRef"),
        ([MOUNT], level(high="0.5", low="0.9"), "low must be below high"),
        ([MOUNT], level(high="1.5"), "levels[0].high is '1.5'"),
        ([MOUNT], level(quota="many"), "levels[0].quota is 'many'"),
        ([MOUNT], level(quota="-1"), "levels[0].quota"),
        ([MOUNT], level(mediumtype="TAPE"), "must be MEM, SSD or HDD"),
        ([MOUNT], level(path="/a,/b", quotaList="1Gi"), "quotaList has 1 parts and path has 2"),
        ([MOUNT], {"replicas": -1}, "spec.replicas"),
    ],
)
def test_what_cannot_be_honoured_names_field_and_remedy(
    mounts: list[Json], spec: Json, words: str
) -> None:
    with pytest.raises(Problem) as problem:
        translated(mounts, spec)
    assert words in str(problem.value)


@pytest.mark.parametrize(
    ("fields", "tiers"),
    [
        ({"quota": "2Gi"}, [CacheTier(medium="SSD", bytes=2 << 30)]),
        ({"quota": "2GB"}, [CacheTier(medium="SSD", bytes=2 * 10**9)]),
        (
            {"path": "/a,/b", "quota": "2Gi"},
            [CacheTier(medium="SSD", path=path, bytes=1 << 30) for path in ("/a", "/b")],
        ),
        (
            {"path": "/a,/b", "quotaList": "1Gi,3Gi", "high": "0.8", "low": "0.5"},
            [
                CacheTier(medium="SSD", path="/a", bytes=1 << 30, high=0.8, low=0.5),
                CacheTier(medium="SSD", path="/b", bytes=3 << 30, high=0.8, low=0.5),
            ],
        ),
    ],
)
def test_levels_are_tiers(fields: Json, tiers: list[CacheTier]) -> None:
    assert translated([MOUNT], level(**fields)).tiers == tiers


@pytest.mark.parametrize(
    ("mounts", "places"),
    [
        ([{"mountPoint": "s3://b"}], [""]),
        ([MOUNT], ["x"]),
        ([{**MOUNT, "path": "/"}], [""]),
        ([MOUNT, {**MOUNT, "name": "y"}], ["x", "y"]),
    ],
)
def test_mounts_lie_where_fluid_puts_them(mounts: list[Json], places: list[str]) -> None:
    assert [one.path for one in translated(mounts).mounts] == places


def test_engines_names_of_settings_mean_the_same() -> None:
    secret = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    options = {"fs.oss.endpoint": "https://e", "alluxio.user.block": "1"}
    mount = {**MOUNT, "options": options, "encryptOptions": [{"name": "access-key", **secret}]}
    wanted = translated([mount], {"properties": {"a": "b"}, "jvmOptions": []})
    assert wanted.mounts[0].options == {"endpoint": "https://e"}
    assert wanted.mounts[0].secrets == {"access_key_id": SecretKey(name="s", key="k")}
    assert wanted.ignored == ("properties", "mounts[].options.alluxio.user.block")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (
            {"medium": {"processMemory": {}}, "quota": ["1Gi"], "high": "0.9", "low": "0.5"},
            [CacheTier(medium="MEM", bytes=1 << 30, high=0.9, low=0.5)],
        ),
        (
            {
                "medium": {"volume": {"hostPath": {"path": "/d"}}},
                "path": ["/a", "/b"],
                "quota": ["1Gi", "2Gi"],
            },
            [
                CacheTier(medium="SSD", path="/a", bytes=1 << 30),
                CacheTier(medium="SSD", path="/b", bytes=2 << 30),
            ],
        ),
        ({"medium": {"volume": {"emptyDir": {"medium": "Memory"}}}}, [CacheTier(medium="MEM")]),
        (
            {"medium": {"volume": {"emptyDir": {}}}, "quota": ["1Ki"]},
            [CacheTier(medium="SSD", bytes=1024)],
        ),
    ],
)
def test_levels_of_a_cache_runtimes_worker_are_tiers(
    level: Json, expected: list[CacheTier]
) -> None:
    worker = {"replicas": 3, "tieredStore": {"levels": [level]}}
    spec = {"runtimeClassName": "engine", "worker": worker}
    wanted = translated([MOUNT], spec)
    assert (wanted.tiers, wanted.replicas) == (expected, 3)
    assert wanted.ignored == ("runtimeClassName",)


def test_each_option_without_effect_is_named_by_its_path() -> None:
    spec = {
        "replicas": 1,
        "fuse": {"args": ["-o"], "options": {"timeout": "30s", "cache-size": "1"}},
        "worker": {"replicas": 2, "resources": {"limits": {"cpu": "1"}}},
        "tieredstore": {"levels": [{"mediumtype": "MEM", "volumeType": "emptyDir"}] * 2},
        "management": {"cleanCachePolicy": {"maxRetryAttempts": 3}},
    }
    assert [*ignored(spec, RUNTIME)] == [
        "fuse.args",
        "fuse.options.cache-size",
        "management.cleanCachePolicy",
        "tieredstore.levels[].volumeType",
        "worker.resources",
    ]


@pytest.mark.parametrize(
    ("spec", "kind", "named"),
    [
        ({"policy": "Once", "dataset": {"name": "a"}}, DataLoadSpec, []),
        (
            {"options": {"rateLimit": "1Mi", "atomicCache": "true"}, "tolerations": [{"key": "k"}]},
            DataLoadSpec,
            ["options.atomicCache", "tolerations"],
        ),
        (
            {"policy": "Cron", "schedule": "* * * * *", "parallelOptions": {"a": "b"}},
            DataMigrateSpec,
            ["parallelOptions"],
        ),
        (
            {"processor": {"podMetadata": {"labels": {}}, "script": {"restartPolicy": "Always"}}},
            DataProcessSpec,
            ["processor.podMetadata", "processor.script.restartPolicy"],
        ),
        ({"runAs": {"uid": 1}, "backupPath": "local:///b"}, DataBackupSpec, ["runAs"]),
        ({"placement": "Exclusive", "owner": {"uid": 1}}, DatasetSpec, ["owner", "placement"]),
    ],
)
def test_fields_of_operations_without_effect_are_named(
    spec: Any, kind: type[Any], named: list[str]
) -> None:
    assert ignored_of(convert(spec, kind)) == named
