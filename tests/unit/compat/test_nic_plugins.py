"""Resources of the SR-IOV and the shared RDMA plugins from their own ConfigMaps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.compat.nic_plugins import Candidate, made, preferred, read


def vf(pf: str, number: int, **more: object) -> Candidate:
    given = {"vendor": "15b3", "device": "101e", "driver": "mlx5_core", "rdma": True, **more}
    return Candidate(f"{pf}v{number}", pf=pf, vf=number, **given)  # type: ignore[arg-type]


NODE = [vf("ens1f0", n) for n in range(4)] + [vf("ens2f0", n, link="infiniband") for n in range(4)]
SHARED = [Candidate(f"mlx5_{n}", "15b3", "1021", netdev=f"ens{n}", rdma=True) for n in (0, 1)]


@pytest.mark.parametrize(
    ("config", "nics", "amounts"),
    [
        pytest.param(
            {"resourceList": [{"resourceName": "vfs", "selectors": {"vendors": ["15b3"]}}]},
            NODE,
            {"intel.com/vfs": 8},
            id="all VFs of many NICs under one name",
        ),
        pytest.param(
            {
                "resourceList": [
                    {
                        "resourceName": "first",
                        "resourcePrefix": "mellanox.com",
                        "selectors": {"pfNames": ["ens1f0#0-1,3"]},
                    },
                    {"resourceName": "rest", "selectors": {"pfNames": ["ens1f0"]}},
                ]
            },
            NODE,
            {"mellanox.com/first": 3, "intel.com/rest": 1},
            id="ranges of a PF, the first that selects has it",
        ),
        pytest.param(
            {
                "resourceList": [
                    {
                        "resourceName": "ib",
                        "selectors": [{"linkTypes": ["infiniband"], "isRdma": True}],
                    }
                ]
            },
            NODE,
            {"intel.com/ib": 4},
            id="link types",
        ),
        pytest.param(
            {
                "configList": [
                    {
                        "resourceName": "hca_shared_devices_a",
                        "rdmaHcaMax": 1000,
                        "selectors": {"vendors": ["15b3"], "ifNames": ["ens0"]},
                    }
                ]
            },
            SHARED,
            {"rdma/hca_shared_devices_a": 1000},
            id="shared HCAs",
        ),
    ],
)
def test_their_configuration_makes_their_resources(
    config: object, nics: list[Candidate], amounts: dict[str, int]
) -> None:
    resources, problems = read(json.dumps(config))
    assert problems == []
    assert made(resources, nics).amounts == amounts


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"resourceName": "a b"}, r"resourceList\[0\]: resourceName 'a b'"),
        ({"resourceName": "a", "selectors": {"vendors": "15b3"}}, "selectors.vendors"),
        ({"resourceName": "a", "selectors": {"pfNames": ["ens1#x"]}}, "pfNames 'ens1#x'"),
    ],
)
def test_a_wrong_entry_is_named_and_the_rest_counts(entry: object, words: str) -> None:
    good = {"resourceName": "good", "selectors": {}}
    resources, problems = read(json.dumps({"resourceList": [entry, good]}))
    assert [one.name for one in resources] == ["intel.com/good"]
    with pytest.raises(ValueError, match=words):
        raise ValueError(problems[0])


def test_a_pf_that_is_gone_is_named() -> None:
    text = json.dumps(
        {"resourceList": [{"resourceName": "a", "selectors": {"pfNames": ["gone", "ens1f0"]}}]}
    )
    found = made(read(text)[0], NODE)
    assert found.problems == ["intel.com/a: there is no PF gone on this node"]
    assert found.amounts == {"intel.com/a": 4}


def test_the_nic_beside_each_gpu_is_preferred() -> None:
    places = {"a": ["0", "pci0"], "b": ["0", "pci1"], "c": ["1", "pci2"], "d": ["1", "pci2"]}
    assert preferred("abcd", [], 2, places, [["1", "pci2"], ["0", "pci1"]]) == ["c", "b"]
    assert preferred("abcd", ["a"], 2, places, [["1", "pci2"]]) == ["a", "c"]
    assert preferred("ab", [], 3, places, []) == ["a", "b"]


_KEYS = ("resourceList", "configList", "resourceName", "selectors", "pfNames", "rdmaHcaMax")
_TREES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3)
    ),
)


@given(_TREES)
def test_any_configuration_is_read_or_refused(tree: object) -> None:
    try:
        resources, _ = read(json.dumps(tree))
    except ValueError:
        return
    made(resources, NODE)
