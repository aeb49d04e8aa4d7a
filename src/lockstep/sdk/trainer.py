"""What a job runs: a function, a script or a command, as a TrainingJob."""

from __future__ import annotations

import inspect
import json
import secrets
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from lockstep.api import job_draft
from lockstep.api.imageless import NO_IMAGE
from lockstep.api.job_draft import Draft
from lockstep.api.wire import Json

LONGEST: Final = 128 << 10
"""Bytes of source that fit into a command."""
Framework = Literal[
    "pytorch", "megatron", "deepspeed", "plain", "tensorflow", "jax", "xgboost", "paddle"
]
"""Those of which a job of workers alone makes sense."""


class BadTrainer(ValueError):
    """A trainer that makes no sense; the message names field, value and remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """What runs on each node, and on how many."""

    func: Callable[..., object] | None = None
    """A function of a module or of a notebook's cell. Its source is sent, not the function: it
    imports inside of itself what it needs, and refers to nothing around it."""
    func_args: Mapping[str, Any] = field(default_factory=dict)
    """Its arguments by name: what JSON can hold."""
    script: str | Path | None = None
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    """Arguments of the script or the command."""
    framework: Framework = "pytorch"
    num_nodes: int = 1
    gpus_per_node: int = 0
    resources_per_node: Mapping[str, str | int] = field(default_factory=dict)
    """Other resources of each node, as requests and limits: ``{"memory": "16Gi"}``."""
    code: str | Path | None = None
    """A directory that goes with the job, as with ``lockstep submit --code``; it runs in it. The
    script is then a file of it and may import its neighbours."""
    image: str = NO_IMAGE
    env: Mapping[str, str] = field(default_factory=dict)
    queue: str = "default"
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_restarts: int = 3
    python: str = "python"

    def job(self, name: str | None = None) -> Json:
        """Return the TrainingJob, named *name* or at random.

        Raises:
            BadTrainer: when it does not say what to run, or says something that cannot be sent.
        """
        limits: dict[str, str | int] = dict(self.resources_per_node)
        if self.gpus_per_node:
            limits["nvidia.com/gpu"] = self.gpus_per_node
        return job_draft.training_job(
            Draft(
                name=name or f"train-{secrets.token_hex(4)}",
                framework=self.framework,
                command=self._command(),
                image="" if self.image == NO_IMAGE else self.image,
                environment=self.env,
                sizes={
                    "replicas": self.num_nodes,
                    "min": self.min_nodes,
                    "max": self.max_nodes,
                },
                requests=limits,
                limits=limits,
                spec={"queue": self.queue, "recovery": {"maxRestarts": self.max_restarts}},
            )
        )

    def _command(self) -> list[str]:
        ways = {"func": self.func, "script": self.script, "command": tuple(self.command)}
        given = [name for name, value in ways.items() if value]
        if len(given) != 1:
            told = ", ".join(given) or "none of them"
            raise BadTrainer(f"func, script, command: given {told}; say one of the three")
        if self.func is not None:
            return [self.python, "-c", self._source(self.func)]
        if self.script is not None and self.code is not None:
            return [self.python, _within(Path(self.script), Path(self.code)), *self.args]
        if self.script is not None:
            return [self.python, "-c", self._read(Path(self.script)), *self.args]
        return [*self.command, *self.args]

    def _source(self, func: Callable[..., object]) -> str:
        name = getattr(func, "__name__", repr(func))
        if not inspect.isfunction(func) or name == "<lambda>":
            raise BadTrainer(f"func: given {name}; write a function with def")
        if around := func.__code__.co_freevars:
            words = ", ".join(around)
            raise BadTrainer(f"func: {name} refers to {words} around it; hand it over in func_args")
        try:
            body = textwrap.dedent(inspect.getsource(func))
        except OSError:
            raise BadTrainer(f"func: {name} has no source to send; put it in a file") from None
        try:
            given = json.dumps(dict(self.func_args))
            inspect.signature(func).bind(**self.func_args)
        except (TypeError, ValueError) as error:
            raise BadTrainer(f"func_args: {error}; name what {name} takes, in JSON") from None
        # Decorators are names of the module that is left behind.
        text = body[body.index("def ") :] if body.startswith("@") else body
        call = f"import json\n{name}(**json.loads({given!r}))\n"
        return _fits(f"from __future__ import annotations\n{text}\n{call}", f"func: {name}")

    def _read(self, script: Path) -> str:
        try:
            return _fits(script.read_text(), f"script: {script}")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise BadTrainer(f"script: {script}: {reason}; name a file with Python") from None


def _within(script: Path, code: Path) -> str:
    """Return where *script* is in the directory *code*."""
    for place in (script, code / script):
        if place.is_file() and place.resolve().is_relative_to(code.resolve()):
            return place.resolve().relative_to(code.resolve()).as_posix()
    raise BadTrainer(f"script: {script} is no file of {code}; name one of the directory in code")


def _fits(text: str, what: str) -> str:
    if len(text.encode()) > LONGEST:
        raise BadTrainer(f"{what} is longer than {LONGEST >> 10} KiB; put it into the image")
    return text
