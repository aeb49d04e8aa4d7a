"""Make the message classes of the Open Inference Protocol from the .proto file beside this one.

Needs grpcio-tools. Run as ``python -m tools.protos.inference``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.protos.generate import shorten

HERE: Final = Path(__file__).parent
TARGET: Final = HERE.parents[1] / "src/lockstep/serve/wire"


def main() -> int:
    """Write the modules and return the exit status."""
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(HERE)]
    outputs = [f"--python_out={TARGET}", f"--pyi_out={TARGET}"]
    subprocess.run([*command, *outputs, "open_inference.proto"], cwd=HERE, check=True)
    shorten(TARGET / "open_inference_pb2.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
