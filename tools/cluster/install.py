"""Lockstep on a cluster: its image built and pushed, its chart installed by Helm."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Final

from tools.cluster import images, layout
from tools.cluster.cluster import Cluster, ClusterError
from tools.helm import build as helm

CHART: Final = layout.ROOT / "deploy/chart/lockstep"
NAMESPACE: Final = "lockstep-system"
RELEASE: Final = "lockstep"
READY: Final = "180s"


def install(cluster: Cluster, *options: str) -> float:
    """Install or upgrade Lockstep from the sources; return the seconds until every part is Ready.

    Raises:
        ClusterError: The image cannot be built, or a part does not become Ready.
    """
    began = time.monotonic()
    image = images.lockstep()
    built = time.monotonic()
    cluster.push(image)
    started = time.monotonic()
    print(
        f"install: image built in {built - began:.0f} s, pushed in {started - built:.0f} s",
        flush=True,
    )
    run(
        cluster,
        *("upgrade", "--install", RELEASE, str(CHART), "--namespace", NAMESPACE),
        *("--create-namespace", "--wait", "--timeout", READY),
        *(
            "--set",
            f"image.repository={layout.REGISTRY}/lockstep",
            "--set",
            f"image.tag={image.tag}",
        ),
        *options,
    )
    seconds = time.monotonic() - started
    print(f"install: every part Ready {seconds:.0f} s after helm began", flush=True)
    return seconds


def run(cluster: Cluster, *words: str) -> str:
    """Run Helm as the administrator and return its output."""
    program = helm.find()
    if program is None:
        raise ClusterError("Helm is not built. Run: make helm (two minutes, once)")
    home = cluster.record.directory / "helm"
    done = subprocess.run(
        [str(program), *words],
        env={
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            **{f"HELM_{name}_HOME": str(home) for name in ("CACHE", "CONFIG", "DATA")},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ClusterError(f"helm {words[0]}: {done.stderr.strip()}\n{_pods(cluster)}")
    return done.stdout


def _pods(cluster: Cluster) -> str:
    return cluster.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide", check=False)
