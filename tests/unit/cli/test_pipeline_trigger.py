"""The trigger that a command line describes."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.cli.failure import BadInput
from lockstep.cli.pipeline_file import trigger

RUN: dict[str, Any] = {"spec": {"templates": {}}}


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        (("digits", "", None), {"modelVersion": {"model": "digits"}}),
        (
            ("digits", "Production", None),
            {"modelVersion": {"model": "digits", "stage": "Production"}},
        ),
        ((None, "", "pictures"), {"dataset": "pictures"}),
    ],
)
def test_a_trigger_waits_for_a_model_or_a_dataset(
    given: tuple[str | None, str, str | None], spec: dict[str, Any]
) -> None:
    assert trigger(RUN, "t", *given)["spec"] == {"run": RUN, **spec}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((None, "", None), "one of --model and --dataset"),
        (("m", "", "d"), "one of --model and --dataset"),
        ((None, "Production", "d"), "--stage"),
    ],
)
def test_it_waits_for_one_of_them(given: tuple[str | None, str, str | None], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        trigger(RUN, "t", *given)
