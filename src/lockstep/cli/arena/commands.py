"""Arena's verbs: what Lockstep's commands do already is left to them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.cli.arena.flags import GLOBAL, NAMES, TYPES, Flag
from lockstep.cli.arena.parse import HELP, HelpAsked, Values, flags_help, parse
from lockstep.cli.failure import BadInput

Verb = Callable[[list[str]], None]

_TYPE: Final = Flag("type", short="T", becomes="(a check)")
_OUTPUT: Final = Flag("output", default="wide", short="o", becomes="(how it is printed)")
_EVERYWHERE: Final = Flag("all-namespaces", "switch", short="A", becomes="(where)")
_SCALE: Final = (
    Flag("name", becomes="metadata.name"),
    Flag("count", "number", 1, becomes="roles.replicas"),
    Flag("timeout", default="1m", short="t", becomes="(nothing: no script is run)"),
    Flag("retry", "number", 0, becomes="(nothing: no script is run)"),
    Flag("script"),
    Flag("env", "list", short="e", becomes="(nothing: no script is run)"),
)
_WIDE: Final = ("wide", "simple", "")
_LATER: Final = ("cron", "model", "evaluate", "llm", "logviewer")


def run(args: Sequence[str]) -> None:
    """Do what the command line *args* says, without its ``arena``.

    Raises:
        BadInput: for a command line that makes no sense.
        CommandFailed: when it could not be done.
    """
    words = list(args)
    # Global flags may stand before the verb.
    before: list[str] = []
    while words and words[0].startswith("-") and words[0] not in HELP:
        known = {f"--{flag.name}": flag for flag in GLOBAL} | {"-n": GLOBAL[1]}
        flag = known.get(words[0].partition("=")[0])
        takes = flag is not None and flag.kind != "switch" and "=" not in words[0]
        before += words[: 1 + takes]
        words = words[1 + takes :]
    if not words or words[0] in HELP:
        print(_help())
        return
    name, *rest = words
    if name in _LATER:
        raise BadInput(f"arena {name} is not served by Lockstep yet", "arena --help names what is")
    if name not in VERBS:
        raise BadInput(f"unknown command: arena {name}", f"there are: {', '.join(VERBS)}")
    at = 1 if rest and not rest[0].startswith("-") else 0
    try:
        VERBS[name]([*rest[:at], *before, *rest[at:]])
    except HelpAsked as asked:
        print(flags_help(" ".join([name, *rest[:at]]), asked.flags))


def _help() -> str:
    types = ", ".join(TYPES)
    return (
        "Arena's command line, over Lockstep's own objects.\n\n"
        f"  arena submit TYPE --name NAME ... 'COMMAND'   TYPE: {types}\n"
        "  arena list | get NAME | logs NAME | attach NAME | delete NAME... | prune --since 10d\n"
        "  arena serve TYPE --name NAME ... | list | get | logs | delete | update | traffic-split\n"
        "  arena top node|job | data list | scaleout etjob | scalein etjob\n\n"
        "  arena submit TYPE --help lists the flags."
    )


def _submit(args: list[str]) -> None:
    if not args or args[0].startswith("-"):
        if set(args) & set(HELP):
            print(_help())
            return
        raise BadInput("arena submit needs a type of job", f"one of: {', '.join(TYPES)}")
    given_type, *args = args
    type_ = NAMES.get(given_type, given_type)
    if type_ not in TYPES:
        raise BadInput(f"unknown type of job: {given_type}", f"there are: {', '.join(TYPES)}")
    values, command = parse(args, (*TYPES[type_], Flag("dry-run", "switch", becomes="(print it)")))
    from lockstep.cli.arena.build import objects

    found = objects(type_, values, " ".join(command))
    _check(found)
    if values["dry_run"]:
        from lockstep.cli.output import Format, encode

        print("---\n".join(encode(obj, Format.YAML) for obj in found), end="")
        return
    _send(found, values)
    print(f"The Job {values['name']} has been submitted successfully")
    print(f"You can run `arena get {values['name']} --type {type_}` to check the job status")


def _check(found: list[Json]) -> None:
    """Look for what is wrong across fields; the rest is the server's to check, which takes longer.

    Raises:
        BadInput: for a job that could not run.
    """
    from msgspec import ValidationError

    from lockstep.api.training import TRAINING_JOBS, TrainingJob
    from lockstep.api.validation import problems
    from lockstep.api.wire import convert

    for obj in found:
        if obj["kind"] != TRAINING_JOBS.kind:
            continue
        try:
            wrong = [str(one) for one in problems(convert(obj, TrainingJob))]
        except ValidationError as error:
            wrong = [str(error)]
        if wrong:
            raise BadInput("; and ".join(wrong), "change the flag that this comes from")


def _send(found: list[Json], values: Values) -> None:
    from lockstep.cli.connect import run as connected
    from lockstep.cli.existing import Existing
    from lockstep.cli.sending import send

    def sent(session: Any) -> Any:
        return send(session, found, wait=False, follow=False, existing=Existing.REFUSE)

    connected(_target(values), sent)


def _target(values: Values, *, everywhere: bool = False) -> Any:
    from pathlib import Path

    from lockstep.cli.target import Target

    config = Path(values["config"]) if values.get("config") else None
    return Target(config, None, values.get("namespace") or None, everywhere)


def _lockstep(values: Values, *words: str) -> None:
    """Let Lockstep's own command do it, for the same cluster and namespace."""
    from lockstep.cli.main import app

    verb, *rest = words
    where = [f"--{o}={values[v]}" for o, v in _WHERE.items() if values.get(v)]
    app([verb, *where, *rest], prog_name="lockstep", standalone_mode=False)


