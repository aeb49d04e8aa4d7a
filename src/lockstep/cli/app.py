"""Apps whose commands declare options and arguments in few words, and in groups.

What stands in ``Annotated`` describes a parameter. Of its strings those that begin with ``-`` are
names, a word without spaces is the placeholder of the value, and the sentence is the help:
``Annotated[Path | None, "--file", "-f", "FILE", "Write it there."]``. Without names an option is
called like its parameter. ``range(8)`` or ``AtLeast(1)`` bounds the value; a function completes it.
Parameters before the ``*`` are arguments.

A parameter whose type is a dataclass is a group: each annotated field is an option, written as a
parameter would be. ``Annotated[Group, Only("a", "b")]`` takes these fields alone, in this order;
the others have their defaults.

A command that is a coroutine function takes a ``session`` first: a connection to the cluster that
its last options name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, iscoroutinefunction, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.models import ParameterInfo

from lockstep.cli.target import Only, Target

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The smallest value of an option."""

    value: float


class App(typer.Typer):
    """Commands of one file; with *help* a group that shows its commands when called alone."""

    def __init__(self, help: str | None = None, **settings: Any) -> None:
        if help is not None:
            settings = {"help": help, "no_args_is_help": True, **settings}
        super().__init__(rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Command], Command]:
        """Return a decorator that adds a command."""
        return _adding(super().command(name, **settings))

    def callback(self, **settings: Any) -> Callable[[Command], Command]:
        """Return a decorator that adds what runs before each command."""
        return _adding(super().callback(**settings))


def _adding(add: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def added(command: Command) -> Command:
        add(grouped(command))
        return command

    return added


def grouped(command: Callable[..., Any]) -> Callable[..., None]:
    """Return *command* with an option in place of each field of its groups, in their order."""
    hints = get_type_hints(command, include_extras=True)
    order = list(signature(command).parameters.values())
    if iscoroutinefunction(command):
        first, *others = order
        order = [*others, first]
        hints[first.name] = Annotated[Target, *hints[first.name].__metadata__]
    groups = {name: found for name, hint in hints.items() if (found := _group(hint)) is not None}

    @wraps(command)
    def called(**given: Any) -> None:
        for name, (group, chosen) in groups.items():
            given[name] = group(**{one: given.pop(one) for one in chosen})
        if not iscoroutinefunction(command):
            command(**given)
            return
        from lockstep.cli.connect import run

        run(given.pop(first.name), lambda session: command(session, **given))

    parameters: list[Parameter] = []
    for parameter in order:
        name = parameter.name
        if name in groups:
            parameters += _options(*groups[name])
        else:
            named = parameter.kind is Parameter.KEYWORD_ONLY
            declare = typer.Option if named else typer.Argument
            parameters.append(_option(name, hints[name], parameter.default, declare))
    # The framework looks at these, not at the code.
    vars(called).pop("__wrapped__")
    vars(called)["__signature__"] = signature(called).replace(parameters=parameters)
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def given_of(*groups: type[Any]) -> list[str]:
    """Return the options of *groups* that were typed in the command that runs, as people write."""
    from typer._click.globals import get_current_context

    context = get_current_context()
    names = {one.name for group in groups for one in fields(group)}
    return [
        param.opts[0]
        for param in context.command.params
        if param.name in names and _typed(context.get_parameter_source(param.name))
    ]


def _typed(source: Any) -> bool:
    return source is not None and source.name == "COMMANDLINE"


def _group(hint: Any) -> tuple[Any, tuple[str, ...]] | None:
    """Return the dataclass of a group and the fields that are taken; None where it is none."""
    base = getattr(hint, "__origin__", hint)
    if not is_dataclass(base):
        return None
    stated = (one.names for one in getattr(hint, "__metadata__", ()) if isinstance(one, Only))
    hints = get_type_hints(base, include_extras=True)
    return base, next(stated, tuple(name for name in hints if hasattr(hints[name], "__metadata__")))


def _options(group: Any, chosen: tuple[str, ...]) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    defaults = {one.name: one.default for one in fields(group)}
    for name in chosen:
        default = Parameter.empty if defaults[name] is MISSING else defaults[name]
        yield _option(name, hints[name], default)


def _option(name: str, hint: Any, default: Any, declare: Any = typer.Option) -> Parameter:
    told = getattr(hint, "__metadata__", ())
    if told and not any(isinstance(one, ParameterInfo) for one in told):
        names: list[str] = []
        more: dict[str, Any] = {}
        for one in told:
            if isinstance(one, range):
                more |= {"min": one.start, "max": one.stop - 1}
            elif isinstance(one, AtLeast):
                more["min"] = one.value
            elif callable(one):
                more["autocompletion"] = one
            elif one.startswith("-") and " " not in one:
                names.append(one)
            elif " " in one or re.fullmatch(r"\w+\.", one):
                more["help"] = one
            else:
                more["metavar"] = one
        hint = Annotated[hint.__origin__, declare(*names, **more)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
