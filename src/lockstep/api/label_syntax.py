"""What label keys and values may look like, said in Kubernetes' words."""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 63
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
_SUBDOMAIN_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_SUBDOMAIN_LABEL}(\.{_SUBDOMAIN_LABEL})*"
_NAME_RE: Final = re.compile(_NAME)
_VALUE_RE: Final = re.compile(_VALUE)
_SUBDOMAIN_RE: Final = re.compile(_SUBDOMAIN)

_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue', or 'my_value', "
    f"or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN}')"
)


def key_problems(key: str) -> list[str]:
    """Say what is wrong with a label's or annotation's key; nothing when it is well formed."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > MAX_LENGTH:
        problems.append(f"name part must be no more than {MAX_LENGTH} bytes")
    if not _NAME_RE.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def value_problems(value: str) -> list[str]:
    """Say what is wrong with a label's value; nothing when it is well formed."""
    problems = []
    if len(value.encode()) > MAX_LENGTH:
        problems.append(f"must be no more than {MAX_LENGTH} bytes")
    if not _VALUE_RE.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems


def subdomain_problems(name: str) -> list[str]:
    """Say what is wrong with a DNS subdomain, such as most objects' names."""
    problems = []
    if len(name.encode()) > 253:
        problems.append("must be no more than 253 bytes")
    if not _SUBDOMAIN_RE.fullmatch(name):
        problems.append(_SUBDOMAIN_RULE)
    return problems
