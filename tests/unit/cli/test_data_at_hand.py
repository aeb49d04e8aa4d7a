from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.dataset_cache import DatasetCache, DatasetCacheSpec, DatasetCacheStatus
from lockstep.api.meta import ObjectMeta
from lockstep.cli.views.explain import claims_within, data_lines


def cache(node: str, **status: Any) -> DatasetCache:
    spec = DatasetCacheSpec(node=node, dataset="images")
    about = ObjectMeta(name=f"images.{node}")
    return DatasetCache(metadata=about, spec=spec, status=DatasetCacheStatus(**status))


@pytest.mark.parametrize(
    ("status", "share"),
    [
        ({"version": "v", "files": 2, "cached_files": 2}, 100),
        ({"bytes": 100, "cached_bytes": 40, "version": "v", "files": 2}, 40),
        ({}, 0),
    ],
)
def test_each_node_s_share_is_told(status: dict[str, Any], share: int) -> None:
    [line] = data_lines("images", [cache("n1", **status)])
    assert f"n1 has {share} %" in line


def test_claims_that_are_no_datasets_say_nothing() -> None:
    assert data_lines("other", [cache("n1")]) == []


def test_claims_are_found_in_templates() -> None:
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "images"}}
    tree = {"roles": [{"template": {"spec": {"volumes": [volume, volume]}}}]}
    assert claims_within(tree) == ["images"]
