"""A real Open MPI runs across pods, over the keys and files that the controller made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.process_node import needs_mounts, needs_root, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import SECRETS
from lockstep.api.training import TRAINING_JOBS

EXAMPLES = Path(__file__).parents[3] / "examples" / "mpi"


@pytest.fixture(autouse=True)
def _open_mpi() -> None:
    for program, package in (("mpirun", "openmpi-bin"), ("/usr/sbin/sshd", "openssh-server")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} (Debian: {package})")
    needs_root()
    needs_mounts()


@pytest.fixture
def pi(tmp_path: Path) -> Path:
    """The example's program, compiled."""
    if shutil.which("mpicc") is None:
        pytest.skip("needs mpicc (Debian: libopenmpi-dev)")
    program = tmp_path / "pi"
    subprocess.run(["mpicc", "-O2", "-o", program, EXAMPLES / "pi.c", "-lm"], check=True)
    return program


async def run(cluster: Cluster, name: str, command: list[str] | None = None) -> str:
    """Run the example as the job *name*, with another command if one is given."""
    body = yaml.safe_load((EXAMPLES / "hosts.yaml").read_text())
    body["metadata"] = {"name": name, "namespace": "default"}
    if command is not None:
        launcher = body["spec"]["roles"][0]["template"]["spec"]["containers"][0]
        launcher["command"] = ["mpirun", "--allow-run-as-root", *command]
    await cluster.client.create(TRAINING_JOBS, body)
    await cluster.reaches(name, "Succeeded", deadline=90)
    return read_log(cluster.node, f"{name}-launcher-0")


async def test_mpirun_starts_its_ranks_on_both_workers(cluster: Cluster) -> None:
    printed = await run(cluster, "hosts")
    assert sorted(printed.splitlines()) == [
        "rank 0 of 4 on hosts-worker-0",
        "rank 1 of 4 on hosts-worker-0",
        "rank 2 of 4 on hosts-worker-1",
        "rank 3 of 4 on hosts-worker-1",
    ]

    async def workers_left() -> bool:
        return set(await cluster.pods("hosts")) == {"launcher-0"}

    await eventually(workers_left, 90, "the end of the workers")


async def test_ranks_in_different_pods_talk_to_each_other(cluster: Cluster, pi: Path) -> None:
    assert "pi is 3.141592654, summed by 4 ranks" in await run(cluster, "pi", [str(pi)])


async def test_the_keys_are_in_a_secret_and_nowhere_else(cluster: Cluster) -> None:
    await run(cluster, "keys", ["true"])
    secret = await cluster.client.get(SECRETS, "keys-ssh", "default")
    assert set(secret.data) == {
        "authorized_keys",
        "config",
        "id_ed25519",
        "id_ed25519.pub",
        "known_hosts",
    }
    told = cluster.node.server.request("GET", "/api/v1/namespaces/default/events").body
    job = cluster.node.server.request(
        "GET", "/apis/lockstep.dev/v1alpha1/namespaces/default/trainingjobs/keys"
    ).body
    assert secret.data["id_ed25519"][100:140].encode() not in told + job
