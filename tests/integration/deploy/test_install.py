"""The plain manifest on a real control plane: applied, applied again, running, and gone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import kube_binaries, kube_programs
from tests.support.kube_cluster import KubeCluster
from tests.support.kubectl import Kubectl
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually_sync
from tools.deploy.generate import MANIFEST

from lockstep.api.names import SIMULATED_TAINT, SYSTEM_NAMESPACE

LOOKS_BEFORE_REMINDING = 40
TWICE = ("admission", "controllers", "router", "scheduler")
LOCKSTEP_KINDS = ("trainingjobs", "gangs", "queues", "topologies", "nodepolicies", "deviceusages")


VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "records"},
    "spec": {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/var/lib/lockstep-records"},
    },
}
"""A volume that the recorder's claim is bound to."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """A control plane on which nothing of Lockstep was ever installed."""
    running = KubeCluster(tmp_path_factory.mktemp("bare") / "cluster", installs=False)
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture
def kubectl(bare: KubeCluster, tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl, after which nothing of the manifest is left."""
    program = Kubectl(str(kube_binaries.need("kubectl")), bare.kubeconfig, tmp_path)
    yield program
    remove(program)


def remove(kubectl: Kubectl) -> None:
    """Delete what the manifest holds, and wait until nothing of it is left.

    Where a kind is deleted seconds after it came, kube-apiserver (1.36) may forget it: its
    finalizer meets a conflict with its own last write, and no event makes it try again. Any
    change to the kind does.
    """
    kubectl("delete", "--ignore-not-found", "--wait=false", "-f", str(MANIFEST))
    looks = itertools.count(1)

    def gone() -> bool:
        left = kubectl("get", "--ignore-not-found", "-f", str(MANIFEST), "-o", "name").split()
        look = next(looks)
        if look % LOOKS_BEFORE_REMINDING == 0:
            for kind in (name for name in left if name.startswith("customresourcedefinition")):
                kubectl.run("annotate", "--overwrite", kind, f"lockstep.dev/look={look}")
        return not left

    eventually_sync(gone, 90, "that nothing of the manifest is left")


def get(kubectl: Kubectl, *what: str) -> list[dict[str, Any]]:
    printed = kubectl("-n", SYSTEM_NAMESPACE, "get", *what, "-o", "json")
    items: list[dict[str, Any]] = json.loads(printed)["items"]
    return items


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_applied_twice_nothing_changes(kubectl: Kubectl, how: tuple[str, ...]) -> None:
    wanted = len(list(yaml.safe_load_all(MANIFEST.read_text())))
    first = kubectl("apply", *how, "-f", str(MANIFEST)).splitlines()
    assert len(first) == wanted
    assert not [line for line in first if line.startswith("Warning")]

    def versions() -> dict[str, str]:
        printed = kubectl("get", "-f", str(MANIFEST), "-o", "json")
        return {
            f"{o['kind']}/{o['metadata']['name']}": str(o["metadata"].get("generation"))
            for o in json.loads(printed)["items"]
        }

    before = versions()
    again = kubectl("apply", *how, "-f", str(MANIFEST)).splitlines()
    expected = "serverside-applied" if how else "unchanged"
    # kubectl replaces a budget's selector whole, even by the same.
    said = [line for line in again if how or not line.startswith("poddisruptionbudget")]
    assert [line for line in said if not line.endswith(expected)] == []
    assert versions() == before
    kubectl("diff", *how, "-f", str(MANIFEST))


def test_everything_comes_up_under_the_restricted_level(
    bare: KubeCluster, kubectl: Kubectl
) -> None:
    """Pods are made, bound and started where nodes are simulated; their images are not run."""
    nodes = PartProcess(bare.kubeconfig, options=("4x8",), part="simulate-nodes").start()
    binder = kube_programs.scheduler(bare).start()
    try:
        kubectl("taint", "nodes", "--all", f"{SIMULATED_TAINT}-")
        kubectl("apply", "-f", "-", stdin=VOLUME)  # no class of storage makes the recorder's here
        kubectl("apply", "--server-side", "-f", str(MANIFEST))
        (space,) = get_namespace(kubectl)
        assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        for name in ("scheduler", "controllers", "console"):
            kubectl(
                "-n",
                SYSTEM_NAMESPACE,
                "rollout",
                "status",
                f"deploy/lockstep-{name}",
                "--timeout=40s",
            )
        pods = get(kubectl, "pods", "-l", "app.kubernetes.io/name=lockstep")
        places = {
            part: {
                p["spec"]["nodeName"]
                for p in pods
                if p["metadata"]["labels"]["app.kubernetes.io/component"] == part
            }
            for part in ("scheduler", "controllers")
        }
        assert {part: len(found) for part, found in places.items()} == {
            "scheduler": 2,
            "controllers": 2,
        }, "two of a kind are on two nodes"

        def budgets() -> bool:
            """Each part that runs twice may lose one pod."""
            found = {
                one["metadata"]["name"]: one["status"].get("disruptionsAllowed")
                for one in get(kubectl, "poddisruptionbudgets")
            }
            return found == {f"lockstep-{part}": 1 for part in TWICE}

        eventually_sync(budgets)
        remove(kubectl)
    finally:
        nodes.kill()
        binder.kill()


def get_namespace(kubectl: Kubectl) -> list[dict[str, Any]]:
    return [json.loads(kubectl("get", "namespace", SYSTEM_NAMESPACE, "-o", "json"))]


def test_people_who_may_edit_may_edit_jobs(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", str(MANIFEST))
    kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann", "-n", "default")

    def may(verb: str, what: str) -> bool:
        asked = ("auth", "can-i", verb, what, "--as=ann", "-n", "default")
        return kubectl.run(*asked).stdout.strip() == "yes"

    eventually_sync(lambda: may("create", "trainingjobs.lockstep.dev"))
    assert may("list", "gangs.lockstep.dev")
    assert not may("create", "queues.lockstep.dev")


def test_deleted_it_leaves_nothing_behind(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", str(MANIFEST))
    remove(kubectl)
    kubectl("get", "namespace", SYSTEM_NAMESPACE, fails=True)
    left = kubectl("get", "crds,clusterroles,clusterrolebindings", "-o", "name")
    assert [name for name in left.splitlines() if "lockstep" in name] == []
    for plural in LOCKSTEP_KINDS:
        kubectl("get", plural, "-A", fails=True)
