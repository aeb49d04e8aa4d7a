"""What names, labels, keys and ports may look like, in the words of the Kubernetes API.

Each function returns what is wrong with a text: nothing, in the common case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from lockstep.apiserver.schema.causes import Cause, invalid, not_supported, required

Check = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_dns_1035 = re.compile(_DNS_1035).fullmatch
_is_key = re.compile(_KEY).fullmatch
_is_value = re.compile(_VALUE).fullmatch
is_environment_name = re.compile("[ -<>-~]+").fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch

_PORT_LENGTH = 15


def regex_error(words: str, pattern: str, *examples: str) -> str:
    """Return *words* with examples and the pattern that they describe."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def range_error(low: int, high: int) -> str:
    """Say that a number must lie between two others."""
    return f"must be between {low} and {high}, inclusive"


def problems(path: str, value: Any, check: Callable[[Any], list[str]]) -> Iterator[Cause]:
    """Yield what *check* finds wrong with the *value* at *path*."""
    return (invalid(path, value, error) for error in check(value))


def needed(path: str, value: Any, check: Callable[[Any], list[str]]) -> Iterator[Cause]:
    """Yield what is wrong with a *value* that there must be."""
    return problems(path, value, check) if value else iter((required(path),))


def one_of(path: str, value: Any, choices: tuple[str, ...]) -> Iterator[Cause]:
    """Yield that the *value* is none of *choices*, if so."""
    if value not in choices:
        yield not_supported(path, value, choices)


def dns_label(text: str) -> list[str]:
    """Check a label of RFC 1123, such as the name of a container."""
    wrong = _too_long(text, 63)
    if not _is_label(text):
        if _is_subdomain(text):
            return [*wrong, "must not contain dots"]
        words = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
            "'-', and must start and end with an alphanumeric character"
        )
        wrong.append(regex_error(words, _LABEL, "my-name", "123-abc"))
    return wrong


def dns_subdomain(text: str) -> list[str]:
    """Check a subdomain of RFC 1123, as which most objects are named."""
    wrong = _too_long(text, 253)
    if not _is_subdomain(text):
        words = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character"
        )
        wrong.append(regex_error(words, _SUBDOMAIN, "example.com"))
    return wrong


def dns_1035_label(text: str) -> list[str]:
    """Check a label of RFC 1035, which begins with a letter."""
    wrong = _too_long(text, 63)
    if not _is_dns_1035(text):
        words = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
            "with an alphabetic character, and end with an alphanumeric character"
        )
        wrong.append(regex_error(words, _DNS_1035, "my-name", "abc-123"))
    return wrong


def path_segment(text: str) -> list[str]:
    """Check a name that only has to fit into a path, such as a role's."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{illegal}'" for illegal in ("/", "%") if illegal in text]


@lru_cache(maxsize=8192)
def _key_errors(text: str) -> tuple[str, ...]:
    words = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character"
    )
    shape = regex_error(words, _KEY, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        prefixed = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {shape}{prefixed}",)
    wrong = []
    name = parts[-1]
    if len(parts) == 2:
        prefix_errors = dns_subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        wrong += [f"prefix part {error}" for error in prefix_errors]
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name) > 63:
        wrong.append("name part must be no more than 63 bytes")
    if not _is_key(name):
        wrong.append(f"name part {shape}")
    return tuple(wrong)


def qualified_name(text: str) -> list[str]:
    """Check the key of a label, an annotation or a resource."""
    return list(_key_errors(text))


def label_value(text: str) -> list[str]:
    """Check the value of a label."""
    wrong = ["must be no more than 63 bytes"] if len(text) > 63 else []
    if not _is_value(text):
        words = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', "
            "'_' or '.', and must start and end with an alphanumeric character"
        )
        wrong.append(regex_error(words, _VALUE, "MyValue", "my_value", "12345"))
    return wrong


def port_number(number: int) -> list[str]:
    """Check the number of a port."""
    return [] if 1 <= number <= 65535 else [range_error(1, 65535)]


def port_name(text: str) -> list[str]:
    """Check the name of a port, which services may refer to."""
    wrong = _too_long(text, _PORT_LENGTH)
    if not re.fullmatch("[-a-z0-9]+", text):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in text:
        wrong.append("must not contain consecutive hyphens")
    if text and "-" in (text[0], text[-1]):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def environment_name(text: str) -> list[str]:
    """Check the name of an environment variable."""
    if not text:
        return ["environment variable name must be non-empty"]
    if is_environment_name(text):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other "
        "than '='"
    ]


def config_key(text: str) -> list[str]:
    """Check a key of a ConfigMap or a Secret, which may become a file."""
    wrong = _too_long(text, 253)
    if not _is_config_key(text):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        wrong.append(regex_error(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        wrong.append(f"must not be '{text}'")
    elif text.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text) > limit else []
