"""What Go says of a text that is not JSON: clients know these messages."""

from __future__ import annotations

import json
from typing import Final

_ENDED: Final = "unexpected end of JSON input"
_SPACE: Final = " \t\r\n"
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}


class _Wrong(Exception):
    """Where the text stops being JSON."""


def syntax_error(data: bytes) -> str:
    """Return why *data* is not JSON, in the words of Go's ``encoding/json``.

    Raises:
        ValueError: when it is.
    """
    text = data.decode("latin-1")
    try:
        position = _value(text, 0)
        position = _skip(text, position)
        if position < len(text):
            raise _unexpected(text, position, "after top-level value")
    except _Wrong as wrong:
        return str(wrong)
    raise ValueError("this is JSON")


def type_name(value: object) -> str:
    """Return what Go calls the JSON type of *value*."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "null"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _unexpected(text: str, position: int, where: str) -> _Wrong:
    if position >= len(text):
        return _Wrong(_ENDED)
    return _Wrong(f"invalid character {_quoted(text[position])} {where}")


def _quoted(char: str) -> str:
    if char == "'":
        return r"'\''"
    if char == '"':
        return "'\"'"
    shown = json.dumps(char)[1:-1]
    if ord(char) >= 0x7F and not char.isprintable():
        shown = f"\\u{ord(char):04x}"
    elif ord(char) >= 0x80:
        shown = char
    return f"'{shown}'"


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _value(text: str, position: int) -> int:
    position = _skip(text, position)
    char = text[position : position + 1]
    if char == "{":
        return _object(text, position + 1)
    if char == "[":
        return _array(text, position + 1)
    if char == '"':
        return _string(text, position + 1)
    if char in _LITERALS:
        return _literal(text, position, _LITERALS[char])
    if char == "-" or (char.isascii() and char.isdigit()):
        return _number(text, position)
    raise _unexpected(text, position, "looking for beginning of value")


def _object(text: str, position: int) -> int:
    position = _skip(text, position)
    if text[position : position + 1] == "}":
        return position + 1
    while True:
        position = _skip(text, position)
        if text[position : position + 1] != '"':
            raise _unexpected(text, position, "looking for beginning of object key string")
        position = _skip(text, _string(text, position + 1))
        if text[position : position + 1] != ":":
            raise _unexpected(text, position, "after object key")
        position = _skip(text, _value(text, position + 1))
        if text[position : position + 1] == "}":
            return position + 1
        if text[position : position + 1] != ",":
            raise _unexpected(text, position, "after object key:value pair")
        position += 1


def _array(text: str, position: int) -> int:
    position = _skip(text, position)
    if text[position : position + 1] == "]":
        return position + 1
    while True:
        position = _skip(text, _value(text, position))
        if text[position : position + 1] == "]":
            return position + 1
        if text[position : position + 1] != ",":
            raise _unexpected(text, position, "after array element")
        position += 1


def _string(text: str, position: int) -> int:
    while position < len(text):
        char = text[position]
        if char == '"':
            return position + 1
        if char == "\\":
            position = _escape(text, position + 1)
        elif char < " ":
            raise _unexpected(text, position, "in string literal")
        else:
            position += 1
    raise _Wrong(_ENDED)


def _escape(text: str, position: int) -> int:
    char = text[position : position + 1]
    if char == "u":
        for at in range(position + 1, position + 5):
            if text[at : at + 1] not in _HEX:
                raise _unexpected(text, at, "in \\u hexadecimal character escape")
        return position + 5
    if not char or char not in 'bfnrt\\/"':
        raise _unexpected(text, position, "in string escape code")
    return position + 1


def _literal(text: str, position: int, literal: str) -> int:
    for at, expected in enumerate(literal):
        if text[position + at : position + at + 1] != expected:
            where = f"in literal {literal} (expecting '{expected}')"
            raise _unexpected(text, position + at, where)
    return position + len(literal)


def _number(text: str, position: int) -> int:
    if text[position] == "-":
        position += 1
        if not _is_digit(text, position):
            raise _unexpected(text, position, "in numeric literal")
    position = position + 1 if text[position] == "0" else _digits(text, position)
    if text[position : position + 1] == ".":
        position += 1
        if not _is_digit(text, position):
            raise _unexpected(text, position, "after decimal point in numeric literal")
        position = _digits(text, position)
    if text[position : position + 1] in ("e", "E"):
        position += 1
        if text[position : position + 1] in ("+", "-"):
            position += 1
        if not _is_digit(text, position):
            raise _unexpected(text, position, "in exponent of numeric literal")
        position = _digits(text, position)
    return position


def _is_digit(text: str, position: int) -> bool:
    char = text[position : position + 1]
    return bool(char) and char.isascii() and char.isdigit()


def _digits(text: str, position: int) -> int:
    while _is_digit(text, position):
        position += 1
    return position
