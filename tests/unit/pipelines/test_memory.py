"""When a kept result is used no more."""

from __future__ import annotations

from typing import Any, cast

import pytest

from lockstep.api import timestamp
from lockstep.api.core import ConfigMap
from lockstep.api.pipeline import Keep, PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.pipelines.memory import Memory, longest_of, name_of

KEPT = timestamp.parse("2026-03-10T10:00:00Z")


class Shelf:
    """Stands in for the informer: it holds one result."""

    def __init__(self, ends: str) -> None:
        data = {"key": "k", "outputs": '{"a": 1}', "at": timestamp.show(KEPT), "from": "r/s"}
        data |= {"ends": ends} if ends else {}
        self.one = convert({"metadata": {"name": name_of("k")}, "data": data}, ConfigMap)

    def get(self, _space: str, name: str) -> ConfigMap | None:
        return self.one if name == self.one.metadata.name else None


@pytest.mark.parametrize(
    ("ends", "longest", "age", "used"),
    [
        ("", None, 1e6, True),
        ("", "1h", 3599, True),
        ("", "1h", 3601, False),
        ("2026-03-10T11:00:00Z", None, 3599, True),
        ("2026-03-10T11:00:00Z", None, 3601, False),
        ("2026-03-10T11:00:00Z", "1d", 3601, False),
        ("2026-03-10T11:00:00Z", "30m", 1801, False),
    ],
)
def test_a_result_expires_at_its_makers_or_users_age(
    ends: str, longest: str | None, age: float, *, used: bool
) -> None:
    memory = Memory(cast("Client", None), cast("Informer[ConfigMap]", cast("Any", Shelf(ends))))
    assert (memory.find("n", "k", longest, KEPT + age) is not None) is used


def test_a_step_states_its_age_before_its_run() -> None:
    spec = PipelineRunSpec(templates={}, keep_longest="7d")
    found = [longest_of(spec, one) for one in (None, Keep(), Keep(longest="1h"))]
    assert found == ["7d", "7d", "1h"]
