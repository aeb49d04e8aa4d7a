"""KFP's own compiled examples: what each needs, and the file that runs it here.

`LOCKSTEP_KFP_EXAMPLES` names ``test_data/sdk_compiled_pipelines/valid`` of kubeflow/pipelines.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

NAMED = os.environ.get("LOCKSTEP_KFP_EXAMPLES", "")
EXAMPLES = Path(NAMED)
PLACES = ("python:", "registry.access.redhat.com/ubi9/python-311", "public.ecr.aws/")
SHELLS = ("alpine", "ghcr.io/containerd/busybox", "library/bash")
BAR = 0.95
UNKNOWN = ("my_program",)
MORE: dict[str, Any] = {"STRING": "word", "LIST": ["a", "b"], "STRUCT": {"a": 1}, "BOOLEAN": True}


@dataclass
class Example:
    """One file, and what became of it."""

    name: str
    documents: list[Any]
    left_out: str = ""
    """Why it needs more than a process node has."""
    said: str = ""
    phase: str = ""

    @property
    def as_wished(self) -> bool:
        """Whether it came to the end that it is meant to have."""
        wished = "Failed" if self.name.startswith("failing/") else "Succeeded"
        return self.phase == wished


def examples() -> Iterator[Example]:
    """Yield the examples, and of each whether it needs a cloud."""
    for file in sorted(EXAMPLES.rglob("*.yaml")):
        text = re.sub(r"kfp==[\w.]+", "kfp", file.read_text())
        documents = [one for one in yaml.safe_load_all(text) if one]
        name = str(file.relative_to(EXAMPLES))
        yield Example(name, documents, needs(documents[0], text))


def needs(tree: Any, text: str) -> str:
    """Return what a pipeline needs that a process node has not; empty where nothing."""
    executors = (tree.get("deploymentSpec") or {}).get("executors") or {}
    containers = [one["container"] for one in executors.values() if "container" in one]
    for one in containers:
        if not one["image"].startswith((*PLACES, *SHELLS)):
            return f"the image {one['image'].partition('@')[0]}"
        if (one.get("command") or [""])[0] in UNKNOWN:
            return f"the program {one['command'][0]}"
        if "accelerator" in (one.get("resources") or {}):
            return "a GPU"
    for word in ("gs://", "bigquery", "google-cloud", "oci://"):
        if word in text:
            return f"a cloud ({word})"
    given = (tree["root"].get("inputDefinitions") or {}).get("parameters") or {}
    if any(one.get("parameterType") == "TASK_FINAL_STATUS" for one in given.values()):
        return "a task whose end it is told"
    if (tree["root"].get("inputDefinitions") or {}).get("artifacts"):
        return "an artefact as its input"
    return ""


def arguments(tree: Any, place: Path) -> list[str]:
    """Return values for what a pipeline must be given."""
    given = (tree["root"].get("inputDefinitions") or {}).get("parameters") or {}
    found = []
    for name, one in given.items():
        if "defaultValue" in one or one.get("isOptional"):
            continue
        value = MORE.get(one["parameterType"], 3)
        if name.endswith("_path"):
            value = str(place / name)
        found.append(f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    return found
