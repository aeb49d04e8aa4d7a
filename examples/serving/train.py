"""Train a classifier of iris flowers and save it where examples/serving/iris.yaml looks for it."""

import sys
from pathlib import Path

import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

place = Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/iris")  # noqa: S108 - an example
place.mkdir(parents=True, exist_ok=True)
inputs, classes = load_iris(return_X_y=True)
joblib.dump(LogisticRegression(max_iter=500).fit(inputs, classes), place / "model.joblib")
print(f"saved {place / 'model.joblib'}")
