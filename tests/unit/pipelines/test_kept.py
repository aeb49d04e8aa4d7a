"""Under which key a result is kept."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.kept import key_of
from lockstep.pipelines.core.told import Run

Json = dict[str, Any]
DATA: Json = {"uri": "s3://b/one", "digest": "sha256:aa", "name": "data", "metadata": {}}


def key(
    *, rows: Any = 1, data: Json = DATA, image: str = "a", run: str = "first", name: str = "step"
) -> str:
    words = ["${{ inputs.rows }}", "${{ inputs.data.uri }}", "${{ run.name }} ${{ outputs.o.uri }}"]
    container = {"name": "main", "image": image, "command": words}
    output = {"name": "o", "kind": "Artifact", "path": "/x/o"}
    pod = {"template": {"spec": {"containers": [container]}}, "outputs": [output], "shared": ["/x"]}
    task = {"name": name, "template": "step", "keep": {}, "arguments": {"rows": rows, "data": data}}
    templates = {
        "main": {"graph": {"tasks": [task]}},
        "step": {"inputs": ["rows", "data"], "pod": pod},
    }
    spec = convert({"templates": templates, "root": f"s3://b/{run}"}, PipelineRunSpec)
    engine = Engine(Run(run, "default", f"uid-{run}"), spec, 0.0)
    return key_of(engine, engine.nodes[f"main.{name}"])


@pytest.mark.parametrize(
    "same",
    [
        {"run": "second"},
        {"name": "other"},
        {"data": {**DATA, "uri": "s3://b/elsewhere"}},
    ],
)
def test_run_place_and_name_do_not_count(same: Json) -> None:
    assert key(**same) == key()


@pytest.mark.parametrize(
    "other",
    [
        {"rows": 2},
        {"rows": "1"},
        {"image": "b"},
        {"data": {**DATA, "digest": "sha256:bb"}},
        {"data": {"uri": "s3://b/one", "name": "data", "metadata": {}}},
    ],
)
def test_inputs_code_and_digests_count(other: Json) -> None:
    assert key(**other) != key()
