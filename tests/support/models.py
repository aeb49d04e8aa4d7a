"""Models that tests serve: of scikit-learn, ONNX and torch; a tiny one each."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

FLOWER = [5.1, 3.5, 1.4, 0.2]


def iris(place: Path) -> Path:
    """Write a model of iris flowers into *place* and return it."""
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    inputs, classes = load_iris(return_X_y=True)
    joblib.dump(LogisticRegression(max_iter=500).fit(inputs, classes), place / "model.joblib")
    return place


def doubling_torch(place: Path) -> Path:
    """Write TorchScript that doubles its input into *place* and return it."""
    import torch

    class Double(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2.0

    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    torch.jit.script(Double()).save(str(place / "model.pt"))
    return place


def adding_onnx(place: Path) -> Path:
    """Write an ONNX graph ``sum = left + right``, of rows of two floats, and return *place*."""
    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    (place / "model.onnx").write_bytes(_adding())
    return place


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _field(number: int, value: Any) -> bytes:
    """Return a field of a protobuf message: a number, or text, or another message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _tensor(name: str) -> bytes:
    rows, two = _field(1, _field(2, "rows")), _field(1, _field(1, 2))
    kind = _field(1, _field(1, 1) + _field(2, rows + two))
    return _field(1, name) + _field(2, kind)


def _adding() -> bytes:
    node = _field(1, "left") + _field(1, "right") + _field(2, "sum") + _field(4, "Add")
    graph = _field(1, node) + _field(2, "adding")
    graph += _field(11, _tensor("left")) + _field(11, _tensor("right")) + _field(12, _tensor("sum"))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))


def floats(values: list[float]) -> bytes:
    """Return *values* as a binary tensor of FP32."""
    return struct.pack(f"<{len(values)}f", *values)
