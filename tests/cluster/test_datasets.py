"""A dataset is read by pods of three nodes, asked of its store once, and outlives its cache."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import yaml
from tests.support.cluster_store import pod, python, store
from tests.support.on_cluster import OnCluster
from tools.s3 import build as s3

from lockstep.api.dataset_cache import DRIVER
from lockstep.api.names import NODES_NAMESPACE
from lockstep.compat import dialects

Json = dict[str, Any]
FILES, SIZE = 6, 4 << 20
CACHES = "app.kubernetes.io/component=data-cache"
MAKE = f"""
import pathlib, random
place = pathlib.Path("/buckets/images"); place.mkdir(parents=True)
for n in range({FILES}):
    (place / f"{{n}}.bin").write_bytes(random.Random(n).randbytes({SIZE}))
"""
READ = """
import hashlib, os, pathlib, sys, time
def all_of_it():
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path("/data").glob("*.bin")):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            digest.update(file.read())
    return digest.hexdigest()
wanted = all_of_it()
print("sum", wanted, flush=True)
for turn in range(1, int(sys.argv[1]) + 1):
    assert all_of_it() == wanted
    print("turn", turn, flush=True)
"""


@pytest.fixture(scope="module")
def image(installed: OnCluster) -> str:
    """Lockstep's own image, which has Python; the kinds of datasets are there."""
    kinds = yaml.safe_dump_all(dialects.manifests(["fluid"]))
    installed.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=kinds)
    return installed.own_image()


def dataset(space: str) -> list[Json]:
    keys = (("aws.accessKeyId", "accessKey"), ("aws.secretKey", "secretKey"))
    secret = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "store", "key": key}}}
        for name, key in keys
    ]
    endpoint = f"http://store.{space}.svc.cluster.local:7070"
    mount = {
        "mountPoint": "s3://images/",
        "name": "images",
        "path": "/",
        "options": {"alluxio.underfs.s3.endpoint": endpoint},
        "encryptOptions": secret,
    }
    level = {"mediumtype": "SSD", "path": "/var/lib/lockstep/data/tier", "quota": "1Gi"}
    runtime = {"replicas": 3, "tieredstore": {"levels": [level]}}
    group = "data.fluid.io/v1alpha1"
    return [
        {"apiVersion": group, "kind": kind, "metadata": {"name": "images"}, "spec": spec}
        for kind, spec in (("Dataset", {"mounts": [mount]}), ("AlluxioRuntime", runtime))
    ]


def reader(image: str, node: str, turns: int, *, by_claim: bool) -> Json:
    claim = {"persistentVolumeClaim": {"claimName": "images", "readOnly": True}}
    shown = {"driver": DRIVER, "readOnly": True, "volumeAttributes": {"dataset": "images"}}
    volume: Json = claim if by_claim else {"csi": shown}
    main = python(image, READ, str(turns))
    main["volumeMounts"] = [{"name": "data", "mountPath": "/data", "readOnly": True}]
    spec = {"nodeName": node, "containers": [main], "volumes": [{"name": "data", **volume}]}
    return pod(f"reader-{node}", spec)


def succeeded(cluster: OnCluster, name: str) -> bool:
    return phase(cluster, name) == "Succeeded"


def phase(cluster: OnCluster, name: str) -> str:
    return str(cluster.get("pod", name).get("status", {}).get("phase", ""))


@pytest.fixture
def bound(cluster: OnCluster, image: str) -> OnCluster:
    """A dataset in a store of the cluster, whose claim pods may mount."""
    program = s3.find()
    if program is None:
        pytest.skip("no versitygw: run `make s3`")
    cluster.apply(*store(image, program, MAKE))
    cluster.wait(lambda: ready(cluster, "store"), 120, "the store runs")
    cluster.apply(*dataset(cluster.space))

    def claimed() -> bool:
        return bool(cluster.get("pvc", "images").get("status", {}).get("phase") == "Bound")

    cluster.wait(claimed, 120, "the dataset's claim is bound")
    return cluster


def ready(cluster: OnCluster, name: str) -> bool:
    found = cluster.get("pod", name).get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)


@pytest.mark.timeout(600)
def test_pods_of_three_nodes_ask_the_store_once(bound: OnCluster, image: str) -> None:
    nodes = [node.name for node in bound.cluster.record.all_nodes]
    for node in nodes:
        bound.apply(reader(image, node, 0, by_claim=node != nodes[-1]))
    for node in nodes:
        bound.wait(partial(succeeded, bound, f"reader-{node}"), 180, f"the pod of {node} reads")
    sums = {bound.logs(f"reader-{node}") for node in nodes}
    assert len(sums) == 1, sums

    def caches() -> list[Json]:
        return list(json.loads(bound.kubectl("get", "datasetcaches", "-o", "json"))["items"])

    def asked() -> int:
        return sum(one["status"].get("fetchedBytes", 0) for one in caches())

    bound.wait(lambda: asked() >= FILES * SIZE, 60, "the caches have told what they fetched")
    assert asked() == FILES * SIZE, "each byte is asked of the store once"
    assert {one["spec"]["node"] for one in caches()} == set(nodes)


@pytest.mark.timeout(600)
def test_reads_go_on_when_the_cache_pod_is_killed(bound: OnCluster, image: str) -> None:
    node = bound.cluster.record.all_nodes[0].name
    name = f"reader-{node}"
    bound.apply(reader(image, node, 100_000, by_claim=True))
    bound.wait(lambda: "turn 2" in bound.logs(name), 180, "the pod reads")

    def turns() -> int:
        return bound.logs(name).count("turn")

    def cache() -> str:
        words = ("-l", CACHES, "--field-selector", f"spec.nodeName={node}", "-o", "name")
        return bound.cluster.kubectl("-n", NODES_NAMESPACE, "get", "pods", *words).strip()

    before = cache()
    bound.cluster.kubectl("-n", NODES_NAMESPACE, "delete", before, "--grace-period=0", "--force")
    bound.wait(lambda: cache() not in ("", before), 60, "another cache is started")
    until = ("--for=condition=Ready", "--timeout=120s")
    bound.cluster.kubectl("-n", NODES_NAMESPACE, "wait", cache(), *until)
    read = turns()
    bound.wait(lambda: turns() > read + 2, 120, "the pod reads on")
    assert phase(bound, name) == "Running"
    assert "Error" not in bound.logs(name)