_WHERE: Final = {"namespace": "namespace", "kubeconfig": "config"}


def _serve(args: list[str]) -> None:
    from lockstep.cli.arena.serve_commands import serve

    def lockstep(values: Values, *words: str) -> None:
        from lockstep.cli.main import app

        where = [f"--{o}={values[v]}" for o, v in _WHERE.items() if values.get(v)]
        app([*words, *where], prog_name="lockstep", standalone_mode=False)

    # Global flags come before a verb that is named as well.
    at = next((i for i, word in enumerate(args) if not word.startswith("-")), 0)
    serve([*args[at:], *args[:at]] if at else args, lockstep, _target)


def _one(rest: list[str], verb: str) -> str:
    if len(rest) != 1:
        raise BadInput(f"arena {verb} takes one job, not {len(rest)}", f"arena {verb} NAME")
    return rest[0]


def _list(args: list[str]) -> None:
    from lockstep.cli.arena.views import show_list

    values, rest = parse(args, (_TYPE, _OUTPUT, _EVERYWHERE))
    if rest:
        raise BadInput(f"arena list takes no {rest[0]!r}", "arena get NAME shows one job")
    type_ = NAMES.get(values["type"] or "", values["type"] or "")
    target = _target(values, everywhere=values["all_namespaces"])
    show_list(target, type_, _format(values))


def _get(args: list[str]) -> None:
    from lockstep.cli.arena.views import show_one

    more = (
        Flag("events", "switch", short="e", becomes="x"),
        Flag("gpu", "switch", short="g", becomes="x"),
    )
    values, rest = parse(args, (_TYPE, _OUTPUT, *more))
    name = _one(rest, "get")
    show_one(_target(values), name, _format(values))
    if values["events"]:
        _lockstep(values, "describe", name)
    if values["gpu"]:
        _lockstep(values, "top", "gpus", "--job", name)


def _format(values: Values) -> str:
    said = str(values["output"])
    if said in _WIDE:
        return ""
    if said not in ("json", "yaml"):
        raise BadInput(f"--output: {said!r} is not known", "write wide, json or yaml")
    return said


def _logs(args: list[str]) -> None:
    flags = (
        _TYPE,
        Flag("follow", "switch", short="f", becomes="x"),
        Flag("instance", short="i", becomes="x"),
        Flag("container", short="c", becomes="x"),
        Flag("tail", "number", short="t", becomes="x"),
        Flag("since", becomes="x"),
        Flag("since-time", becomes="x"),
        Flag("timestamps", "switch", becomes="x"),
    )
    values, rest = parse(args, flags)
    if values["since_time"]:
        values["since"] = _until_now(values["since_time"])
    name = _one(rest, "logs")
    words = [f"pod/{values['instance']}" if values["instance"] else name]
    words += ["--follow"] * bool(values["follow"]) + ["--timestamps"] * bool(values["timestamps"])
    for flag in ("tail", "since", "container"):
        if values[flag] is not None:
            words.append(f"--{flag}={values[flag]}")
    _lockstep(values, "logs", *words)


def _until_now(moment: str) -> str:
    """Return the time since *moment*, which is written as in an object's status."""
    import time

    from lockstep.api import timestamp

    try:
        return f"{max(1, round(time.time() - timestamp.parse(moment)))}s"
    except ValueError as error:
        raise BadInput(f"--since-time: {error}", "write it as 2026-01-31T12:00:00Z") from None


