"""Which images a team's list allows, and what is said of the others."""

from __future__ import annotations

import pytest

from lockstep.api.team_images import fits, refused


@pytest.mark.parametrize(
    ("image", "patterns", "allowed"),
    [
        ("python", ["python"], True),
        ("python:3.12", ["python"], True),
        ("python@sha256:1", ["python"], True),
        ("pythonic", ["python"], False),
        ("python", ["python:3.12"], False),
        ("registry/vision/train:1", ["registry/vision/*"], True),
        ("registry/visionary", ["registry/vision/*"], False),
        ("anything", ["*"], True),
        ("anything", [], False),
        ("", ["python"], False),
    ],
)
def test_an_image_fits_its_own_name_with_any_tag(
    image: str, patterns: list[str], allowed: bool
) -> None:
    assert fits(image, patterns) is allowed


def test_the_first_wrong_image_is_named_with_its_field() -> None:
    spec = {"containers": [{"image": "python"}], "ephemeralContainers": [{"image": "sh"}]}
    found = refused(spec, "vision", ["python"])
    assert found is not None
    assert found[:2] == ("spec.ephemeralContainers[0].image", "sh")
    assert "team vision allows: python; take one of these" in found[2]
    assert refused({"containers": []}, "vision", ["python"]) is None
