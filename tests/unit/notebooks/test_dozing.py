"""A TensorBoard sleeps while it is not looked at, and wakes when it is."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api import timestamp
from lockstep.api.wire import convert
from lockstep.compat.kubeflow.notebook import Notebook
from lockstep.notebooks.core import dozing

MADE = timestamp.parse("2027-01-01T00:00:00Z")
HOUR = 3600.0
STOPPED, LOOKED = "kubeflow-resource-stopped", "notebooks.kubeflow.org/last-activity"
NAMES = {"stopped": STOPPED, "looked": LOOKED, "sleep": "lockstep.dev/sleep-after"}


def page(app: str = "tensorboard", **annotations: str) -> Notebook:
    told = {NAMES[key]: text for key, text in annotations.items()}
    labels = {"lockstep.dev/app": app} if app else {}
    meta = {"name": "b", "namespace": "s", "labels": labels, "annotations": told}
    return convert({"metadata": {**meta, "creationTimestamp": timestamp.show(MADE)}}, Notebook)


@pytest.mark.parametrize(
    ("notebook", "left"),
    [
        (page(), 0.5 * HOUR - 600),
        (page(looked=timestamp.show(MADE + 300)), 0.5 * HOUR - 300),
        (page(looked="never"), 0.5 * HOUR - 600),
        (page(stopped="asleep"), None),
        (page(app=""), None),
        (page(sleep="2h"), 2 * HOUR - 600),
        (page(sleep="never"), None),
        (page(sleep="soon"), 0.5 * HOUR - 600),
    ],
)
def test_a_page_sleeps_half_an_hour_after_its_last_view(
    notebook: Notebook, left: float | None
) -> None:
    assert dozing.left(notebook, MADE + 600) == left


@pytest.mark.parametrize(
    ("notebook", "after", "changes"),
    [
        (page(), 30.0, {}),
        (page(), HOUR, {LOOKED}),
        (page(stopped="asleep", looked=timestamp.show(MADE + HOUR)), HOUR + 1, {LOOKED, STOPPED}),
        (page(stopped="2027-01-01T00:00:00Z"), HOUR, {LOOKED}),
        (page(app=""), HOUR, set()),
    ],
)
def test_a_request_is_noted_occasionally_and_wakes_sleepers(
    notebook: Notebook, after: float, changes: Any
) -> None:
    found = dozing.noted(notebook, MADE + after)
    assert found.keys() == set(changes)
    assert found.get(STOPPED, "") in ("", None)
