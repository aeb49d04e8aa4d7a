"""What NCCL should be told, with its reason; the user's value stands, contradictions are said."""

from __future__ import annotations

import pytest

from lockstep.api.topology import Rail
from lockstep.jobs.nccl import DEBUG, Hca, Network, Rank, explained

RAILS = (Rail(name="rail0", subnet="10.0.0.0/16"), Rail(name="rail1", subnet="10.1.0.0/16"))
ROCE = [Hca(f"mlx5_{n}", f"rail{n}", "ethernet", gid=3) for n in (0, 1)]
IB = [Hca(f"mlx5_{n}", f"rail{n}", "infiniband") for n in (0, 1)]


def values(rank: Rank, network: Network) -> dict[str, str]:
    return {one.name: one.stands for one in explained(rank, network)}


@pytest.mark.parametrize(
    ("hcas", "network", "said"),
    [
        pytest.param(
            ROCE,
            Network(RAILS, 2, 26),
            {
                "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
                "LOCKSTEP_GID_INDICES": "mlx5_0:3,mlx5_1:3",
                "NCCL_IB_GID_INDEX": "3",
                "NCCL_IB_ROCE_VERSION_NUM": None,
                "NCCL_IB_TC": "104",
                "NCCL_CROSS_NIC": "0",
                "NCCL_IB_QPS_PER_CONNECTION": "4",
            },
            id="RoCE on rails",
        ),
        pytest.param(
            [ROCE[0], Hca("mlx5_1", "rail1", "ethernet", gid=5)],
            Network(RAILS),
            {
                "LOCKSTEP_GID_INDICES": "mlx5_0:3,mlx5_1:5",
                "NCCL_IB_GID_INDEX": None,
                "NCCL_IB_ROCE_VERSION_NUM": "2",
                "NCCL_IB_ADDR_RANGE": "10.0.0.0/15",
            },
            id="indices that differ",
        ),
        pytest.param(
            ROCE, Network(RAILS, nccl=(2, 19)), {"NCCL_IB_GID_INDEX": "3"}, id="an older NCCL"
        ),
        pytest.param(
            [ROCE[0], Hca("mlx5_1", "rail1", "ethernet", gid=5)],
            Network(RAILS, nccl=(2, 19)),
            {"NCCL_IB_GID_INDEX": None, "NCCL_IB_ROCE_VERSION_NUM": None},
            id="an older NCCL with indices that differ",
        ),
        pytest.param(IB, Network(RAILS, 2), {"NCCL_IB_ROCE_VERSION_NUM": None}, id="InfiniBand"),
        pytest.param(
            [],
            Network(socket="eth0"),
            {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": None},
            id="TCP",
        ),
    ],
)
def test_values_follow_from_facts(
    hcas: list[Hca], network: Network, said: dict[str, str | None]
) -> None:
    found = values(Rank("p", hcas), network)
    assert {name: found.get(name) for name in said} == said
    assert not set(found) & set(DEBUG)
    assert all(one.reason and one.source for one in explained(Rank("p", hcas), network))


@pytest.mark.parametrize(
    ("name", "value", "doubt"),
    [
        ("NCCL_IB_HCA", "=mlx5_7", "mlx5_7 was not handed out"),
        ("NCCL_IB_GID_INDEX", "3", "differ between pods"),
        ("NCCL_IB_TC", "0", "may be dropped"),
        ("NCCL_IB_DISABLE", "1", "RDMA is off"),
        ("NCCL_IB_TIMEOUT", "18", ""),
    ],
)
def test_the_users_value_stands_and_contradictions_are_said(
    name: str, value: str, doubt: str
) -> None:
    found = explained(Rank("p", ROCE, {name: value}), Network(RAILS, 2, 26))
    assert {one.name: one.stands for one in found}[name] == value
    told = [f"{one.name}={one.own}: {one.doubt}" for one in found if one.doubt]
    assert [doubt in one for one in told] == ([True] if doubt else [])