def _delete(args: list[str]) -> None:
    from lockstep.cli.arena.views import delete

    values, rest = parse(args, (_TYPE,))
    if not rest:
        raise BadInput("arena delete needs the name of a job", "arena delete NAME...")
    delete(_target(values), rest)


def _prune(args: list[str]) -> None:
    from lockstep.cli.arena.views import prune

    since = Flag("since", short="s", becomes="x")
    values, _ = parse(args, (since, _EVERYWHERE))
    if not values["since"]:
        raise BadInput("--since must be set: how long ago a job ended", "arena prune --since=10d")
    prune(_target(values, everywhere=values["all_namespaces"]), values["since"])


def _attach(args: list[str]) -> None:
    flags = (
        _TYPE,
        Flag("instance", short="i", becomes="x"),
        Flag("container", short="c", becomes="x"),
    )
    before, dashes, behind = _cut(args)
    values, rest = parse(before, flags)
    if not rest:
        raise BadInput("arena attach needs the name of a job", "arena attach NAME [-- COMMAND]")
    name, *command = rest
    command = [*command, *behind] if dashes or command else ["sh"]
    subject = f"pod/{values['instance']}" if values["instance"] else name
    where = [f"--container={values['container']}"] if values["container"] else []
    _lockstep(values, "exec", subject, "-i", *(["-t"] * sys.stdin.isatty()), *where, "--", *command)


def _cut(args: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in args:
        return args, False, []
    at = args.index("--")
    return args[:at], True, args[at + 1 :]


def _top(args: list[str]) -> None:
    flags = (
        Flag("details", "switch", short="d", becomes="x"),
        Flag("metric", "switch", short="m", becomes="x"),
        Flag("refresh", "switch", short="r", becomes="x"),
        Flag("instance", short="i", becomes="x"),
        Flag("gpu-mode", short="g", becomes="x"),
        _TYPE,
        _OUTPUT,
        _EVERYWHERE,
    )
    values, rest = parse(args, flags)
    subjects = {"node": "nodes", "job": "jobs"}
    if not rest or rest[0] not in subjects:
        raise BadInput("arena top needs node or job", "arena top node")
    subject = subjects[rest[0]]
    if values["details"] or values["metric"]:
        subject = "gpus" if subject == "nodes" else "pods"
    _lockstep(values, "top", subject, *(["--watch"] * bool(values["refresh"])))


def _data(args: list[str]) -> None:
    values, rest = parse(args, (_EVERYWHERE, _OUTPUT))
    if rest != ["list"]:
        raise BadInput("arena data needs list", "arena data list")
    from lockstep.cli.arena.views import show_claims

    show_claims(_target(values, everywhere=values["all_namespaces"]))


def _scale(sign: int, verb: str) -> Verb:
    def scale(args: list[str]) -> None:
        from lockstep.cli.arena.views import change_size

        values, rest = parse(args, _SCALE)
        if rest and NAMES.get(rest[0], rest[0]) != "etjob":
            raise BadInput(f"arena {verb} {rest[0]} is not known", f"arena {verb} etjob")
        if values["script"]:
            raise BadInput("--script is not served by Lockstep", "leave it out")
        if not values["name"]:
            raise BadInput("--name must be set", "write --name=NAME")
        change_size(_target(values), values["name"], sign * values["count"])

    return scale


def _version(args: list[str]) -> None:
    parse(args, (Flag("short", "switch", becomes="x"),))
    from lockstep import __version__

    print(f"arena: lockstep {__version__}")


def _whoami(args: list[str]) -> None:
    values, _ = parse(args, ())
    _lockstep(values, "status")


VERBS: Final[dict[str, Verb]] = {
    "submit": _submit,
    "list": _list,
    "ls": _list,
    "get": _get,
    "logs": _logs,
    "log": _logs,
    "attach": _attach,
    "delete": _delete,
    "del": _delete,
    "prune": _prune,
    "top": _top,
    "data": _data,
    "serve": _serve,
    "scaleout": _scale(1, "scaleout"),
    "scalein": _scale(-1, "scalein"),
    "version": _version,
    "whoami": _whoami,
}


def link() -> None:
    """Run ``arena``, which is ``lockstep arena`` without the rest of it to load."""
    from lockstep.cli.failure import reported

    reported(lambda: run(sys.argv[1:]))
