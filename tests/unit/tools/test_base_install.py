"""The parts that `lockstep up` runs need no extra: the base install has what they import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lockstep.cli.main import ENTRIES

EXTRAS = (
    *("asyncssh", "cloudpickle", "duckdb", "fsspec", "google.protobuf", "grpc", "ipykernel"),
    *("jupyter_client", "obstore", "onnxruntime", "pynvml", "pyroute2", "sklearn", "torch"),
)
ALONE = """
import importlib, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in {extras!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
importlib.import_module({module!r})
"""
PARTS = (
    *("apiserver.main", "scheduler.main", "controllers.main", "notebooks.gateway.main"),
    *("serve.router.main", "console.main", "nodes.process.main", "nodes.simulated.main"),
    *("sdk", *(f"cli.{one}" for one in sorted({entry.module for entry in ENTRIES}))),
)


@pytest.mark.parametrize("module", PARTS)
def test_a_part_imports_without_any_extra(module: str) -> None:
    code = ALONE.format(extras=EXTRAS, module=f"lockstep.{module}")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
