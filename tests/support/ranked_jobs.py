"""Jobs with ranks on two leaves."""

from tests.support.drawn import gang, pod

from lockstep.scheduler.core.state.cluster import Cluster

TWO_LEAVES = """
    s1/l1: a1:8 a2:8 a3:8 a4:8
    s1/l2: b1:8 b2:8 b3:8 b4:8
"""


def add_job(cluster: Cluster, pods: int, gpus: int, *, on: dict[int, str] | None = None, **spec):
    """Add a gang ``j`` of pods ``j-0``... with their ranks, some of which may have nodes."""
    topology = spec.pop("topology", None)
    split = {"model": spec.pop("model")} if "model" in spec else {}
    groups = [{"name": "w", "min": spec.pop("min", pods), "desired": pods}]
    one = gang("j", groups=groups, topology=topology, parallelism={**spec, **split})
    cluster.set_gang(one)
    for i in range(pods):
        name, held = (on or {}).get(i, ""), ""
        if ":" in name:
            name, _, held = name.partition(":")
        cluster.set_pod(
            pod(
                f"j-{i}",
                gpus=gpus,
                gang="j",
                group="w",
                on=name,
                held=held,
                annotations={"lockstep.dev/rank": str(i)},
            )
        )
