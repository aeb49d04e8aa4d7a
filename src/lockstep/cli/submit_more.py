"""Options of ``lockstep submit`` about the job as a whole: its script, its run time, an array."""

from __future__ import annotations

import copy
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lockstep.api import duration, names
from lockstep.api.label_syntax import value_problems
from lockstep.api.wire import Json
from lockstep.cli.build import BadFlag
from lockstep.cli.completion import of

KEPT_FOR = "1d"
"""How long a job made of flags stays after its end, unless --ttl says otherwise."""
FOR_EVER = "never"
ARRAY_INDEX = "LOCKSTEP_ARRAY_INDEX"
MOST_OF_ARRAY = 1000
LONGEST_SCRIPT = 128 << 10
_PAIR = re.compile(r"([^=\s]+)=(.*)", re.DOTALL)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?(?:%(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """The options, as given."""

    script: Annotated[
        Path | None,
        "--script",
        "FILE",
        "Run this script by its #! line, else by sh; what is behind -- are its arguments.",
    ] = None
    env_file: Annotated[Path | None, "FILE", "Environment, a line K=V each; # comments."] = None
    labels: Annotated[list[str] | None, "--label", "K=V", "Label of the job; may be repeated."] = (
        None
    )
    annotations: Annotated[
        list[str] | None, "--annotation", "K=V", "Annotation; may be repeated."
    ] = None
    runtime: Annotated[
        str,
        "How long it runs: 90s, 2h. Estimates and backfill go by it; on simulated nodes "
        "it ends after that.",
    ] = ""
    ttl: Annotated[str, "Time after its end at which the job is deleted; or never."] = KEPT_FOR
    gpu_type: Annotated[str, "MODEL", "Only GPUs of this model, as `node list -o wide` says."] = ""
    after: Annotated[
        list[str] | None,
        "JOB",
        "Begin once this job, or all jobs of this array, have succeeded; fail when one "
        "fails; may be repeated.",
        of("job"),
    ] = None
    array: Annotated[
        str,
        "FROM-TO",
        f"One job for each number: NAME-3 has {ARRAY_INDEX}=3; 8 is 0-7. Needs --name.",
    ] = ""

    def command(self, given: list[str] | None) -> list[str] | None:
        """Return what the pods run: the script with its arguments, or the command as given.

        Raises:
            BadFlag: when the script cannot be read.
        """
        if self.script is None:
            return given
        text = _read("--script", self.script)
        first = text.split("\n", 1)[0]
        interpreter = shlex.split(first[2:]) if first.startswith("#!") else ["/bin/sh"]
        if not interpreter:
            raise BadFlag("--script", f"{self.script}: its first line names no program behind #!")
        return [*interpreter, "-c", text, *_name_of(interpreter, self.script), *(given or [])]

    def complete(self, job: Json) -> list[Json]:
        """Return the job with what these options say, or the jobs of an array.

        Raises:
            BadFlag: for a value that makes no sense.
        """
        job = copy.deepcopy(job)
        metadata, spec = job["metadata"], job["spec"]
        templates = [role["template"] for role in spec["roles"]]
        if self.labels:
            metadata["labels"] = dict(_pair("--label", one) for one in self.labels)
        annotations = dict(_pair("--annotation", one) for one in self.annotations or ())
        if self.runtime:
            seconds = f"{_seconds('--runtime', self.runtime):g}"
            annotations[names.RUNTIME_ANNOTATION] = seconds
            for template in templates:
                told = template.setdefault("metadata", {}).setdefault("annotations", {})
                told[names.RUNTIME_ANNOTATION] = seconds
        if annotations:
            metadata["annotations"] = annotations
        if self.after:
            spec["after"] = list(dict.fromkeys(self.after))
        if self.ttl != FOR_EVER:
            _seconds("--ttl", self.ttl)
            spec.setdefault("runPolicy", {})["timeToLive"] = self.ttl
        if self.gpu_type:
            self._choose_model(templates)
        if self.env_file is not None:
            _set_environment(templates, _environment(self.env_file))
        return [self._numbered(job, i) for i in self._numbers(metadata)] if self.array else [job]

    def _choose_model(self, templates: list[Json]) -> None:
        if value_problems(self.gpu_type):
            raise BadFlag("--gpu-type", f"{self.gpu_type!r} is no value of a label")
        for template in templates:
            if any(_asks_gpus(one) for one in template["spec"]["containers"]):
                chosen = template["spec"].setdefault("nodeSelector", {})
                chosen[names.GPU_MODEL_LABEL] = self.gpu_type

    def _numbers(self, metadata: Json) -> range:
        found = _RANGE.fullmatch(self.array)
        if found is None or found[3]:
            raise BadFlag("--array", f"{self.array!r} is not FROM-TO, such as 0-9, nor a number")
        if "name" not in metadata:
            raise BadFlag("--array", "needs --name: its jobs are NAME-0, NAME-1, ...")
        low, high = (int(found[1]), int(found[2])) if found[2] else (0, int(found[1]) - 1)
        if not 0 <= high - low < MOST_OF_ARRAY:
            raise BadFlag("--array", f"{self.array!r} holds not 1 to {MOST_OF_ARRAY} numbers")
        return range(low, high + 1)

    def _numbered(self, job: Json, number: int) -> Json:
        one = copy.deepcopy(job)
        metadata = one["metadata"]
        metadata.setdefault("labels", {})[names.ARRAY_LABEL] = metadata["name"]
        metadata["name"] = f"{metadata['name']}-{number}"
        templates = [role["template"] for role in one["spec"]["roles"]]
        _set_environment(templates, {ARRAY_INDEX: str(number)})
        return one


def _name_of(interpreter: list[str], script: Path) -> list[str]:
    """Return what a shell takes for $0; Python takes its own name for it."""
    return [] if any("python" in Path(one).name for one in interpreter) else [script.name]


def _read(flag: str, file: Path) -> str:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise BadFlag(flag, f"{file}: {reason}") from None
    if len(text) > LONGEST_SCRIPT:
        raise BadFlag(
            flag, f"{file}: is longer than {LONGEST_SCRIPT >> 10} KiB; put it on a volume"
        )
    return text


def _environment(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(_read("--env-file", file).splitlines(), 1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadFlag("--env-file", f"{file}, line {number}: {line!r} is not NAME=VALUE")
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        found[name.strip()] = value[1:-1] if quoted else value
    return found


def _set_environment(templates: list[Json], values: dict[str, str]) -> None:
    """Set variables; what a container has already stays."""
    for template in templates:
        for container in template["spec"]["containers"]:
            there = container.setdefault("env", [])
            known = {one["name"] for one in there}
            there += [{"name": k, "value": v} for k, v in values.items() if k not in known]


def _asks_gpus(container: Json) -> bool:
    limits = container.get("resources", {}).get("limits", {})
    return names.GPU in limits or names.GPU_COMPUTE in limits


def _pair(flag: str, given: str) -> tuple[str, str]:
    found = _PAIR.fullmatch(given)
    if found is None:
        raise BadFlag(flag, f"{given!r} is not KEY=VALUE")
    return found[1], found[2]


def _seconds(flag: str, text: str) -> float:
    try:
        return duration.parse(text)
    except ValueError as error:
        raise BadFlag(flag, str(error)) from None
