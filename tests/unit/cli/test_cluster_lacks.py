"""What a cluster lacks for Lockstep, and what else does its work there."""

from __future__ import annotations

import pytest

from lockstep.cli.cluster_lacks import Seen, Workload, lacks

OURS = {"app.kubernetes.io/name": "lockstep"}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen(), []),
        (Seen(version=(1, 30)), ["Kubernetes is 1.30, and Lockstep needs 1.31"]),
        (Seen(runtimes={"n1": "containerd://1.6.20"}), ["containerd 1.6.20 knows no CDI"]),
        (Seen(runtimes={"n1": "containerd://2.1.4", "n2": "cri-o://1.31.0"}), []),
        (Seen(runtimes={"n1": "docker://27.0.1"}), []),
        (Seen(no_views={"n1": "it has no /dev/fuse"}), ["node n1 shows no datasets"]),
        (Seen(levels={"lockstep-nodes": "restricted"}), ["enforces Pod Security restricted"]),
        (Seen(levels={"lockstep-system": "restricted"}), []),
        (Seen(storage=False), ["no default class of storage"]),
        (
            Seen(workloads=[Workload("Deployment", "old", "lockstep-scheduler", OURS)]),
            ["another Lockstep is there: Deployment old/lockstep-scheduler"],
        ),
        (Seen(workloads=[Workload("Deployment", "lockstep-system", "scheduler", OURS)]), []),
        (
            Seen(workloads=[Workload("DaemonSet", "kube-system", "nvidia-device-plugin-ds")]),
            ["NVIDIA's device plugin is there: DaemonSet kube-system/nvidia-device-plugin-ds"],
        ),
        (
            Seen(
                workloads=[
                    Workload("DaemonSet", "hami", "hami-device-plugin"),
                    Workload("Deployment", "hami", "hami-scheduler"),
                ]
            ),
            ["HAMi's device plugin", "HAMi's scheduler"],
        ),
    ],
)
def test_each_lack_is_said_with_what_mends_it(seen: Seen, said: list[str]) -> None:
    found = list(lacks(seen))
    assert len(found) == len(said)
    for finding, words in zip(found, said, strict=True):
        assert words in finding.what
        assert finding.remedy
