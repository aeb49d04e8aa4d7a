"""Make the message classes of kubelet's gRPC interfaces from its module's .proto files.

Needs Go (for the module) and grpcio-tools. Run as ``python -m tools.protos.generate``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
MODULE: Final = HERE.parent / "kube/kubernetes"
TARGET: Final = HERE.parents[1] / "src/lockstep/devices/kubelet/wire"
SOURCES: Final = {
    "deviceplugin": "pkg/apis/deviceplugin/v1beta1/api.proto",
    "dra": "pkg/apis/dra/v1/api.proto",
    "pluginregistration": "pkg/apis/pluginregistration/v1/api.proto",
    "podresources": "pkg/apis/podresources/v1/api.proto",
}


def main() -> int:
    """Write the modules and return the exit status."""
    told = subprocess.run(
        ["go", "mod", "download", "-json", "k8s.io/kubelet"],
        cwd=MODULE,
        capture_output=True,
        text=True,
        check=True,
    )
    module = Path(json.loads(told.stdout)["Dir"])
    with tempfile.TemporaryDirectory() as scratch:
        for name, source in SOURCES.items():
            (Path(scratch) / f"{name}.proto").write_bytes((module / source).read_bytes())
        names = [f"{name}.proto" for name in SOURCES]
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I", scratch]
        outputs = [f"--python_out={TARGET}", f"--pyi_out={TARGET}"]
        subprocess.run([*command, *outputs, *names], cwd=scratch, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
