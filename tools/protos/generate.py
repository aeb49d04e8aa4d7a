"""Make the message classes of kubelet's gRPC interfaces from their modules' .proto files.

Needs Go (for the module) and grpcio-tools. Run as ``python -m tools.protos.generate``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
MODULE: Final = HERE.parent / "kube/kubernetes"
TARGET: Final = HERE.parents[1] / "src/lockstep/devices/kubelet/wire"
SOURCES: Final = {
    "deviceplugin": "pkg/apis/deviceplugin/v1beta1/api.proto",
    "dra": "pkg/apis/dra/v1/api.proto",
    "drahealth": "pkg/apis/dra-health/v1alpha1/api.proto",
    "pluginregistration": "pkg/apis/pluginregistration/v1/api.proto",
    "podresources": "pkg/apis/podresources/v1/api.proto",
}


CSI: Final = "github.com/container-storage-interface/spec"
CSI_TARGET: Final = HERE.parents[1] / "src/lockstep/data/csi/wire"
CSI_SERVED: Final = (
    *("GetPluginInfo", "GetPluginCapabilities", "Probe"),
    *("NodeGetInfo", "NodeGetCapabilities", "NodePublishVolume", "NodeUnpublishVolume"),
)
"""The calls of CSI that a node's plugin without staging answers."""
_HEAD: Final = """syntax = "proto3";
package csi.v1;
import "google/protobuf/wrappers.proto";
"""


def served(text: str, calls: Sequence[str]) -> str:
    """Return of the .proto file *text* the messages of *calls*, with those that they hold."""
    plain = re.sub(r"\[\(\w+\) = true\]", "", re.sub(r"//[^\n]*", "", text))
    found = {
        one.group(1): one.group(0)
        for one in re.finditer(r"^message (\w+) \{.*?^\}", plain, re.M | re.S)
    }
    wanted, queue = (
        dict[str, str](),
        [f"{one}{end}" for one in calls for end in ("Request", "Response")],
    )
    while queue:
        name = queue.pop()
        if name in wanted:
            continue
        wanted[name] = found[name]
        queue += [one for one in re.findall(r"\b[A-Z]\w+\b", found[name]) if one in found]
    return _HEAD + "\n".join(wanted[name] for name in sorted(wanted)) + "\n"


def shorten(module: Path) -> None:
    """Take the table of offsets out of a generated module: its descriptors are read without it."""
    text = module.read_text()
    table = r"^if not _descriptor._USE_C_DESCRIPTORS:\n(?:  .*\n)+"
    module.write_text(re.sub(table, "", text, count=1, flags=re.M))


def _module(name: str) -> Path:
    command = ["go", "mod", "download", "-json", name]
    told = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, check=True)
    return Path(json.loads(told.stdout)["Dir"])


def _compile(scratch: Path, target: Path, names: Sequence[str]) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(scratch)]
    outputs = [f"--python_out={target}", f"--pyi_out={target}"]
    files = [f"{name}.proto" for name in names]
    subprocess.run([*command, *outputs, *files], cwd=scratch, check=True)
    for name in names:
        shorten(target / f"{name}_pb2.py")


def main() -> int:
    """Write the modules and return the exit status."""
    kubelet, csi = _module("k8s.io/kubelet"), _module(CSI)
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        for name, source in SOURCES.items():
            (scratch / f"{name}.proto").write_bytes((kubelet / source).read_bytes())
        (scratch / "csi.proto").write_text(served((csi / "csi.proto").read_text(), CSI_SERVED))
        _compile(scratch, TARGET, tuple(SOURCES))
        _compile(scratch, CSI_TARGET, ("csi",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
