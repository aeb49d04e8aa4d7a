"""A job as form, YAML and script: each gives the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.console.objects import Unreadable, parsed, shown
from lockstep.console.views import form, sdk

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)
FORMS = st.fixed_dictionaries(
    {
        "command": st.lists(WORDS, min_size=1, max_size=3).map(" ".join).filter(
            lambda text: not set("'\"\\") & set(text)
        ),
        "framework": st.sampled_from(["pytorch", "plain"]),
        "queue": st.sampled_from(["default", "research"]),
        "namespace": st.sampled_from(["default", "team"]),
        "workers": st.integers(1, 64).map(str),
    },
    optional={
        "name": st.just("run"),
        "gpus": st.integers(1, 8).map(str),
        "fewest": st.just("1"),
        "most": st.just("64"),
        "cpu": st.just("4"),
        "memory": st.just("16Gi"),
        "image": st.just("train:1"),
        "environment": st.just("A=1\nB=two words"),
    },
)  # fmt: skip


@given(FORMS)
def test_a_form_comes_back_from_its_object(given_form: dict[str, str]) -> None:
    tree = form.training_job(given_form)
    back, beyond = form.form_of(parsed(shown(tree)))
    assert form.training_job(back) == tree
    assert beyond == []


@given(FORMS)
def test_a_form_comes_back_from_its_script(given_form: dict[str, str]) -> None:
    back = sdk.form_of(sdk.script(given_form))
    assert form.training_job(back) == form.training_job(given_form)


def test_what_the_form_has_no_field_for_is_named() -> None:
    tree = form.training_job({"command": "train"})
    tree["spec"]["ssh"] = True
    assert form.form_of(tree)[1] == ["spec.ssh"]


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda t: st.lists(t, max_size=3) | st.dictionaries(
        st.sampled_from(["spec", "metadata", "roles", "template", "containers", "env", "name",
                         "resources", "limits", "command"]), t, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_any_tree_gives_a_form(tree: Any) -> None:
    found, _ = form.form_of(tree)
    assert set(found) <= form.FIELDS


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "no Trainer"),
        ("Trainer(", "is no Python"),
        ("Trainer(command=input())", "command is no literal"),
        ("Trainer(**x)", "is not followed"),
        ("Trainer(command='x')", "list of texts"),
        ("Trainer(command=['x'], resources_per_node={'tpu': 1})", "has no tpu"),
        ("x" * 70_000, "at most"),
    ],
)
def test_a_script_that_cannot_be_followed_says_why(source: str, says: str) -> None:
    with pytest.raises(form.BadField, match=says):
        sdk.form_of(source)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "line 1"),
        ("a: b: c", "line 1"),
        ("- 1", "no object"),
        ("", "no object"),
        ("a: !!python/object:os.system x", "line 1"),
        ("\n".join(["a: &a [1]", *(f"b{i}: *a" for i in range(200))]), "aliases"),
        ("a: " + "[" * 3000, "yaml"),
    ],
)
def test_yaml_that_cannot_be_read_says_where(text: str, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        parsed(text)
