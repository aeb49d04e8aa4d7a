"""The files, keys and pods of an MPI job."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from tests.support.jobs import job, mpi_roles

from lockstep.api.training import TrainingJob
from lockstep.jobs import ssh
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.frameworks.mpi import ssh_port
from lockstep.jobs.objects import pod

MPI = FRAMEWORKS["mpi"]
HOST = "digits-worker-{}.digits.team.svc"


def mpi_job(**worker: object) -> TrainingJob:
    return job(*mpi_roles(**worker), framework="mpi")  # type: ignore[arg-type]


def test_the_host_files_name_every_worker_with_its_slots() -> None:
    files = MPI.files(mpi_job(processesPerNode=3), frozenset())
    assert files["hostfile"] == f"{HOST.format(0)} slots=3\n{HOST.format(1)} slots=3\n"
    assert files["machinefile"] == f"{HOST.format(0)}:3\n{HOST.format(1)}:3\n"


def test_discover_hosts_prints_the_workers_that_run(tmp_path: Path) -> None:
    files = MPI.files(mpi_job(), frozenset({"digits-worker-1", "digits-launcher-0"}))
    script = tmp_path / "discover_hosts.sh"
    script.write_text(files["discover_hosts.sh"])
    printed = subprocess.run(["/bin/sh", script], capture_output=True, text=True, check=True)
    assert printed.stdout == f"{HOST.format(1)}\n"


@pytest.mark.parametrize("name", ["sshd.sh", "wait_for_workers.sh", "discover_hosts.sh"])
def test_the_scripts_are_posix_shell(name: str) -> None:
    text = MPI.files(mpi_job(), frozenset())[name]
    subprocess.run(["/bin/sh", "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize(
    ("worker", "need"), [({"workers": 3}, 3), ({"workers": 4, "min": 2, "max": 8}, 2)]
)
def test_the_launcher_waits_for_the_workers_that_the_job_needs(
    worker: dict[str, int], need: int
) -> None:
    assert (
        f"{need} of the workers" in MPI.files(mpi_job(**worker), frozenset())["wait_for_workers.sh"]
    )


def test_a_worker_without_a_command_runs_sshd_on_its_address() -> None:
    given = mpi_job()
    spec = pod(given, MPI, members(given)[1], members(given))["spec"]
    main = spec["containers"][0]
    assert main["command"] == ["/bin/sh", "/etc/mpi/sshd.sh"]
    address = next(v for v in main["env"] if v["name"] == "LOCKSTEP_POD_IP")
    assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    mounted = {m["mountPath"]: m["name"] for m in main["volumeMounts"]}
    assert mounted.keys() == {"/root/.ssh", "/etc/mpi"}
    secret = next(v["secret"] for v in spec["volumes"] if v["name"] == mounted["/root/.ssh"])
    assert secret == {"secretName": "digits-ssh", "defaultMode": 0o600}


def test_the_launcher_waits_before_it_starts() -> None:
    given = mpi_job()
    spec = pod(given, MPI, members(given)[0], members(given))["spec"]
    assert [c["name"] for c in spec["initContainers"]] == ["wait-for-workers"]
    assert spec["initContainers"][0]["command"] == ["/bin/sh", "/etc/mpi/wait_for_workers.sh"]
    assert spec["containers"][0]["command"] == ["mpirun", "hostname"]


@pytest.mark.parametrize(
    ("worker", "port", "strict"),
    [
        ({}, None, "yes"),
        ({"command": ["/usr/sbin/sshd", "-De"]}, 22, "no"),
        ({"command": ["sshd.sh"], "env": {"LOCKSTEP_SSH_PORT": "2222"}}, 2222, "no"),
        ({"env": {"LOCKSTEP_SSH_PORT": "2222"}}, 2222, "yes"),
    ],
)
def test_the_ssh_client_knows_port_and_key(
    worker: dict[str, object], port: int | None, strict: str
) -> None:
    given = mpi_job(**worker)
    if port is None:
        assert 20000 <= ssh_port(given) < 29000
    else:
        assert ssh_port(given) == port
    config = MPI.ssh_files(given)["config"]
    assert f"  Port {ssh_port(given)}\n" in config
    assert f"  StrictHostKeyChecking {strict}\n" in config


def test_keys_are_a_fresh_pair_that_fits() -> None:
    files, others = ssh.keys(), ssh.keys()
    private = load_ssh_private_key(files["id_ed25519"].encode(), None)
    public = load_ssh_public_key(files["authorized_keys"].encode())
    assert private.public_key() == public
    assert files["known_hosts"].split()[1:] == files["authorized_keys"].split()
    assert files["id_ed25519"] != others["id_ed25519"]
