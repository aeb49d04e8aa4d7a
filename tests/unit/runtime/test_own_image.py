"""Helpers in users' pods run from the installation's own image, where there is one."""

from __future__ import annotations

import pytest

from lockstep.compat.fluid.operations import IMAGE
from lockstep.pipelines.core.pods import FILES_IMAGE
from lockstep.runtime.own_image import VARIABLE, with_own_image


@pytest.mark.parametrize("named", [IMAGE, FILES_IMAGE])
def test_own_helpers_alone_get_the_image(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"name": "main", "image": "theirs", "command": ["train"]}

    def spec() -> dict[str, list[dict[str, object]]]:
        return {"initContainers": [{"name": "own", "image": named}], "containers": [dict(theirs)]}

    monkeypatch.delenv(VARIABLE, raising=False)
    assert with_own_image(spec()) == spec(), "a process node knows the name"
    monkeypatch.setenv(VARIABLE, "registry/lockstep:1")
    found = with_own_image(spec())
    assert found["containers"] == [theirs]
    assert found["initContainers"][0]["image"] == "registry/lockstep:1"
    assert found["initContainers"][0]["command"][0] == "/opt/lockstep/bin/python"
