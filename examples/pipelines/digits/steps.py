"""The steps of the pipeline that are no training: data, evaluate, analyse."""

from __future__ import annotations

import hashlib
import json
import sys
import urllib.request
from pathlib import Path

import joblib
import numpy as np

LEAST = 0.8
"""Share of right answers under which a canary is worse than none."""


def data(place: Path) -> None:
    """Write the images and labels of handwritten digits, a fifth of them for the test."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x / 16, y, test_size=0.2, random_state=0, stratify=y)
    np.savez(place / "train.npz", x=parts[0], y=parts[2])
    np.savez(place / "test.npz", x=parts[1], y=parts[3])


def evaluate(test: Path, model: Path, results: Path) -> None:
    """Write the share of digits that *model* knows, and the digest of its file."""
    file = model / "model.joblib"
    found = joblib.load(file)
    with np.load(test) as held_back:
        accuracy = float((found.predict(held_back["x"]) == held_back["y"]).mean())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (results / "accuracy").write_text(json.dumps(accuracy))
    (results / "digest").write_text(f"sha256:{digest}")
    print(f"accuracy {accuracy:.4f}")


def analyse(test: Path, url: str) -> None:
    """Ask the service about digits it has not seen; fail when it answers badly."""
    with np.load(test) as held_back:
        x, y = held_back["x"][:100], held_back["y"][:100]
    right = 0
    for start in range(0, len(x), 10):
        body = json.dumps({"instances": x[start : start + 10].tolist()}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            said = json.load(answer)["predictions"]
        right += int((np.array(said) == y[start : start + 10]).sum())
    share = right / len(x)
    print(f"{share:.2f} of the answers are right")
    if share < LEAST:
        sys.exit(f"worse than {LEAST}")


if __name__ == "__main__":
    step, *given = sys.argv[1:]
    if step == "data":
        data(Path(given[0]))
    elif step == "evaluate":
        evaluate(*(Path(one) for one in given))
    elif step == "analyse":
        analyse(Path(given[0]), given[1])
    else:
        sys.exit(f"{step}: there is no such step")
