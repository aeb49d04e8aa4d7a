"""Which devices of a node fulfil claims."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.support.device_claims import claim_of, device, request, slice_of

from lockstep.scheduler.core.resources.claim_allocation import ClaimError, Stock, Use, allocate
from lockstep.scheduler.core.resources.device_selectors import Candidate, SelectorError

DRIVER, ROOT = "d.test", "resource_k8s_io__pcieRoot"
DEVICES = [
    device("gpu-0", {"memory": "40Gi"}, model="A100", **{ROOT: "a"}),
    device("gpu-1", {"memory": "80Gi"}, model="A100", **{ROOT: "a"}),
    device("gpu-2", {"memory": "80Gi"}, model="H100", **{ROOT: "b"}),
    device("nic-0", rdma=True, **{ROOT: "b"}),
]
GPU, NIC, ANY = "gpu", "nic", "any"
CLASSES = {
    GPU: ["has(device.attributes['d.test'].model)"],
    NIC: ["'d.test' in device.attributes && has(device.attributes['d.test'].rdma)"],
    ANY: [],
}
BIG = "device.capacity['d.test'].memory.compareTo(quantity('80Gi')) >= 0"
SAME = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
H100 = "device.attributes['d.test'].model == 'H100'"
FIRST = {
    "name": "r",
    "firstAvailable": [
        {
            "name": "best",
            "deviceClassName": GPU,
            "count": 2,
            "selectors": [{"cel": {"expression": H100}}],
        },
        {"name": "next", "deviceClassName": GPU, "count": 2},
    ],
}
CASES = [
    # what is shown, requests, constraints, devices that are given, what is got
    ("the first that are free", [request("r", GPU, count=2)], [], ["gpu-0"], ["gpu-1", "gpu-2"]),
    ("by capacity", [request("r", GPU, BIG)], [], [], ["gpu-1"]),
    ("by attribute", [request("r", GPU, H100)], [], [], ["gpu-2"]),
    ("too few", [request("r", GPU, count=4)], [], [], None),
    ("all", [request("r", GPU, allocationMode="All")], [], [], ["gpu-0", "gpu-1", "gpu-2"]),
    ("all, and one is given", [request("r", GPU, allocationMode="All")], [], ["gpu-1"], None),
    ("one root", [request("g", GPU), request("n", NIC)], SAME, [], ["gpu-2", "nic-0"]),
    ("two of one root", [request("g", GPU, count=2)], SAME, [], ["gpu-0", "gpu-1"]),
    ("no root has so many", [request("g", GPU, count=2)], SAME, ["gpu-0"], None),
    (
        "different roots",
        [request("g", GPU, count=2)],
        [{"distinctAttribute": "resource.kubernetes.io/pcieRoot"}],
        [],
        ["gpu-0", "gpu-2"],
    ),
    ("the next alternative", [FIRST], [], [], ["gpu-0", "gpu-1"]),
    (
        "admin access takes what is given",
        [request("r", GPU, H100, adminAccess=True)],
        [],
        ["gpu-2"],
        ["gpu-2"],
    ),
    (
        "no device has the attribute",
        [request("g", ANY, count=4)],
        [{"matchAttribute": "d.test/x"}],
        [],
        None,
    ),
]


def stock(devices=DEVICES, counters=None, **more):
    spec = slice_of(DRIVER, "n", devices, **more).spec
    return Stock([Candidate.of(DRIVER, "n", one) for one in spec.devices], counters or {})


@pytest.mark.parametrize(
    ("what", "requests", "constraints", "given", "expected"), CASES, ids=[c[0] for c in CASES]
)
def test_allocation(what, requests, constraints, given, expected):
    there, use = stock(), Use()
    for one in there.devices:
        if one.name in given:
            use.add(one, {})
    before = dict(use.held)
    found = allocate([claim_of("c", *requests, constraints=constraints)], there, use, CLASSES)
    assert (found and [pick.device.name for pick in found]) == expected
    assert {k: v for k, v in use.held.items() if v} == before


def test_several_claims_share_a_device_up_to_its_capacity():
    shared = {**device("gpu-0", {"memory": "10Gi"}), "allowMultipleAllocations": True}
    there, use = stock([shared]), Use()
    asked = claim_of("c", request("r", ANY, capacity={"requests": {"memory": "4Gi"}}))
    for taken in (4, 8):
        (pick,) = allocate([asked], there, use, CLASSES)
        use.add(pick.device, pick.amounts)
        assert use.capacity[pick.device.id, "d.test/memory"] == taken * 2**30
    assert allocate([asked], there, use, CLASSES) is None


def test_partitions_share_counters():
    def part(name: str, memory: str) -> dict:
        uses = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
        return {**device(name), "consumesCounters": uses}

    left = {(DRIVER, "n", "card", "memory"): Fraction(40 * 2**30)}
    there, use = stock([part("whole", "40Gi"), part("half", "20Gi")], left), Use()
    asked = claim_of("c", request("r", ANY))
    (pick,) = allocate([asked], there, use, CLASSES, liked=[(DRIVER, "n", "half")])
    assert pick.device.name == "half"
    use.add(pick.device, {})
    assert allocate([asked], there, use, CLASSES) is None


def test_a_tainted_device_needs_a_toleration():
    ill = {**device("gpu-0"), "taints": [{"key": "ill", "effect": "NoSchedule"}]}
    bears = [{"key": "ill", "operator": "Exists"}]
    for tolerations, expected in ([], None), (bears, 1):
        asked = claim_of("c", request("r", ANY, tolerations=tolerations))
        found = allocate([asked], stock([ill]), Use(), CLASSES)
        assert (found and len(found)) == expected


@pytest.mark.parametrize(
    ("klass", "expression", "error", "words"),
    [
        ("none", "true", ClaimError, "DeviceClass 'none'"),
        (ANY, "device.nothing ==", SelectorError, "device.nothing =="),
        (ANY, "device.attributes['d.test'].absent == 1", SelectorError, "absent"),
        (ANY, "1", SelectorError, "true or false"),
    ],
)
def test_what_cannot_be_asked_is_named(klass, expression, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        allocate([claim_of("c", request("r", klass, expression))], stock(), Use(), CLASSES)


def test_versions_and_unknown_domains():
    versioned = device("gpu-0")
    versioned["attributes"]["driver"] = {"version": "570.10.2"}
    texts = [
        "device.attributes['d.test'].driver.compareTo(semver('570.9.0')) > 0",
        "!has(device.attributes['other.test'].x)",
    ]
    asked = claim_of("c", request("r", ANY, *texts))
    assert allocate([asked], stock([versioned]), Use(), CLASSES)
