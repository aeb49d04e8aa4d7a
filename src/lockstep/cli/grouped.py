"""Commands whose options are kept in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses: each field of one is an option, or an argument.

    A field is written as a parameter would be: its annotation holds the option's names and help,
    its default is the option's. Options keep the order in which the fields stand.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        group = groups.get(parameter.name)
        if group is None:
            hint = hints[parameter.name]
            parameters.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))
        else:
            parameters += _options(group)
    # The framework looks at these, not at the code.
    vars(called).pop("__wrapped__")
    vars(called)["__signature__"] = signature(called).replace(parameters=parameters)
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _options(group: Any) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for one in fields(group):
        default = Parameter.empty if one.default is MISSING else one.default
        yield Parameter(
            one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[one.name]
        )
