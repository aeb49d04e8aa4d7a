"""The examples of the network are read as the docs say."""

from __future__ import annotations

from pathlib import Path

import yaml
from typer.testing import CliRunner

from lockstep.api.topology import Topology
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.cli.network import app
from lockstep.devices.network.core.plan import planned, pools
from lockstep.jobs.devices import tell_nics

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/network"


def test_the_slurm_file_is_a_tree_of_two_tiers() -> None:
    done = CliRunner().invoke(app, ["discover", "--slurm", str(EXAMPLES / "topology.conf")])
    assert done.exit_code == 0, done.output
    assert "leaf leaf2\n    gpu-5, gpu-6, gpu-7, gpu-8" in done.output


def test_the_topologys_rails_can_be_planned() -> None:
    topology = convert(yaml.safe_load((EXAMPLES / "topology.yaml").read_text()), Topology)
    found = planned(["a"], pools(topology.spec.rails)).members["a"]
    assert [one.address for one in found] == ["10.60.128.0/16", "10.61.128.0/16"]


def test_the_jobs_containers_ask_for_a_nic() -> None:
    job = convert(yaml.safe_load((EXAMPLES / "nics.yaml").read_text()), TrainingJob)
    (container,) = job.spec.roles[0].template["spec"]["containers"]
    tell_nics(container)
    assert {one["name"] for one in container["env"]} == {"LOCKSTEP_HCAS", "NCCL_IB_HCA"}


def test_a_tree_is_judged_and_a_missing_one_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--tree", str(tmp_path), "-o", "json"])
    assert done.exit_code != 0
