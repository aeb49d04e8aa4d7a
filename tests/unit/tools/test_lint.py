"""The project's own rules of lint."""

from __future__ import annotations

import ast

import pytest
from tools.lint import circles, lengths, words


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        (
            {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}},
            [["a", "b", "c"], ["d", "e"]],
        ),
    ],
    ids=["chain", "pair", "two"],
)
def test_circles_are_found(imports, found):
    assert circles.circles(imports) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from a.b import c", ["a.b.c"]),
        ("def f():\n    import a.b", ["a.b"]),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", ["b"]),
    ],
)
def test_imports_for_types_alone_do_not_count(text, found):
    assert list(circles.imported(ast.parse(text))) == found


def test_a_circle_of_python_files_is_told_by_name(tmp_path):
    room = tmp_path / "src" / "lockstep" / "jobs"
    room.mkdir(parents=True)
    (room / "a.py").write_text("from lockstep.jobs import b\n")
    (room / "b.py").write_text("def f():\n    from lockstep.jobs.a import x\n")
    assert circles.faults(tmp_path) == [
        "these files import each other: lockstep.jobs.a, lockstep.jobs.b"
    ]


def test_a_circle_of_c_files_is_told_by_name(tmp_path):
    folder = tmp_path / "native" / "cuda"
    folder.mkdir(parents=True)
    for name, other in (("a", "b"), ("b", "a")):
        (folder / f"{name}.h").write_text("#pragma once\n")
        (folder / f"{name}.c").write_text(f'#include "{name}.h"\n#include "{other}.h"\n')
    assert circles.faults(tmp_path) == ["these files import each other: cuda/a, cuda/b"]


@pytest.mark.parametrize(("lines", "long"), [(40, False), (41, True)])
def test_signature_and_docstring_do_not_count(lines, long):
    signature = "def f(\n" + "".join(f"    a{i},\n" for i in range(50)) + "):\n"
    text = signature + '    """Say."""\n' + "    x = 1\n" * lines
    assert bool(list(lengths.long_functions(text))) == long


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody is told.", [(1, "Nobody")]),
        ("as what\n# is none of them", [(1, "what # is none")]),
        ("one\n\nall that there is, twice", [(3, "that there is,")]),
        ("nobodyish", []),
        ("user: nobody", []),
        ("what is None", []),
    ],
)
def test_open_words_are_found_with_their_line(text, found):
    assert list(words.open_words(text)) == found
