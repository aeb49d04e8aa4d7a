"""Selectors select what Kubernetes' selectors select, and fail in the same words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.meta import LabelSelector, LabelSelectorRequirement
from lockstep.api.selectors import (
    SelectorError,
    from_labels,
    from_selector,
    parse_fields,
    parse_labels,
)

LABELS = {"app": "web", "tier": "front", "n": "12", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier", True),
        ("app=db", False),
        ("app!=web", False),
        ("app!=db", True),
        ("missing!=x", True),
        ("missing", False),
        ("!missing", True),
        ("! app", False),
        ("app in (web,db)", True),
        ("app in (db)", False),
        ("app in(web)", True),
        ("app notin (web,db)", False),
        ("missing notin (a)", True),
        ("empty=", True),
        ("app=", False),
        ("empty in ()", True),
        ("empty in (,a)", True),
        ("app in (a,,b)", False),
        ("n>11", True),
        ("n>12", False),
        ("n<13", True),
        ("app>1", False),
        ("missing<5", False),
        ("app=web,tier in (front,back),!old", True),
        ("app=web,tier in (back)", False),
        ("in in (in)", False),
        ("x.io/y=1", False),
    ],
)
def test_label_selectors(text: str, matches: bool) -> None:
    assert parse_labels(text).matches(LABELS) is matches


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue', or 'my_value', "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("!=", "found '!=', expected: !, identifier, or 'end of string'"),
        ("!,", "unable to parse requirement: found ',', expected: identifier"),
        ("a=(b", "unable to parse requirement: found '(', expected: identifier"),
        ("-a=b", f'unable to parse requirement: <nil>: Invalid value: "-a": {NAME_RULE}'),
        (
            "a=-b",
            f'unable to parse requirement: values[0][a]: Invalid value: "-b": {VALUE_RULE}',
        ),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' "
            "operators, the value must be an integer",
        ),
    ],
)
def test_label_selectors_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_labels(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "text", ["a=1", "a", "!a", "a!=1", "a in (1,2)", "a notin (1,2)", "a>1", "a<1", "a=1,b=2"]
)
def test_a_label_selector_is_shown_as_it_is_written(text: str) -> None:
    assert str(parse_labels(text)) == text


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, list(values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        (LabelSelector(), True),
        (LabelSelector(match_labels={"app": "web"}), True),
        (LabelSelector(match_labels={"app": "web", "tier": "x"}), False),
        (LabelSelector(match_expressions=[expression("app", "In", "web", "db")]), True),
        (LabelSelector(match_expressions=[expression("app", "NotIn", "web")]), False),
        (LabelSelector(match_expressions=[expression("app", "Exists")]), True),
        (LabelSelector(match_expressions=[expression("app", "DoesNotExist")]), False),
    ],
)
def test_label_selector_objects(selector: LabelSelector | None, matches: bool) -> None:
    assert from_selector(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (expression("a", "Like", "b"), '"Like" is not a valid label selector operator'),
        (
            expression("a", "In"),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            expression("a", "Exists", "b"),
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
        (expression("a/b/c", "Exists"), "key: Invalid value: "),
    ],
)
def test_label_selector_objects_that_are_wrong(
    requirement: LabelSelectorRequirement, message: str
) -> None:
    with pytest.raises(SelectorError) as error:
        from_selector(LabelSelector(match_expressions=[requirement]))
    assert str(error.value).startswith(message)


def test_selectors_that_match_everything() -> None:
    assert parse_labels("").everything
    assert not from_selector(None).everything


words = st.text("ab", min_size=1, max_size=2)
labels = st.dictionaries(words, words, max_size=3)


@given(labels, labels)
def test_labels_select_what_contains_them(wanted: dict[str, str], found: dict[str, str]) -> None:
    assert from_labels(wanted).matches(found) is (wanted.items() <= found.items())


@given(labels, words, st.lists(words, min_size=1))
def test_in_and_notin_are_opposites(found: dict[str, str], key: str, values: list[str]) -> None:
    listed = ",".join(values)
    inside = parse_labels(f"{key} in ({listed})").matches(found)
    assert parse_labels(f"{key} notin ({listed})").matches(found) is not inside


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1", True),
        ("spec.nodeName=n2", False),
        ("spec.nodeName!=", True),
        ("status.phase=", True),
        ("status.phase!=Failed,spec.nodeName=n1", True),
        (",,spec.nodeName=n1,", True),
        (r"metadata.name=a\,b\=c\\d", True),
    ],
)
def test_field_selectors(text: str, matches: bool) -> None:
    fields = {"spec.nodeName": "n1", "metadata.name": "a,b=c\\d"}
    selector = parse_fields(text)
    assert selector.matches(fields) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec.nodeName", "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"),
        (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_field_selectors_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_fields(text)
    assert str(error.value) == message


@given(st.text(max_size=5))
def test_any_value_survives_escaping(value: str) -> None:
    selector = parse_fields("a=" + value.translate({ord(c): "\\" + c for c in "\\,="}))
    assert selector.exact("a") == value
    assert parse_fields(str(selector)).terms == selector.terms


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            {"metadata.name", "metadata.namespace"},
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ({"metadata.name", "spec.nodeName"}, "field label not supported: spec.x"),
    ],
)
def test_unknown_fields_are_refused(known: set[str], message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_fields("metadata.name=a,spec.x=1").require(known)
    assert str(error.value) == message
