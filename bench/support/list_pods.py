"""A process that lists and caches all pods, and prints what that took.

``python -m bench.support.list_pods WHO KUBECONFIG [LIMIT]`` with WHO ``lockstep`` or ``official``
prints seconds of wall clock, seconds of CPU, peak MiB and the number of pods.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path
from typing import Any


async def lockstep(kubeconfig: Path) -> int:
    """Let an informer sync, as the scheduler's does at its start."""
    from lockstep.api.core import PODS
    from lockstep.kube.client import Client
    from lockstep.kube.config import ClusterConfig
    from lockstep.kube.informer import Informer

    async with Client(ClusterConfig.load(kubeconfig)) as client:
        informer = Informer(client, PODS)
        informer.fresh = True
        following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        following.cancel()
        return len(informer)


def official(kubeconfig: Path, limit: int) -> int:
    """Make a dictionary of one page of pods with the official client."""
    import kubernetes

    api: Any = kubernetes  # its annotations are not those of what it returns
    api.config.load_kube_config(str(kubeconfig))
    pods = api.client.CoreV1Api().list_pod_for_all_namespaces(limit=limit).items
    return len({(pod.metadata.namespace, pod.metadata.name): pod for pod in pods})


def main() -> None:
    who, kubeconfig = sys.argv[1], Path(sys.argv[2])
    began, spent = time.perf_counter(), time.process_time()
    if who == "lockstep":
        import uvloop

        count = uvloop.run(lockstep(kubeconfig))
    else:
        count = official(kubeconfig, int(sys.argv[3]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - began, time.process_time() - spent, peak, count)


if __name__ == "__main__":
    main()
