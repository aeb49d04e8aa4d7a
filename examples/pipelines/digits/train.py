"""Two ranks train a classifier together; rank 0 leaves it as scikit-learn serves it."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import joblib
import numpy as np
import torch
import torch.distributed as dist
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import cross_entropy

from lockstep.pipelines.store import fetch, upload


def train(x: torch.Tensor, y: torch.Tensor, epochs: int) -> torch.nn.Linear:
    """Return a linear classifier; each rank works on its share of *x*, gradients are averaged."""
    torch.manual_seed(0)
    model = torch.nn.Linear(x.shape[1], 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[batch]), y[batch]).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
            optimizer.step()
    return model


def served(model: torch.nn.Linear) -> LogisticRegression:
    """Return the classifier as scikit-learn's."""
    found = LogisticRegression()
    found.classes_ = np.arange(10)
    found.coef_ = model.weight.detach().double().numpy()
    found.intercept_ = model.bias.detach().double().numpy()
    found.n_features_in_ = model.in_features
    return found


def main() -> None:
    """Train on the data at the first URI; leave the model at the second."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("model")
    parser.add_argument("--epochs", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "train.npz"
        fetch(given.data, file)
        with np.load(file) as read:
            count = len(read["y"]) // world * world
            x = torch.tensor(read["x"][rank:count:world], dtype=torch.float32)
            y = torch.tensor(read["y"][rank:count:world])
        model = train(x, y, given.epochs)
        if rank == 0:
            place = Path(scratch) / "model"
            place.mkdir()
            joblib.dump(served(model), place / "model.joblib")
            digest, size = upload(place, given.model)
            print(f"{size} bytes, {digest}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
