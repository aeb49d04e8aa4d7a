"""Examples of the SDK's own repository: each compiled here, and what ``kfp.local`` makes of it.

``repository.py CHECKOUT PLACE`` writes for each file below ``sdk_compiled_pipelines/valid`` the
pipelines that it compiles, as ``PLACE/NAME.yaml``, and ``PLACE/NAME.json``: the arguments, and the
outputs that ``kfp.local`` gives, or why it gives none. Each file has a process of its own.
"""

import contextlib
import functools
import json
import os
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Tuple

import kfp
import yaml
from kfp import compiler, dsl, local

BASE = "registry.access.redhat.com/ubi9/python-311:latest"
EXAMPLES = Path("test_data", "sdk_compiled_pipelines", "valid")
LONGEST = 100
VALUES: Dict[str, Any] = {
    "STRING": "word",
    "LIST": ["a", "b"],
    "STRUCT": {"a": 1},
    "BOOLEAN": True,
    "NUMBER_INTEGER": 3,
    "NUMBER_DOUBLE": 3.0,
}


def compiled(file: Path, target: Path) -> Any:
    """Run *file*, which compiles a pipeline, so that it goes to *target*; return the pipeline."""
    found: List[Any] = []
    real = compiler.Compiler.compile

    def kept(self: Any, pipeline_func: Any, package_path: str = "", **more: Any) -> None:
        if not found:
            real(self, pipeline_func, str(target), **more)
        found.append(pipeline_func)

    compiler.Compiler.compile = kept
    dsl.component = functools.partial(dsl.component, base_image=BASE, install_kfp_package=False)
    try:
        runpy.run_path(str(file), run_name="__main__")
    except Exception:
        # Some submit what they define to a server instead of compiling it.
        names = runpy.run_path(str(file), run_name="example")
        graphs = [one for one in names.values() if type(one).__name__ == "GraphComponent"]
        if not found:
            compiler.Compiler().compile(graphs[-1], str(target))
    finally:
        compiler.Compiler.compile = real
    return found[0]


def arguments(tree: Any, place: Path) -> Tuple[Dict[str, Any], str]:
    """Return values for what a pipeline must be given, or why none can be."""
    given = tree["root"].get("inputDefinitions") or {}
    if given.get("artifacts"):
        return {}, "it is given artefacts"
    found = {}
    for name, one in (given.get("parameters") or {}).items():
        if one["parameterType"] == "TASK_FINAL_STATUS":
            return {}, "it is told the end of a task"
        if "defaultValue" not in one and not one.get("isOptional"):
            found[name] = str(place) if name.endswith("_path") else VALUES[one["parameterType"]]
    return found, ""


def one_file(checkout: Path, place: Path, file: Path) -> None:
    """Compile one example, and let ``kfp.local`` run it."""
    name = "-".join(file.relative_to(checkout / EXAMPLES).with_suffix("").parts).replace("_", "-")
    told: Dict[str, Any] = {"file": str(file.relative_to(checkout / EXAMPLES))}
    answer = place / f"{name}.json"
    try:
        pipeline = compiled(file, place / f"{name}.yaml")
    except Exception as error:
        answer.write_text(json.dumps({**told, "compile": f"{type(error).__name__}: {error}"[:300]}))
        return
    tree = next(yaml.safe_load_all((place / f"{name}.yaml").read_text()))
    values, why = arguments(tree, place / f"{name}.given")
    told["arguments"] = values
    answer.write_text(json.dumps({**told, "local": why or "it does not end"}))
    if why:
        return
    here = place / "local" / name
    local.init(
        local.SubprocessRunner(use_venv=False),
        pipeline_root=str(here / "root"),
        workspace_root=str(here / "workspace"),
    )
    try:
        outputs = pipeline(**values).outputs
        told["outputs"] = {k: v for k, v in outputs.items() if not _is_artefact(v)}
    except Exception as error:
        told["local"] = f"{type(error).__name__}: {error}"[:300]
    answer.write_text(json.dumps(told))


def _is_artefact(value: Any) -> bool:
    return isinstance(value, dsl.Artifact) or (
        isinstance(value, list) and any(isinstance(one, dsl.Artifact) for one in value)
    )


def main(checkout: Path, place: Path, only: List[str]) -> None:
    """Do so for every example, two at a time."""
    files = [one for one in sorted((checkout / EXAMPLES).rglob("*.py")) if one.name[0] != "_"]
    if only:
        files = [one for one in files if one.stem in only]
    # What a component installs must leave the SDK as it is.
    (place / "constraints").write_text(f"kfp=={kfp.__version__}\n")
    pins = {"PYTHONPATH": str(checkout), "PIP_CONSTRAINT": str(place / "constraints")}
    env = {**os.environ, **pins}

    def start(file: Path) -> None:
        words = [sys.executable, "-W", "ignore", __file__, str(checkout), str(place), str(file)]
        with (place / "log").open("ab") as log:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(words, stdout=log, stderr=log, env=env, timeout=LONGEST, check=False)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(start, files))


if __name__ == "__main__":
    given = sys.argv[3:]
    if given and given[0].endswith(".py"):
        one_file(Path(sys.argv[1]), Path(sys.argv[2]), Path(given[0]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), given)
