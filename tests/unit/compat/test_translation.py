"""What holds for every kind that is translated: golden samples, repetition, status."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from lockstep.api.core import AnyObject
from lockstep.api.permissions.foreign import FOREIGN
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert, to_builtins
from lockstep.compat.registry import sources
from lockstep.compat.translation import Source
from lockstep.dialects.made import MADE
from lockstep.jobs.validate import problems

Json = dict[str, Any]
SAMPLES = sorted(
    path
    for path in (Path(__file__).parent / "samples").glob("*.yaml")
    if not path.name.endswith(".native.yaml")
)
BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}


def load(path: Path) -> tuple[Source, AnyObject]:
    body = yaml.safe_load(path.read_text())
    body["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    source = BY_KIND[body["apiVersion"].partition("/")[0], body["kind"]]
    return source, convert(body, AnyObject)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_a_sample_becomes_what_is_written_beside_it(path: Path) -> None:
    source, obj = load(path)
    found = source.to_native(obj)
    assert not found.refusals
    wanted = list(yaml.safe_load_all(path.with_suffix(".native.yaml").read_text()))
    assert list(found.objects) == wanted


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_what_a_sample_becomes_can_run(path: Path) -> None:
    source, obj = load(path)
    for body in source.to_native(obj).objects:
        native = convert(body, MADE[body["kind"]].type)
        if isinstance(native, TrainingJob):
            assert problems(native) == []


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_translated_twice_gives_the_same(path: Path) -> None:
    source, obj = load(path)
    before = copy.deepcopy(to_builtins(obj))
    assert source.to_native(obj) == source.to_native(obj)
    assert to_builtins(obj) == before


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_its_own_status_changes_nothing(path: Path) -> None:
    source, obj = load(path)
    translation = source.to_native(obj)
    natives = [convert(body, MADE[body["kind"]].type) for body in translation.objects]
    status = source.status_of(obj, natives, ())
    told = structs.replace(obj, status=status)
    assert source.status_of(told, natives, ()) == status
    assert source.to_native(told) == translation
    assert not source.ended(told)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_a_field_that_is_not_known_is_refused_by_name(path: Path) -> None:
    source, obj = load(path)
    found = source.to_native(structs.replace(obj, spec={**obj.spec, "noSuchField": 1}))
    assert not found.objects
    assert [p.field for p in found.refusals] == ["spec.noSuchField"]


def test_every_served_kind_may_be_followed() -> None:
    served: dict[str, set[str]] = {}
    for source in sources():
        served.setdefault(source.kind.group, set()).add(source.kind.plural)
    assert {group: set(plurals.split()) for group, plurals in FOREIGN.items()} == served


EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "dialects").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_can_run(path: Path) -> None:
    source, obj = load(path)
    found = source.to_native(obj)
    assert not found.refusals
    for body in found.objects:
        assert problems(convert(body, MADE[body["kind"]].type)) == []
