"""Three hosts with real sshd become a cluster that runs a job over all, and are bare again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.support.fabric import Fabric, needs_namespaces

pytestmark = pytest.mark.soak

SSHD = """Port 2222
ListenAddress {address}
HostKey {folder}/host
PidFile {folder}/pid
AuthorizedKeysFile {folder}/../user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""
JOB = """
apiVersion: lockstep.dev/v1alpha1
kind: TrainingJob
metadata: {name: ring}
spec:
  framework: pytorch
  roles:
  - name: worker
    replicas: 3
    template:
      spec:
        topologySpreadConstraints: []
        containers:
        - name: main
          image: none
          command: [python, -c, SCRIPT]
          resources: {requests: {cpu: CPUS}}
"""
RING = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
one = torch.ones(1); dist.all_reduce(one)
print("sum", int(one), "on", os.environ.get("HOSTNAME"), flush=True)
assert int(one) == dist.get_world_size() == 3
"""


@dataclass
class Hosts:
    """Namespaces with sshd, and the file that names them."""

    folder: Path
    site: dict[str, object]
    prints: dict[str, str]

    def write(self, **changed: object) -> Path:
        file = self.folder / "hosts.yaml"
        file.write_text(yaml.safe_dump(self.site | changed))
        return file

    def run(self, *command: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "lockstep", *command]
        environment = {**os.environ, "KUBECONFIG": str(self.folder / "access")}
        return subprocess.run(
            whole,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
            cwd=self.folder,
        )

    def create(self, *more: str, **changed: object) -> subprocess.CompletedProcess[str]:
        where = ("--hosts", str(self.write(**changed)), "--access", str(self.folder / "access"))
        return self.run("cluster", "create", *where, *more)


def keygen(file: Path) -> str:
    """Make a key and return its fingerprint."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    shown = subprocess.check_output(["ssh-keygen", "-lf", f"{file}.pub"], text=True)
    return shown.split()[1]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    needs_namespaces()
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(sshd).exists() or not shutil.which("ssh"):
        pytest.skip("needs OpenSSH's server and client")
    Path("/run/sshd").mkdir(exist_ok=True)
    keygen(tmp_path / "user")
    fabric = Fabric(3, rails=0)
    program = str(Path(sys.executable).parent / "lockstep")
    base = fabric.host.rpartition(".")[0]
    listed, prints, running = [], {}, []
    found: Hosts | None = None
    try:
        fabric.start()
        for number in (1, 2, 3):
            folder = tmp_path / f"n{number}"
            folder.mkdir()
            prints[f"n{number}"] = keygen(folder / "host")
            address = f"{base}.{number}"
            (folder / "sshd").write_text(SSHD.format(address=address, folder=folder))
            command = [sshd, "-D", "-e", "-f", str(folder / "sshd")]
            running.append(fabric.popen(f"n{number}", command, folder / "log"))
            listed.append(
                {
                    "name": f"n{number}",
                    "address": address,
                    "hostKey": prints[f"n{number}"],
                    "directory": str(folder / "lockstep"),
                }
            )
        site = {
            "port": 2222,
            "program": program,
            "identity": str(tmp_path / "user"),
            "hosts": listed,
        }
        found = Hosts(tmp_path, site, prints)
        yield found
    finally:
        if found is not None:
            found.create("--remove")
        for one in running:
            one.terminate()
        fabric.stop()


@pytest.mark.timeout(500)
def test_bare_hosts_become_a_cluster_that_runs_a_job(hosts: Hosts, record_property: object) -> None:
    listed = hosts.site["hosts"]
    assert isinstance(listed, list)
    wrong = [{**listed[0], "hostKey": hosts.prints["n2"]}, *listed[1:]]
    refused = hosts.create(hosts=wrong)
    assert refused.returncode == 1
    assert "n1: host key: it shows SHA256:" in refused.stderr
    unknown = [{k: v for k, v in one.items() if k != "hostKey"} for one in listed[:1]]
    refused = hosts.create(hosts=unknown)
    assert "n1: look: " in refused.stderr and "ssh-keygen -lf" in refused.stderr

    began = time.monotonic()
    made = hosts.create("-o", "json")
    assert made.returncode == 0, made.stderr
    made_in = time.monotonic() - began
    done = json.loads(made.stdout)["hosts"]
    assert done["n1"][:2] == ["control-plane", "answer"]
    assert done["n3"] == ["credentials", "process-node", "agent"]
    again = hosts.create("-o", "json")
    assert set(map(tuple, json.loads(again.stdout)["hosts"].values())) == {()}

    # One pod on each node, for each wants more than half of one.
    nodes = json.loads(hosts.run("list", "nodes", "-o", "json").stdout)
    items = nodes["items"] if isinstance(nodes, dict) else nodes
    cpus = float(items[0]["status"]["allocatable"]["cpu"]) * 0.6
    job = JOB.replace("CPUS", f"'{cpus:.2f}'").replace("SCRIPT", json.dumps(RING))
    (hosts.folder / "job.yaml").write_text(job)
    began = time.monotonic()
    sent = hosts.run("submit", "-f", "job.yaml")
    assert sent.returncode == 0, sent.stderr
    ended = hosts.run("wait", "ring", "--for", "succeeded", "--timeout", "200s")
    logs = hosts.run("logs", "ring").stdout
    assert ended.returncode == 0, f"{ended.stderr}\n{logs}"
    assert logs.count("sum 3") == 3
    pods = json.loads(hosts.run("list", "pods", "-o", "json").stdout)
    shown = json.dumps(pods)
    assert all(f'"nodeName": "n{number}"' in shown for number in (1, 2, 3))
    print(f"created in {made_in:.1f} s, the job ended after {time.monotonic() - began:.1f} s")

    removed = hosts.create("--remove")
    assert removed.returncode == 0, removed.stderr
    for number in (1, 2, 3):
        assert not (hosts.folder / f"n{number}" / "lockstep").exists()
