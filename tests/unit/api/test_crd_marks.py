"""A definition is replaced by one of the same Lockstep or a newer one, never by an older one."""

from __future__ import annotations

import pytest

from lockstep.api import crd
from lockstep.api.names import SCHEMA_ANNOTATION


@pytest.mark.parametrize(
    ("found", "ours", "expected"),
    [
        ("0.1.0+aa", "0.1.0+aa", False),
        ("0.1.0+aa", "0.1.0+bb", True),
        ("0.1.0+aa", "0.2.0+aa", True),
        ("0.9.0+aa", "0.10.0+bb", True),
        ("0.10.0+aa", "0.9.0+bb", False),
        ("1.0.0+aa", "0.9.9+bb", False),
        ("", "0.1.0+aa", True),
        ("something", "0.1.0+aa", True),
    ],
)
def test_which_definition_is_outdated(found: str, ours: str, expected: bool) -> None:
    assert crd.outdated(found, ours) is expected


def test_every_definition_bears_a_mark_of_its_own() -> None:
    marks = [one["metadata"]["annotations"][SCHEMA_ANNOTATION] for one in crd.manifests()]
    assert len(set(marks)) == len(marks)
    assert marks == [one["metadata"]["annotations"][SCHEMA_ANNOTATION] for one in crd.manifests()]
