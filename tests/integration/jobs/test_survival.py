"""Real torch ranks are killed, and their job goes on from memory."""

from __future__ import annotations

import os
import re
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.support.process_node import needs_mounts, read_log
from tests.support.survivors import PATIENCE, SCRIPT, worker
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import LEASES
from lockstep.jobs.gathering import report_in

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(900),
    pytest.mark.real_sample("test_a_suspended_job_resumes_at_its_step_in_new_pods"),
]


DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits"


@pytest.fixture(autouse=True)
def torch_there() -> None:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()


def ranks_of(pattern: str) -> list[int]:
    """Return the processes, launchers aside, whose command line matches."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if re.search(pattern, line) and "lockstep-run" not in line:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("lost", ["rank", "pod", "part"])
async def test_what_is_killed_goes_on_at_its_very_step(
    cluster: Cluster, tmp_path: Path, lost: str
) -> None:
    name = f"sum-{lost}"
    script, stop_at = tmp_path / "sum.py", 5
    script.write_text(SCRIPT)
    (tmp_path / "go").write_text(str(stop_at))
    env = [{"name": "OUT", "value": str(tmp_path)}]
    # Of a tensor that is spread over them each rank has a part that no other has.
    env += [{"name": "PARTS", "value": "1"}] if lost == "part" else []
    await cluster.submit(name, worker("python", str(script), "8", env=env), framework="pytorch")

    def waits() -> bool:
        files = [tmp_path / f"steps-{rank}" for rank in range(2)]
        return all(f.exists() and f"{stop_at - 1}" in f.read_text().split() for f in files)

    await eventually(waits, PATIENCE, "all ranks wait after a step")
    before = {n: p.metadata.uid for n, p in (await cluster.pods(name)).items()}
    victims = [pid for pid in ranks_of(f"python.*{script} 8") if _rank(pid) == "1"]
    assert len(victims) == 1
    if lost == "pod":
        await eventually(lambda: _replicated(cluster, name), PATIENCE, "equal ranks are known")
        await cluster.kill(name, "worker-1")
        del before["worker-1"]
    elif lost == "part":
        await eventually(lambda: _kept(cluster, name, stop_at), PATIENCE, "its part is elsewhere")
        await cluster.kill(name, "worker-1")
        del before["worker-1"]
    else:
        os.kill(victims[0], signal.SIGKILL)

    async def again() -> bool:
        found = await cluster.job(name)
        return found is not None and found.status.generation == 2

    await eventually(again, PATIENCE, "another generation")
    # The others begin anew only after the lost rank has ended, with its launcher too.
    assert victims[0] not in ranks_of(f"python.*{script} 8")
    (tmp_path / "past").touch()
    status = await cluster.reaches(name, "Succeeded", PATIENCE)
    assert (status.restarts, status.attempt) == (1, 0), (status.last_error, status.conditions)
    after = {n: p.metadata.uid for n, p in (await cluster.pods(name)).items()}
    assert before.items() <= after.items()
    printed = read_log(cluster.node, f"{name}-worker-1").splitlines()
    assert f"rank 1 starts at {stop_at} with {2 * stop_at}" in printed
    assert "rank 1 ends with 16" in printed
    for rank in range(2):
        steps = (tmp_path / f"steps-{rank}").read_text().split()
        assert steps == [str(step) for step in range(8)]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["torchrun", "--nproc_per_node", "2", "SCRIPT", "x"], id="torchrun"),
        pytest.param(
            ["python", "-m", "torch.distributed.run", "SCRIPT", "x"],
            id="module",
            marks=pytest.mark.soak,
        ),
        pytest.param(["sh", "-c", "exec torchrun --nnodes=2 SCRIPT x"], id="shell"),
        pytest.param(["python", "SCRIPT", "x"], id="python", marks=pytest.mark.soak),
    ],
)
async def test_ranks_get_torchruns_variables(
    cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest, command: list[str]
) -> None:
    script = tmp_path / "told.py"
    script.write_text(
        "import os, sys\n"
        "names = 'RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK OMP_NUM_THREADS'.split()\n"
        "os.write(1, (' '.join([*map(os.environ.get, names), *sys.argv[1:]]) + '\\n').encode())\n"
    )
    name = f"told-{request.node.callspec.id.split('-')[-1]}"
    role = worker(*(word.replace("SCRIPT", str(script)) for word in command), processesPerNode=2)
    await cluster.submit(name, role, framework="pytorch")
    await cluster.reaches(name, "Succeeded", PATIENCE)
    printed = set(read_log(cluster.node, f"{name}-worker-1").splitlines())
    assert {"2 0 4 2 1 1 x", "3 1 4 2 1 1 x"} <= printed


async def test_a_suspended_job_resumes_at_its_step_in_new_pods(
    cluster: Cluster, tmp_path: Path
) -> None:
    name, script, stop_at = "stored", tmp_path / "sum.py", 5
    script.write_text(SCRIPT)
    (tmp_path / "go").write_text(str(stop_at))
    env = [{"name": "OUT", "value": str(tmp_path)}]
    role = worker("python", str(script), "8", env=env)
    role["template"]["spec"]["terminationGracePeriodSeconds"] = 120
    keeps = {"directory": str(tmp_path / "checkpoints"), "interval": "1h"}
    await cluster.submit(name, role, framework="pytorch", checkpoint=keeps)

    def waits() -> bool:
        files = [tmp_path / f"steps-{rank}" for rank in range(2)]
        return all(f.exists() and f"{stop_at - 1}" in f.read_text().split() for f in files)

    await eventually(waits, PATIENCE, "all ranks wait after a step")
    await cluster.edit(name, suspend=True)
    await cluster.reaches(name, "Suspended", PATIENCE)

    async def away() -> bool:
        return not await cluster.pods(name)

    await eventually(away, PATIENCE, "its pods are gone")
    (tmp_path / "past").touch()
    await cluster.edit(name, suspend=False)
    await cluster.reaches(name, "Succeeded", PATIENCE)
    printed = read_log(cluster.node, f"{name}-worker-1").splitlines()
    assert f"rank 1 starts at {stop_at} with {2 * stop_at}" in printed
    for rank in range(2):
        steps = (tmp_path / f"steps-{rank}").read_text().split()
        assert steps == [str(step) for step in range(8)]


async def _kept(cluster: Cluster, name: str, step: int) -> bool:
    leases = [await cluster.client.get(LEASES, f"{name}-worker-{i}", "default") for i in range(2)]
    found = [report_in(lease) for lease in leases]
    return all(one is not None and one.kept == step for one in found)


async def _replicated(cluster: Cluster, name: str) -> bool:
    found = await cluster.job(name)
    return found is not None and found.status.replicated


def _rank(pid: int) -> str:
    env = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((v[5:].decode() for v in env if v.startswith(b"RANK=")), "")


async def test_a_program_that_fails_the_same_way_twice_is_stopped(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(
        "import torch\nfrom lockstep.train import Checkpointer\n"
        "m = torch.nn.Linear(2, 2)\nc = Checkpointer(m=m)\nif not c.restore(): c.step(1)\n"
        "raise ValueError('no such column')\n"
    )
    role = worker("python", str(script), replicas=1)
    await cluster.submit("wrong", role, framework="pytorch", recovery={"maxRestarts": 9})
    status = await cluster.reaches("wrong", "Failed", PATIENCE)
    assert status.message == (
        "wrong-worker-0: rank 0 ended with code 1: ValueError: no such column; "
        "the same error twice without a step in between"
    )
    assert status.restarts == 1


async def test_state_that_cannot_be_kept_is_named(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "odd.py"
    script.write_text(
        "from lockstep.train import Checkpointer\n"
        "class Odd:\n"
        "    def state_dict(self): return {'a': [1, {2}]}\n"
        "    def load_state_dict(self, state): pass\n"
        "Checkpointer(odd=Odd()).step(1)\n"
    )
    role = worker("python", str(script), replicas=1)
    await cluster.submit("odd", role, framework="pytorch", recovery={"maxRestarts": 0})
    status = await cluster.reaches("odd", "Failed", PATIENCE)
    assert "odd.a.1 is a set: a checkpoint holds tensors" in status.message
