"""One job of each other system really trains, under its own names, variables and words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support import foreign
from tests.support.foreign import template, true
from tests.support.kube_cluster import KubeCluster
from tests.support.process_node import needs_mounts, needs_root, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES
from lockstep.compat.kueue.kinds import WORKLOAD
from lockstep.compat.translation import MANAGER
from lockstep.kube.errors import NotFound

pytestmark = pytest.mark.real_sample(
    "test_a_volcano_job_trains",
    "test_a_job_trains_in_a_kueue_queue",
    "test_pods_of_a_group_start_together",
    "test_pods_that_say_their_gang_themselves_start_together",
)

Json = dict[str, Any]
VOLCANO, JOBSET = "batch.volcano.sh/v1alpha1", "jobset.x-k8s.io/v1alpha2"
KUEUE, ET = "kueue.x-k8s.io/v1beta1", "kai.alibabacloud.com/v1alpha1"
TRAIN = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
net = torch.nn.parallel.DistributedDataParallel(model)
steps = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(64, 4) + dist.get_rank()
y = x.sum(1, keepdim=True)
first = last = None
for _ in range(40):
    loss = ((net(x) - y) ** 2).mean()
    first = loss.item() if first is None else first
    steps.zero_grad(); loss.backward(); steps.step()
    last = loss.item()
assert last < first / 4, (first, last)
rank, size = dist.get_rank(), dist.get_world_size()
os.write(1, f"rank {rank} of {size} learned\\n".encode())
dist.barrier()
dist.destroy_process_group()
# Threads of gloo that are left may abort the interpreter's end.
os._exit(0)
"""
ELASTIC = """
before=0
while :; do
  hosts=$(/etc/edl/discover_hosts.sh | paste -sd, -)
  count=$(/etc/edl/discover_hosts.sh | grep -c .)
  if [ "$count" -gt "$before" ]; then
    mpirun --allow-run-as-root -np "$count" --host "$hosts" sh -c "echo trained on $count" || exit 1
    before=$count
  fi
  [ "$count" -lt 2 ] || exit 0
  sleep 0.2
done
"""


@pytest.fixture
async def kinds(cluster: Cluster) -> None:
    """All kinds are there, installed by Lockstep."""
    await foreign.install(cluster)


@pytest.fixture
def train(tmp_path: Path) -> tuple[str, str]:
    """A small training with torch, over the variables that it finds."""
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    return "python", str(script)


def env(**values: str) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.torch
@pytest.mark.usefixtures("kinds")
async def test_a_volcano_job_trains(cluster: Cluster, train: tuple[str, str]) -> None:
    spec = {
        "schedulerName": "volcano",
        "plugins": {"env": [], "svc": [], "pytorch": []},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [
            {"name": "master", "template": template(*train)},
            {
                "name": "worker",
                "template": template("sh", "-c", f"cat /etc/volcano/*; {train[0]} {train[1]}"),
            },
        ],
    }
    await foreign.create(cluster, VOLCANO, "Job", "vc", spec)
    over = await foreign.says(
        cluster, VOLCANO, "Job", "vc", lambda s: s.get("state", {}).get("phase") == "Completed"
    )
    assert over["succeeded"] == 2
    told = read_log(cluster.node, "vc-worker-0", "main")
    assert "rank 1 of 2 learned" in told
    assert "vc-master-0.vc" in told
    pods = await cluster.pods("vc")
    assert pods["worker-0"].metadata.labels["volcano.sh/task-spec"] == "worker"


@pytest.mark.torch
@pytest.mark.usefixtures("kinds")
async def test_a_jobset_trains(cluster: Cluster, train: tuple[str, str]) -> None:
    script = f"RANK=$(($FIRST + $JOB_COMPLETION_INDEX)) exec {train[0]} {train[1]}"
    common = {"MASTER_ADDR": "js-leader-0-0.js", "MASTER_PORT": "29411", "WORLD_SIZE": "3"}

    def job(first: str, pods: int) -> Json:
        pod = template("sh", "-c", script, env=env(FIRST=first, **common))
        return {"spec": {"parallelism": pods, "completions": pods, "template": pod}}

    spec = {
        "replicatedJobs": [
            {"name": "leader", "template": job("0", 1)},
            {"name": "workers", "template": job("1", 2)},
        ]
    }
    await foreign.create(cluster, JOBSET, "JobSet", "js", spec)
    over = await foreign.says(cluster, JOBSET, "JobSet", "js", true("Completed"))
    assert over["terminalState"] == "Completed"
    assert [one["succeeded"] for one in over["replicatedJobsStatus"]] == [1, 1]
    assert "rank 2 of 3 learned" in read_log(cluster.node, "js-workers-0-1", "main")


