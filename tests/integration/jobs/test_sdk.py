"""Python's own way to jobs: submitted, waited for, read, scaled and cancelled."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.support.kube_cluster import KubeCluster
from tests.support.process_node import needs_mounts, read_log
from tests.support.training import Cluster
from tests.support.waiting import eventually, stretched

from lockstep.api.code import CODE_LABEL
from lockstep.api.core import CONFIG_MAPS
from lockstep.kube.errors import NotFound
from lockstep.sdk import AsyncTrainerClient, BadTrainer, JobFailed, Trainer, TrainerClient


def work(word: str) -> None:
    import os

    print(word, os.environ["LOCKSTEP_INDEX"])


def fail() -> None:
    raise SystemExit(3)


async def test_a_function_runs_on_the_cluster(cluster: Cluster) -> None:
    needs_mounts()
    config = cluster.node.server.kubeconfig
    nodes = {"framework": "plain", "python": sys.executable}

    def ten_lines() -> None:
        with TrainerClient(kubeconfig=config) as client:
            trainer = Trainer(func=work, func_args={"word": "hello"}, num_nodes=2, **nodes)
            name = client.train(trainer, "sdk")
            assert (
                client.wait_for_job_status(name, timeout=stretched(90)).status.phase == "Succeeded"
            )
            assert [job.metadata.name for job in client.list_jobs()].count(name) == 1
            if not isinstance(cluster.node.server, KubeCluster):
                assert client.get_job_logs(name)["sdk-worker-1"].strip() == "hello 1"
                assert client.get_job_metrics(name)["restarts"] == 0

    await asyncio.to_thread(ten_lines)
    assert "hello 0" in read_log(cluster.node, "sdk-worker-0", "main")


async def test_a_directory_goes_along(cluster: Cluster, tmp_path: Path) -> None:
    needs_mounts()
    (tmp_path / "neighbour.py").write_text('WORD = "brought"\n')
    (tmp_path / "script.py").write_text("from neighbour import WORD\nprint(WORD)\n")
    async with AsyncTrainerClient(kubeconfig=cluster.node.server.kubeconfig) as client:
        plain = {"framework": "plain", "python": sys.executable, "num_nodes": 2}
        trainer = Trainer(script=tmp_path / "script.py", code=tmp_path, **plain)
        name = await client.train(trainer, "sdk-code")
        await client.wait_for_job_status(name, timeout=stretched(90))
        code = (await client.get_job(name)).spec.code
        assert code is not None
        for pod in (f"{name}-worker-0", f"{name}-worker-1"):
            assert read_log(cluster.node, pod, "main") == "brought\n"
        with pytest.raises(BadTrainer, match="is no file of"):
            await client.train(Trainer(script="other.py", code=tmp_path, **plain))
        with pytest.raises(BadTrainer, match="is no directory; name the directory"):
            await client.train(Trainer(command=["ls"], code=tmp_path / "nowhere"))
        await client.delete_job(name)

    async def gone() -> bool:
        maps = await cluster.client.list(CONFIG_MAPS, "default", label_selector=CODE_LABEL)
        return not {one.metadata.name for one in maps.items} & set(code.parts)

    await eventually(gone, 60, "the end of its parts")


async def test_a_failing_job_says_so_and_a_running_one_scales(cluster: Cluster) -> None:
    needs_mounts()
    config = cluster.node.server.kubeconfig
    async with AsyncTrainerClient(kubeconfig=config) as client:
        broken = Trainer(func=fail, framework="plain", max_restarts=0, python=sys.executable)
        name = await client.train(broken)
        with pytest.raises(JobFailed, match="exit code 3"):
            await client.wait_for_job_status(name, timeout=stretched(90))
        long = Trainer(command=["sleep", "300"], framework="plain", min_nodes=1, max_nodes=3)
        name = await client.train(long)
        await client.wait_for_job_status(name, ["Running"], timeout=stretched(90))
        with pytest.raises(ValueError, match="may have 1 to 3"):
            await client.scale_job(name, 4)
        await client.scale_job(name, 2)
        await cluster.running(name, 2)
        await client.delete_job(name)

        async def gone() -> bool:
            try:
                await client.get_job(name)
            except NotFound:
                return True
            return False

        await eventually(gone, 60, "the end of the job")
