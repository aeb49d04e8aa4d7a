"""The Python of a documentation page as a module, so that tests run what the page shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def module_of(page: str, name: str) -> ModuleType:
    """Return the first block of Python on *page* as the module *name*."""
    text = (DOCS / page).read_text()
    block = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert block is not None, f"{page} shows no Python"
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(block[1], str(DOCS / page), "exec"), vars(module))  # noqa: S102  our own page
    return module