@pytest.mark.torch
@pytest.mark.usefixtures("kinds")
async def test_a_job_trains_in_a_kueue_queue(cluster: Cluster, train: tuple[str, str]) -> None:
    quota = {"name": "default-flavor", "resources": [{"name": "cpu", "nominalQuota": 64}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    space = {"namespace": "default"}
    await foreign.put(cluster, KUEUE, "ResourceFlavor", {"name": "default-flavor"}, {})
    # Kueue's own word: without a selector no namespace may use it.
    chosen = {"resourceGroups": groups, "namespaceSelector": {}}
    await foreign.put(cluster, KUEUE, "ClusterQueue", {"name": "cq"}, chosen)
    await foreign.put(
        cluster, KUEUE, "LocalQueue", {"name": "team", **space}, {"clusterQueue": "cq"}
    )
    script = f"RANK=$JOB_COMPLETION_INDEX exec {train[0]} {train[1]}"
    common = {"MASTER_ADDR": "part-0.part", "MASTER_PORT": "29412", "WORLD_SIZE": "2"}
    spec: Json = {
        "parallelism": 2,
        "completions": 2,
        "completionMode": "Indexed",
        "suspend": True,
        "template": template("sh", "-c", script, env=env(**common)),
    }
    if isinstance(cluster.node.server, KubeCluster):
        # Beside a job controller a Job has to say whose it is.
        spec["managedBy"] = MANAGER
    meta = {"name": "part", **space, "labels": {"kueue.x-k8s.io/queue-name": "team"}}
    await foreign.put(cluster, "batch/v1", "Job", meta, spec)
    over = await foreign.says(cluster, "batch/v1", "Job", "part", true("Complete"))
    assert (over["succeeded"], over["completedIndexes"]) == (2, "0,1")
    job = await cluster.client.get(foreign.served("batch/v1", "Job"), "part", "default")
    assert job.spec["suspend"] is False
    (load,) = (await cluster.client.list(WORKLOAD.resource, "default")).items
    known = {c["type"]: c["status"] for c in load.status["conditions"]}
    assert known | {"QuotaReserved": "True", "Admitted": "True"} == known
    assert load.status["admission"]["clusterQueue"] == "cq"
    assert "rank 1 of 2 learned" in read_log(cluster.node, "part-1", "main")
    queue = await cluster.client.get(QUEUES, "default.team")
    assert queue.spec.parent == "cq"
    await cluster.client.delete(foreign.served(KUEUE, "LocalQueue"), "team", "default")

    async def gone() -> bool:
        try:
            await cluster.client.get(QUEUES, "default.team")
        except NotFound:
            return True
        return False

    await eventually(gone, 60, "the end of the queue that was made of it")


@pytest.mark.usefixtures("kinds")
async def test_an_elastic_job_scales_out_and_in(cluster: Cluster) -> None:
    if shutil.which("mpirun") is None or shutil.which("/usr/sbin/sshd") is None:
        pytest.skip("needs mpirun and sshd (Debian: openmpi-bin openssh-server)")
    needs_root()
    worker: Json = {"name": "main", "image": "none"}
    pod = {"spec": {"terminationGracePeriodSeconds": 2, "containers": [worker]}}
    launcher = template("sh", "-c", ELASTIC)
    replicas = {"launcher": {"template": launcher}, "worker": {"template": pod}}
    spec = {"etReplicaSpecs": replicas, "restartPolicy": "Never"}
    await foreign.create(cluster, ET, "TrainingJob", "et", spec)
    await foreign.says(cluster, ET, "TrainingJob", "et", lambda s: s.get("phase") == "Running")
    out = {"selector": {"name": "et"}, "toAdd": {"count": 1}}
    await foreign.create(cluster, ET, "ScaleOut", "more", out)
    done = await foreign.says(
        cluster, ET, "ScaleOut", "more", lambda s: s.get("phase") == "ScaleSucceeded"
    )
    assert done["addPods"] == ["et-worker-1"]
    over = await foreign.says(
        cluster, ET, "TrainingJob", "et", lambda s: s.get("phase") == "Succeeded"
    )
    assert over["targetWorkers"] == ["et-worker-0", "et-worker-1"]
    assert "trained on 2" in read_log(cluster.node, "et-launcher", "main")
    late = {"selector": {"name": "et"}, "toDelete": {"podNames": ["et-worker-0"]}}
    await foreign.create(cluster, ET, "ScaleIn", "less", late)
    failed = await foreign.says(
        cluster, ET, "ScaleIn", "less", lambda s: s.get("phase") == "ScaleFailed"
    )
    assert "the job is over" in failed["message"]


@pytest.mark.torch
async def test_a_job_of_arena_trains(
    cluster: Cluster, train: tuple[str, str], tmp_path: Path
) -> None:
    def arena(*words: str) -> str:
        config = cluster.node.server.kubeconfig
        command = [sys.executable, "-m", "lockstep", "arena", *words, f"--config={config}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = ["--image=none", "--image-pull-policy=IfNotPresent", f"--working-dir={tmp_path}"]
    said = arena("submit", "pytorch", "--name=ar", "--workers=2", *where, " ".join(train))
    assert "The Job ar has been submitted successfully" in said
    await cluster.reaches("ar", "Succeeded", deadline=120)
    assert "SUCCEEDED  PYTORCHJOB" in arena("list")
    assert "ar-master-0" in arena("get", "ar")
    assert "rank 0 of 2 learned" in read_log(cluster.node, "ar-master-0", "main")
    if not isinstance(cluster.node.server, KubeCluster):
        # There the node would have to be found by its name.
        assert "rank 0 of 2 learned" in arena("logs", "ar", "-i", "ar-master-0")
    assert "deleted" in arena("delete", "ar")
    await eventually(lambda: _gone(cluster, "ar"), 60, "the end of the job")


async def _gone(cluster: Cluster, name: str) -> bool:
    return await cluster.job(name) is None


KUBEFLOW = "kubeflow.org/v1"
COORDINATED = (
    "export MASTER_ADDR=$COORDINATOR_ADDRESS MASTER_PORT=$COORDINATOR_PORT "
    "WORLD_SIZE=$NUM_PROCESSES RANK=$PROCESS_ID; "
)
FROM_TF_CONFIG = (
    'eval "$(python -c \'import json, os; c = json.loads(os.environ["TF_CONFIG"]); '
    'w = c["cluster"]["worker"]; h, p = w[0].split(":"); i = c["task"]["index"]; '
    'print(f"export MASTER_ADDR={h} MASTER_PORT={p} WORLD_SIZE={len(w)} RANK={i}")\')"; '
)
OTHERS = {
    "TFJob": ("tfReplicaSpecs", "tensorflow", {"Worker": 2}, FROM_TF_CONFIG),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 1}, ""),
    "JAXJob": ("jaxReplicaSpecs", "jax", {"Worker": 2}, COORDINATED),
}
"""Field of the replicas, name of the main container, replicas, how torch is told what it needs."""


@pytest.mark.torch
@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("kind", OTHERS)
async def test_another_of_kubeflows_jobs_trains(
    cluster: Cluster, train: tuple[str, str], kind: str
) -> None:
    field, container, replicas, before = OTHERS[kind]
    name = kind.lower().removesuffix("job")
    made = template("sh", "-c", f"{before}exec {train[0]} {train[1]}")
    made["spec"]["containers"][0]["name"] = container
    spec = {field: {t: {"replicas": n, "template": made} for t, n in replicas.items()}}
    await foreign.create(cluster, KUBEFLOW, kind, name, spec)
    await foreign.says(cluster, KUBEFLOW, kind, name, true("Succeeded"))
    last = f"{name}-worker-{1 if len(replicas) == 1 else 0}"

    async def learned() -> bool:
        return "rank 1 of 2 learned" in read_log(cluster.node, last, container)

    # A master may end before its worker does.
    await eventually(learned, 60, "the last rank to end")


@pytest.mark.usefixtures("kinds")
async def test_an_mpijob_runs(cluster: Cluster) -> None:
    if shutil.which("mpirun") is None or shutil.which("/usr/sbin/sshd") is None:
        pytest.skip("needs mpirun and sshd (Debian: openmpi-bin openssh-server)")
    needs_root()
    worker = {"spec": {"containers": [{"name": "mpi", "image": "none"}]}}
    worker["spec"]["terminationGracePeriodSeconds"] = 2
    launcher = template("mpirun", "--allow-run-as-root", "-np", "2", "hostname")
    replicas = {
        "Launcher": {"template": launcher},
        "Worker": {"replicas": 2, "template": worker},
    }
    spec = {"slotsPerWorker": 1, "mpiReplicaSpecs": replicas}
    version = "kubeflow.org/v2beta1"
    await foreign.create(cluster, version, "MPIJob", "mpi", spec)
    await foreign.says(cluster, version, "MPIJob", "mpi", true("Succeeded"))
    told = read_log(cluster.node, "mpi-launcher", "main")
    assert sorted(told.split()) == ["mpi-worker-0", "mpi-worker-1"]


TRAINER = "trainer.kubeflow.org/v1alpha1"


@pytest.mark.torch
@pytest.mark.usefixtures("kinds")
async def test_a_trainjob_trains_once_its_data_is_there(
    cluster: Cluster, train: tuple[str, str], tmp_path: Path
) -> None:
    step = "trainer.kubeflow.org/trainjob-ancestor-step"

    def job(name: str, ancestor: str, pod: Json, **more: Any) -> Json:
        pod["spec"]["containers"][0]["name"] = name
        template_ = {"metadata": {"labels": {step: ancestor}}, "spec": {"template": pod}}
        return {"name": name, "template": template_, **more}

    data = tmp_path / "data"
    fetch = template("sh", "-c", f'echo "$STORAGE_URI" > {data}')
    jobs = [
        job("dataset-initializer", "dataset-initializer", fetch),
        job(
            "node",
            "trainer",
            template("false"),
            dependsOn=[{"name": "dataset-initializer", "status": "Complete"}],
        ),
    ]
    runtime = {
        "mlPolicy": {"torch": {"numProcPerNode": 1}},
        "template": {"spec": {"replicatedJobs": jobs}},
    }
    name = {"name": "small", "namespace": "default"}
    spec = {
        "runtimeRef": {"kind": "TrainingRuntime", "name": "small"},
        "initializer": {"dataset": {"storageUri": "file://digits"}},
        "trainer": {"numNodes": 2, "command": ["sh", "-c", f"cat {data}; exec {' '.join(train)}"]},
    }
    # The job comes first, and waits for its runtime.
    await foreign.create(cluster, TRAINER, "TrainJob", "v2", spec)
    await foreign.put(cluster, TRAINER, "TrainingRuntime", name, runtime)
    over = await foreign.says(cluster, TRAINER, "TrainJob", "v2", true("Complete"))
    assert {one["name"] for one in over["jobsStatus"]} == {"dataset-initializer", "node"}
    told = read_log(cluster.node, "v2-node-0-1", "node")
    assert "file://digits" in told
    assert "rank 1 of 2 learned" in told


GROUPS: dict[str, tuple[str, Json]] = {
    "volcano": (
        "scheduling.volcano.sh/v1beta1",
        {"annotations": {"scheduling.k8s.io/group-name": "volcano"}},
    ),
    "coscheduling": (
        "scheduling.x-k8s.io/v1alpha1",
        {"labels": {"scheduling.x-k8s.io/pod-group": "coscheduling"}},
    ),
}


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("name", GROUPS)
async def test_pods_of_a_group_start_together(cluster: Cluster, name: str) -> None:
    version, told = GROUPS[name]
    await foreign.create(cluster, version, "PodGroup", name, {"minMember": 2})

    async def pod(index: int) -> None:
        spec = {**template("sleep", "300")["spec"], "schedulerName": "lockstep"}
        meta = {"name": f"{name}-{index}", "namespace": "default", **told}
        await cluster.client.create(PODS, {"metadata": meta, "spec": spec})

    await pod(0)

    async def waits() -> bool:
        try:
            gang = await cluster.client.get(GANGS, name, "default")
        except NotFound:
            return False
        return gang.status.members == 1 and gang.status.phase == "Pending"

    await eventually(waits, 60, "the first pod to wait for the second")
    assert not (await cluster.client.get(PODS, f"{name}-0", "default")).spec.node_name
    await pod(1)
    await foreign.says(cluster, version, "PodGroup", name, lambda s: s.get("running") == 2)
    for index in (0, 1):
        await cluster.client.delete(PODS, f"{name}-{index}", "default")


@pytest.mark.usefixtures("kinds")
async def test_pods_of_kubernetes_own_group_start_together(cluster: Cluster) -> None:
    if isinstance(cluster.node.server, KubeCluster):
        pytest.skip("Kubernetes serves its PodGroups itself, by default from 1.37 on")
    version = "scheduling.k8s.io/v1beta1"
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    await foreign.create(cluster, version, "PodGroup", "own", policy)

    async def pod(index: int) -> None:
        more = {"schedulerName": "lockstep", "schedulingGroup": {"podGroupName": "own"}}
        spec = {**template("sleep", "300")["spec"], **more}
        meta = {"name": f"own-{index}", "namespace": "default"}
        await cluster.client.create(PODS, {"metadata": meta, "spec": spec})

    await pod(0)

    def said(word: str) -> Callable[[Json], bool]:
        return lambda status: [c["status"] for c in status.get("conditions", [])] == [word]

    await foreign.says(cluster, version, "PodGroup", "own", said("False"))
    assert not (await cluster.client.get(PODS, "own-0", "default")).spec.node_name
    await pod(1)
    await foreign.says(cluster, version, "PodGroup", "own", said("True"))
    for index in (0, 1):
        await cluster.client.delete(PODS, f"own-{index}", "default")


@pytest.mark.usefixtures("kinds")
async def test_the_steps_of_a_flow_run_one_after_the_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    version, log = "flow.volcano.sh/v1alpha1", tmp_path / "order"
    for name in ("load", "train"):
        script = template("sh", "-c", f"echo {name} >> {log}")
        meta = {"name": name, "namespace": "default"}
        tasks = {"tasks": [{"name": "main", "template": script}]}
        await foreign.put(cluster, version, "JobTemplate", meta, tasks)
    steps = [{"name": "train", "dependsOn": {"targets": ["load"]}}, {"name": "load"}]
    flow = {"flows": steps, "jobRetainPolicy": "delete"}
    await foreign.create(cluster, version, "JobFlow", "steps", flow)
    over = await foreign.says(
        cluster, version, "JobFlow", "steps", lambda s: s.get("state", {}).get("phase") == "Succeed"
    )
    assert over["completedJobs"] == ["steps-train", "steps-load"]
    assert log.read_text().split() == ["load", "train"]

    async def gone() -> bool:
        return await cluster.job("steps-load") is None and await cluster.job("steps-train") is None

    await eventually(gone, 60, "its jobs are deleted")


IMPLIED: dict[str, Json] = {
    "kueue-group": {
        "labels": {"kueue.x-k8s.io/pod-group-name": "kueue-group"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    },
    "koordinator-gang": {
        "annotations": {
            "gang.scheduling.koordinator.sh/name": "koordinator-gang",
            "gang.scheduling.koordinator.sh/min-available": "2",
        }
    },
    "yunikorn-app": {
        "labels": {"applicationId": "yunikorn-app"},
        "annotations": {
            "yunikorn.apache.org/task-group-name": "all",
            "yunikorn.apache.org/task-groups": '[{"name": "all", "minMember": 2}]',
        },
    },
}


@pytest.mark.parametrize("name", IMPLIED)
async def test_pods_that_say_their_gang_themselves_start_together(
    cluster: Cluster, name: str
) -> None:
    async def pod(index: int) -> None:
        spec = {**template("sleep", "300")["spec"], "schedulerName": "lockstep"}
        meta = {"name": f"{name}-{index}", "namespace": "default", **IMPLIED[name]}
        await cluster.client.create(PODS, {"metadata": meta, "spec": spec})

    async def gang(members: int, phase: str) -> bool:
        try:
            found = await cluster.client.get(GANGS, name, "default")
        except NotFound:
            return False
        return found.status.members == members and found.status.phase == phase

    needs_mounts()
    await pod(0)
    await eventually(lambda: gang(1, "Pending"), 60, "the first pod to wait for the second")
    assert not (await cluster.client.get(PODS, f"{name}-0", "default")).spec.node_name
    await pod(1)
    await eventually(lambda: gang(2, "Running"), 60, "both to run")
    for index in (0, 1):
        await cluster.client.delete(PODS, f"{name}-{index}", "default", grace_seconds=0)

    async def gone() -> bool:
        return name not in {
            one.metadata.name for one in (await cluster.client.list(GANGS, "default")).items
        }

    await eventually(gone, 60, "the gang to go with its pods")
