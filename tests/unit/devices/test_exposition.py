"""Readings as Prometheus text: names, labels, and how shared cards are split."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lockstep.devices.core.exposition import Compat, Shown, Use, exposition
from lockstep.devices.core.fields import FIELDS
from lockstep.devices.core.holders import Holder
from lockstep.devices.core.model import Card

CARD = Card(index=3, uuid="GPU-3", model='NVIDIA "H200"', pci="0000:17:00.0", driver="580.105.08")
ONE = Holder("team", "a-0", "main", "u1", queue="q", gang="g", job="a", rank="0")
OTHER = Holder("team", "b-0", "main", "u2")
EVERYTHING = {field.key: 8.0 for field in FIELDS}

Series = dict[str, list[tuple[dict[str, str], float]]]


def series(*shown: Shown, compat: Compat = "") -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(exposition(shown, "n", compat).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


OLD_NAMES = (
    "sm_clock memory_clock gpu_temp power_usage fan_speed_percent pcie_tx_throughput "
    "pcie_rx_throughput pcie_replay_counter gpu_utilization mem_copy_utilization enc_utilization "
    "dec_utilization xid_errors power_violation thermal_violation sync_boost_violation fb_free "
    "fb_used"
)
DEFAULT_NAMES = (
    "SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION "
    "PCIE_TX_THROUGHPUT PCIE_RX_THROUGHPUT PCIE_REPLAY_COUNTER GPU_UTIL MEM_COPY_UTIL ENC_UTIL "
    "DEC_UTIL XID_ERRORS FB_FREE FB_USED NVLINK_BANDWIDTH_TOTAL VGPU_LICENSE_STATUS "
    "UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE"
)
NAMES = [
    *(f"dcgm_{one}" for one in OLD_NAMES.split()),
    *(f"DCGM_FI_DEV_{one}" for one in DEFAULT_NAMES.split()),
]


def _plain(name: str) -> str:
    return name.removesuffix("_total")  # the parser's own spelling of counters


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_dcgm_exporter_is_there(name: str) -> None:
    found = {_plain(one) for one in series(Shown(CARD, EVERYTHING))}
    assert _plain(name) in found


def test_labels_are_those_of_dcgm_exporter_and_of_the_pod() -> None:
    [(labels, value)] = series(Shown(CARD, {"power": 76.5}, (ONE,)))["DCGM_FI_DEV_POWER_USAGE"]
    assert value == 76.5
    assert labels == {
        "gpu": "3",
        "UUID": "GPU-3",
        "pci_bus_id": "00000000:17:00.0",
        "device": "nvidia3",
        "modelName": 'NVIDIA "H200"',
        "hostname": "n",
        "DCGM_FI_DRIVER_VERSION": "580.105.08",
        "container": "main",
        "namespace": "team",
        "pod": "a-0",
        "queue": "q",
        "gang": "g",
        "lockstep_job": "a",
        "rank": "0",
    }


def test_a_card_that_nobody_holds_bears_no_pod() -> None:
    [(labels, _)] = series(Shown(CARD, {"power": 1.0}))["DCGM_FI_DEV_POWER_USAGE"]
    assert "pod" not in labels


def test_parts_of_a_shared_card_sum_to_the_whole() -> None:
    uses = {ONE: Use(memory=600, sm=30), OTHER: Use(memory=300, sm=10)}
    values = {"memory_used": 1000.0, "utilization": 80.0, "temperature": 50.0}
    found = series(Shown(CARD, values, (ONE, OTHER), uses))
    memory = {labels["pod"]: value for labels, value in found["DCGM_FI_DEV_FB_USED"]}
    assert memory == {"a-0": 600, "b-0": 300, "": 100}
    busy = {labels["pod"]: value for labels, value in found["DCGM_FI_DEV_GPU_UTIL"]}
    assert busy == {"a-0": 60, "b-0": 20, "": 0}


def test_what_cannot_be_split_says_so() -> None:
    found = series(Shown(CARD, {"temperature": 50.0}, (ONE, OTHER)))
    [(labels, value)] = found["DCGM_FI_DEV_GPU_TEMP"]
    assert (labels["divisible"], value, labels.get("pod")) == ("false", 50.0, None)


def test_processes_that_claim_more_than_the_card_uses_are_scaled() -> None:
    uses = {ONE: Use(memory=900), OTHER: Use(memory=900)}
    found = series(Shown(CARD, {"memory_used": 1000.0}, (ONE, OTHER), uses))
    assert sum(value for _, value in found["DCGM_FI_DEV_FB_USED"]) == 1000


@pytest.mark.parametrize(
    ("compat", "name", "label"),
    [
        ("", "DCGM_FI_DEV_GPU_UTIL", "hostname"),
        ("dcgm3", "DCGM_FI_DEV_GPU_UTIL", "Hostname"),
        ("dcgm4.6", "DCGM_FI_DEV_BOARD_POWER_WATTS", "hostname"),
        ("dcgm4.6", "DCGM_FI_PROF_SM_UTIL_RATIO", "hostname"),
    ],
)
def test_other_versions_names_are_had_by_a_switch(compat: Compat, name: str, label: str) -> None:
    [(labels, _)] = series(Shown(CARD, EVERYTHING), compat=compat)[name]
    assert label in labels


def test_a_mig_device_bears_its_instance() -> None:
    shown = Shown(CARD, {"memory_used": 1.0}, profile="1g.10gb", instance=5)
    [(labels, _)] = series(shown)["DCGM_FI_DEV_FB_USED"]
    assert (labels["GPU_I_PROFILE"], labels["GPU_I_ID"]) == ("1g.10gb", "5")
