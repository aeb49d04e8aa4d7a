from __future__ import annotations

import re

import pytest

from lockstep.apiserver.schema.patterns import compiled


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^[a-z]+$", ["abc"], ["abc\n", "ABC", ""]),
        (r"^\d+\z", ["12"], ["12\n", "١"]),
        ("[[:alpha:]_-]+$", ["ab_-"], ["1"]),
        ("^[^]a]$", ["b"], ["]", "a"]),
        ("^[]a]$", ["]", "a"], ["b"]),
        ("^[a$]$", ["$"], ["b"]),
        ("^[[]$", ["["], ["b"]),
        (r"^\$$", ["$"], ["a"]),
        (r"^a(?i)b$", ["ab", "aB"], ["Ab"]),
        (r"^(x(?i)y)z$", ["xyz", "xYz"], ["xyZ", "Xyz"]),
        (r"(?i)^a(b|c)$", ["AB", "aC"], ["ad"]),
        (r"^(?P<name>a)(?:b)$", ["ab"], ["a"]),
        (r"^\(a\)$", ["(a)"], ["a"]),
    ],
)
def test_patterns_mean_what_they_mean_in_go(
    pattern: str, matching: list[str], other: list[str]
) -> None:
    found = compiled(pattern)
    assert [text for text in matching if not found.search(text)] == []
    assert [text for text in other if found.search(text)] == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing closing ): `(`"),
        ("[a", "missing closing ]: `[a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[[:nothing:]]", "invalid character class range: `[:nothing:]`"),
    ],
)
def test_what_is_no_pattern_is_said_as_go_says_it(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"error parsing regexp: {words}")):
        compiled(pattern)


def test_unicode_classes_are_known() -> None:
    assert compiled(r"^\p{Greek}+$").search("λόγος")
