"""Each framework's pods get exactly the variables of its convention."""

from typing import Any

import pytest
from tests.support.jobs import job, mpi_roles, role

from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.objects import pod

HOST = "digits-worker-0.digits"


def environment(given: Any, name: str) -> dict[str, str]:
    everyone = members(given)
    member = next(m for m in everyone if m.name == name)
    built = pod(given, FRAMEWORKS[given.spec.framework], member, everyone)
    return {v["name"]: v["value"] for v in built["spec"]["containers"][0]["env"] if "value" in v}


def test_one_pytorch_process_a_pod_gets_both_rank_conventions() -> None:
    given = environment(job(role(replicas=3)), "digits-worker-1")
    port = given["MASTER_PORT"]
    assert given == {
        "LOCKSTEP_WORLD": "digits-world",
        "MASTER_ADDR": HOST,
        "MASTER_PORT": port,
        "WORLD_SIZE": "3",
        "RANK": "1",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "PYTHONUNBUFFERED": "1",
        "PET_NPROC_PER_NODE": "1",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": HOST,
        "PET_MASTER_PORT": port,
    }


@pytest.mark.parametrize("by", [{"gpus": 8}, {"processesPerNode": 8}])
def test_pytorch_never_calls_a_nodes_rank_rank(by: dict[str, int]) -> None:
    given = environment(job(role(replicas=4, **by)), "digits-worker-3")
    assert not {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"} & set(given)
    assert (given["WORLD_SIZE"], given["PET_NODE_RANK"]) == ("32", "3")
    assert (given["PET_NPROC_PER_NODE"], given["PET_NNODES"]) == ("8", "4")


def test_pytorch_ranks_go_on_from_role_to_role() -> None:
    given = job(role("master", 1), role("worker", 2))
    assert environment(given, "digits-worker-1")["RANK"] == "2"
    assert environment(given, "digits-worker-1")["MASTER_ADDR"] == "digits-master-0.digits"


def test_pods_of_elastic_and_fixed_jobs_get_the_same_environment() -> None:
    elastic = environment(job(role(replicas=4, min=2, max=8, gpus=2)), "digits-worker-3")
    fixed = environment(job(role(replicas=4, gpus=2)), "digits-worker-3")
    assert elastic == fixed


def test_the_port_is_the_jobs_own_and_stays() -> None:
    ports = {
        n: {environment(job(name=n), f"{n}-worker-{i}")["MASTER_PORT"] for i in (0, 1)}
        for n in ("a", "b", "c")
    }
    assert all(len(found) == 1 for found in ports.values())
    assert len(set.union(*ports.values())) == 3
    assert all(20000 <= int(p) < 29000 for found in ports.values() for p in found)


def test_the_users_own_port_wins() -> None:
    given = job(role("master", 1, env={"MASTER_PORT": "23456"}), role("worker", 2))
    for name in ("digits-master-0", "digits-worker-1"):
        found = environment(given, name)
        assert (found["MASTER_PORT"], found["PET_MASTER_PORT"]) == ("23456", "23456")


def test_the_users_variables_follow_ours_and_may_refer_to_them() -> None:
    given = job(role(env={"PYTHONUNBUFFERED": "0", "URL": "tcp://$(MASTER_ADDR)"}))
    built = pod(given, FRAMEWORKS["pytorch"], members(given)[0], members(given))
    variables = built["spec"]["containers"][0]["env"]
    names = [v["name"] for v in variables]
    assert names.index("MASTER_ADDR") < names.index("URL")
    assert names.count("PYTHONUNBUFFERED") == 1
    assert {"name": "PYTHONUNBUFFERED", "value": "0"} in variables


def test_plain_pods_know_their_place_and_their_peers() -> None:
    given = job(role("server", 1), role("client", 2), framework="plain")
    assert environment(given, "digits-client-1") == {
        "PYTHONUNBUFFERED": "1",
        "LOCKSTEP_JOB": "digits",
        "LOCKSTEP_ROLE": "client",
        "LOCKSTEP_INDEX": "1",
        "LOCKSTEP_PEERS": "digits-server-0.digits,digits-client-0.digits,digits-client-1.digits",
    }


def test_an_mpi_launcher_gets_what_each_mpi_reads() -> None:
    given = environment(job(*mpi_roles(gpus=4), framework="mpi"), "digits-launcher-0")
    del given["LOCKSTEP_SSH_PORT"]
    assert given == {
        "PYTHONUNBUFFERED": "1",
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": "4",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
        "PRTE_MCA_prte_set_default_slots": "4",
        "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/machinefile",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
        "I_MPI_PERHOST": "4",
        "HYDRA_HOST_FILE": "/etc/mpi/machinefile",
        "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }


def test_an_mpi_launcher_with_gpus_keeps_them() -> None:
    launcher, worker = mpi_roles()
    launcher["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    given = environment(job(launcher, worker, framework="mpi"), "digits-launcher-0")
    assert "NVIDIA_VISIBLE_DEVICES" not in given


def test_an_mpi_worker_gets_its_role_and_port() -> None:
    given = environment(job(*mpi_roles(), framework="mpi"), "digits-worker-1")
    assert set(given) == {"PYTHONUNBUFFERED", "K_MPI_JOB_ROLE", "LOCKSTEP_SSH_PORT"}
    assert given["K_MPI_JOB_ROLE"] == "worker"


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, False),
        ({"processesPerNode": 1}, True),
        ({"min": 1, "max": 2}, True),
        ({"identity": {"env": {"RANK": "{rank}"}}}, True),
    ],
)
def test_one_process_gets_no_rank_variables_unless_asked(more: dict[str, Any], asked: bool) -> None:
    told = environment(job(role(replicas=1, **more)), "digits-worker-0")
    names = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    assert names & set(told) == (names if asked else set())
    assert told["PET_NNODES"] == "1"
