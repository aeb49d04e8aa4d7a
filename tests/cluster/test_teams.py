"""A team's members work with kubeconfigs of their own: in their namespace, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.on_cluster import OnCluster
from tools.cluster.cluster import ClusterError


@pytest.fixture
def team(cluster: OnCluster) -> Iterator[str]:
    """A team of ana, who edits, and the group interns, which reads; return its namespace."""
    name = f"{cluster.space}-team"
    members = [{"name": "ana"}, {"name": "interns", "kind": "Group", "role": "View"}]
    spec = {"members": members, "quota": {"pods": 2}, "deletion": "Delete"}
    kind = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Team"}
    cluster.apply({**kind, "metadata": {"name": name}, "spec": spec})
    yield name
    cluster.kubectl("delete", "team", name, "--wait=false")


def may(user: OnCluster, verb: str, what: str, *options: str) -> bool:
    try:
        return user.kubectl("auth", "can-i", verb, what, *options).strip() == "yes"
    except ClusterError:
        return False


def test_member_edits_own_namespace_and_none_else(
    cluster: OnCluster, team: str, tmp_path: Path
) -> None:
    ana = cluster.of("ana", team, tmp_path / "ana")
    cluster.wait(lambda: may(ana, "create", "trainingjobs.lockstep.dev"), 60, "ana has her rights")
    assert may(ana, "get", "pods/log")
    for verb, what in (
        ("create", "rolebindings"),
        ("patch", "nodes"),
        ("delete", "teams.lockstep.dev"),
        ("patch", "queues.lockstep.dev"),
    ):
        assert not may(ana, verb, what), (verb, what)
    assert not may(ana, "list", "trainingjobs.lockstep.dev", "-n", cluster.space)
    words = ("submit", "plain", "--name", "hers", "--no-launcher", "--image")
    done = ana.lockstep(*words, cluster.lockstep_image(), "--", "echo", "it ran")
    assert done.returncode == 0, done.stderr
    seen = cluster.of("ana", team, tmp_path / "again")

    def succeeded() -> bool:
        return bool(
            seen.get("trainingjobs.lockstep.dev", "hers").get("status", {}).get("phase")
            == "Succeeded"
        )

    seen.wait(succeeded, 120, "her job ends")
    assert "it ran" in ana.lockstep("logs", "hers").stdout
    assert "hers" in ana.lockstep("list").stdout


def test_viewer_reads_and_is_refused_by_name(cluster: OnCluster, team: str, tmp_path: Path) -> None:
    intern = cluster.of("ida", team, tmp_path / "ida", "interns")
    cluster.wait(lambda: may(intern, "list", "trainingjobs.lockstep.dev"), 60, "ida may read")
    words = ("submit", "plain", "--name", "his", "--image", "none", "--", "true")
    done = intern.lockstep(*words)
    assert done.returncode != 0
    assert "ida" in done.stderr
    assert "trainingjobs.lockstep.dev" in done.stderr
    assert intern.lockstep("list").returncode == 0
