"""Models of torch: TorchScript and exported programs; nothing of them is unpickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
Predict = Callable[[Mapping[str, Array]], Mapping[str, Array]]


def load_torch(file: Path) -> tuple[Predict, int]:
    """Return what predicts with the model in *file*, and how many inputs it takes.

    Raises:
        Exception: what torch raises for a file that is no such model.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    module: Any
    if file.suffix == ".pt2":
        program = torch.export.load(str(file))
        count = len(program.graph_signature.user_inputs)
        module = program.module().to(device)
    else:
        module = torch.jit.load(str(file), map_location=device)
        module.eval()
        count = max(1, len(module.forward.schema.arguments) - 1)

    def predict(given: Mapping[str, Array]) -> Mapping[str, Array]:
        with torch.inference_mode():
            # A copy: what came off the wire cannot be written to, which torch warns of.
            tensors = [torch.from_numpy(np.array(one)).to(device) for one in given.values()]
            found = module(*tensors)
        if isinstance(found, dict):
            named = {str(name): value for name, value in found.items()}
        else:
            several = found if isinstance(found, tuple | list) else (found,)
            named = {f"output-{number}": value for number, value in enumerate(several)}
        return {name: value.cpu().numpy() for name, value in named.items()}

    return predict, count
