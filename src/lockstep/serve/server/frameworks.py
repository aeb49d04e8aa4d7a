"""Models of each framework: loading, and predicting for a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

SUFFIXES: Final = {
    "sklearn": (".joblib", ".pkl", ".pickle"),
    "onnx": (".onnx",),
    "pytorch": (".pt2", ".pt", ".ts"),
}
FRAMEWORKS: Final = tuple(SUFFIXES)


class LoadError(Exception):
    """A model cannot be loaded; the message says which file and why."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its name, its type in the protocol's words, its shape (-1: any)."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can predict."""

    name: str
    framework: str
    predict: Callable[[Mapping[str, Array]], Mapping[str, Array]]
    """From a batch of each input (rows first) to one of each output, in their order."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    batches: bool = True
    """Whether rows of several requests may be joined."""


def load(framework: str, name: str, directory: str) -> Model:
    """Return the model in *directory*, the only file of its framework's kind there.

    Raises:
        LoadError: when there is none, more than one, or it cannot be read.
    """
    suffixes = SUFFIXES[framework]
    place = Path(directory)
    try:
        found = sorted(one for one in place.rglob("*") if one.suffix in suffixes and one.is_file())
    except OSError as error:
        raise LoadError(f"{directory}: {error.strerror}") from error
    if len(found) != 1:
        there = ", ".join(str(one.relative_to(place)) for one in found) or "none"
        raise LoadError(
            f"{directory}: one file in {', '.join(suffixes)} is needed; there are: {there}"
        )
    return _LOADERS[framework](name, found[0])


def find(directory: str) -> str:
    """Return the framework of the model in *directory*, by its file's suffix.

    Raises:
        LoadError: when there is no model, or models of several frameworks.
    """
    names = [one.suffix for one in Path(directory).rglob("*") if one.is_file()]
    found = [name for name, suffixes in SUFFIXES.items() if set(suffixes) & set(names)]
    if len(found) != 1:
        known = ", ".join(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
        raise LoadError(f"{directory}: one model is needed, a file in {known}")
    return found[0]


def _sklearn(name: str, file: Path) -> Model:
    # A scikit-learn model is a pickle: users who may create the service may run code in its pod.
    import joblib

    try:
        loaded = joblib.load(file)
    except Exception as error:
        raise LoadError(f"{file.name} is no scikit-learn model: {error}") from error
    if not hasattr(loaded, "predict"):
        raise LoadError(f"{file.name} holds a {type(loaded).__name__}, which cannot predict")
    width = getattr(loaded, "n_features_in_", None)

    def predict(given: Mapping[str, Array]) -> Mapping[str, Array]:
        (rows,) = given.values()
        return {"output-0": np.asarray(loaded.predict(rows))}

    inputs = (Port("input-0", "FP64", (-1, -1 if width is None else int(width))),)
    return Model(name, "sklearn", predict, inputs, (Port("output-0", "INT64", (-1,)),))


_ONNX_TYPES: Final = {
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(float16)": "FP16",
    "tensor(bool)": "BOOL",
    "tensor(string)": "BYTES",
    **{f"tensor(int{bits})": f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{f"tensor(uint{bits})": f"UINT{bits}" for bits in (8, 16, 32, 64)},
}


def _onnx(name: str, file: Path) -> Model:
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(file))
    except Exception as error:
        raise LoadError(f"{file.name} is no ONNX model: {error}") from error

    def ports(given: Any) -> tuple[Port, ...]:
        return tuple(
            Port(
                one.name,
                _ONNX_TYPES.get(one.type, "BYTES"),
                tuple(size if isinstance(size, int) else -1 for size in one.shape),
            )
            for one in given
        )

    inputs, outputs = ports(session.get_inputs()), ports(session.get_outputs())
    names = [one.name for one in outputs]

    def predict(given: Mapping[str, Array]) -> Mapping[str, Array]:
        found = session.run(names, dict(given))
        return dict(zip(names, map(np.asarray, found), strict=True))

    free = all(one.shape and one.shape[0] == -1 for one in (*inputs, *outputs))
    return Model(name, "onnx", predict, inputs, outputs, batches=free)


def _torch(name: str, file: Path) -> Model:
    from lockstep.serve.server.torch_model import load_torch

    try:
        predict, count = load_torch(file)
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        what = "is neither TorchScript nor an exported program"
        raise LoadError(f"{file.name} {what}: {first}") from error
    inputs = tuple(Port(f"input-{number}", "FP32", (-1, -1)) for number in range(count))
    return Model(name, "pytorch", predict, inputs, (Port("output-0", "FP32", (-1, -1)),))


_LOADERS: Final = {"sklearn": _sklearn, "onnx": _onnx, "pytorch": _torch}
