"""Models of each framework: loading, and predicting for a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

SUFFIXES: Final = {"sklearn": (".joblib", ".pkl", ".pickle")}
FRAMEWORKS: Final = tuple(SUFFIXES)


class LoadError(Exception):
    """A model cannot be loaded; the message says which file and why."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can predict."""

    name: str
    framework: str
    predict: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    """From a batch (rows first) to an answer for each row, in their order."""
    features: int | None = None
    """Numbers in each row, where the model says."""


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
    return _sklearn(name, found[0])


def _sklearn(name: str, file: Path) -> Model:
    # A scikit-learn model is a pickle: whoever may create the service may run code in its pod.
    import joblib

    try:
        loaded = joblib.load(file)
    except Exception as error:
        raise LoadError(f"{file.name} is no scikit-learn model: {error}") from error
    if not hasattr(loaded, "predict"):
        raise LoadError(f"{file.name} holds a {type(loaded).__name__}, which cannot predict")
    features = getattr(loaded, "n_features_in_", None)
    return Model(name, "sklearn", loaded.predict, features)
