"""Counters of network cards are metrics, with the job and rank that hold the card."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from lockstep.api import names
from lockstep.api.containers import Container, ResourceRequirements
from lockstep.api.core import Pod, PodSpec, PodStatus
from lockstep.api.meta import ObjectMeta
from lockstep.devices.core.model import Port
from lockstep.devices.network.counters import exposition, of_driver, read

PORT = Port(index=0, name="mlx5_0", interfaces=["eth0"])


def tree(root: Path) -> Path:
    for path, value in (
        ("infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "7"),
        ("infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent", "9"),
        ("infiniband/mlx5_0/ports/1/counters/port_xmit_data", "100"),
        ("infiniband/mlx5_0/ports/1/counters/symbol_error", "torn"),
        ("net/eth0/statistics/rx_dropped", "3"),
    ):
        file = root / "sys/class" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value + "\n")
    return root


def test_counters_are_read_in_bytes_and_torn_ones_left_out(tmp_path: Path) -> None:
    assert read(PORT, tree(tmp_path)) == {
        "out_of_sequence": 7,
        "np_cnp_sent": 9,
        "port_xmit_data": 400,
        "rx_dropped": 3,
    }


def test_metrics_name_the_job_and_rank_that_hold_the_card(tmp_path: Path) -> None:
    meta = ObjectMeta(
        name="p",
        namespace="team",
        labels={names.JOB_LABEL: "digits"},
        annotations={names.NICS_ANNOTATION: "0", names.RANK_ANNOTATION: "4"},
    )
    limits = ResourceRequirements(limits={names.NICS: "1"})
    spec = PodSpec(containers=[Container(name="main", resources=limits)])
    pod = Pod(metadata=meta, spec=spec, status=PodStatus(phase="Running"))
    idle = Port(index=1, name="mlx5_0", interfaces=[])
    text = exposition("n", [PORT, idle], [pod], tree(tmp_path)).decode()
    found = {one.name: one.samples for one in text_string_to_metric_families(text)}
    held, free = found["lockstep_nic_out_of_sequence"]
    assert held.value == 7
    assert (held.labels["lockstep_job"], held.labels["rank"]) == ("digits", "4")
    assert "pod" not in free.labels


def test_an_interface_without_a_driver_counts_nothing() -> None:
    assert of_driver("lo") == {}
    assert of_driver("no-such-interface") == {}
