"""The files of a dataset as samples: what a torch ``DataLoader`` reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Files:
    """Each file below *root* is a sample, in the order of their paths.

    Where torch wants a map-style dataset it takes this: an object with a length and items. *decode*
    makes a sample of a file's bytes; without it the bytes are the sample.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        path: str = "",
        *,
        suffix: str = "",
        decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        self.root, self.path, self.suffix = Path(root), path.strip("/"), suffix
        self._decode = decode
        self.names = sorted(self._walk())
        """Paths below the root; the place in this list is the sample's number."""

    def _walk(self) -> list[str]:
        start, found = self.root / self.path, []
        for directory, _, names in os.walk(start):
            base = Path(directory).relative_to(self.root).as_posix()
            inside = "" if base == "." else f"{base}/"
            found += [f"{inside}{name}" for name in names if name.endswith(self.suffix)]
        return found

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Any:
        data = (self.root / self.names[index]).read_bytes()
        return data if self._decode is None else self._decode(data)
