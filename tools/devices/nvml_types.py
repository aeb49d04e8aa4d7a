"""Writes down which types NVML's calls take, from NVIDIA's header ``nvml.h``.

The header is in the wheel ``nvidia-nvml-dev-cu12``. The table has the calls that ``devices`` makes
through nvidia-ml-py: ``python -m tools.devices.nvml_types nvml.h``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src/lockstep/devices"
TABLE: Final = SOURCES / "core/nvml_types.py"
_CALL: Final = re.compile(r"\b(nvml[A-Z]\w+)")
_SHORT: Final = re.compile(r"_call\(\s*\"(\w+)\"")
_DECLARED: Final = re.compile(r"\bDECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(([^)]*)\)\s*;")
_HANDLE: Final = re.compile(r"typedef\s+struct\s+\w+\s*\*\s*(\w+)\s*;|}\s*(nvml\w+_t)\s*;")
_ENUM: Final = re.compile(r"typedef\s+enum\s*\w*\s*{[^}]*}\s*(\w+)\s*;")
_ALIAS: Final = re.compile(r"typedef\s+(unsigned int|int|unsigned long long)\s+(\w+)\s*;")
_PLAIN: Final = {"unsigned int": "I", "int": "i", "unsigned long long": "L"}


def made() -> set[str]:
    """Return the names of the calls that ``devices`` makes, as nvidia-ml-py has them."""
    text = "".join(one.read_text() for one in SOURCES.glob("*.py"))
    short = {f"nvmlDeviceGet{one}" for one in _SHORT.findall(text)}
    return {*_CALL.findall(text), *short}


def reached(binding: str, names: set[str]) -> set[str]:
    """Return the C functions that the functions *names* of nvidia-ml-py call in the end."""
    bodies = {
        part.split("(", 1)[0]: part for part in re.split(r"^def ", binding, flags=re.MULTILINE)[1:]
    }
    found: set[str] = set()
    seen: set[str] = set()
    left = {*names, "nvmlErrorString"}
    while left:
        name = left.pop()
        seen.add(name)
        # What stands behind a definition up to the next one is no part of it.
        body = re.split(r"^\S", bodies.get(name, "\n").split("\n", 1)[1], flags=re.MULTILINE)[0]
        found |= set(re.findall(r"_nvmlGetFunctionPointer\(\"(\w+)\"\)", body))
        left |= (set(_CALL.findall(body)) & bodies.keys()) - seen
    return found


def declared(header: str) -> Iterator[tuple[str, str]]:
    """Yield each call of the header with a letter for each argument.

    ``p`` is a pointer or a handle, ``I`` an unsigned int or an enumeration, ``i`` an int, ``L`` an
    unsigned long long, ``?`` anything else.
    """
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.DOTALL)
    handles = {one for one, _ in _HANDLE.findall(text) if one}
    plain = _PLAIN | {name: _PLAIN[kind] for kind, name in _ALIAS.findall(text)}
    plain |= dict.fromkeys(_ENUM.findall(text), "I")
    for name, arguments in _DECLARED.findall(text):
        letters = ""
        for one in arguments.split(","):
            words = one.strip()
            kind = re.sub(r"\bconst\b|\b\w+$", "", words).strip()
            if words in ("", "void"):
                continue
            if "*" in words or "[" in words or kind in handles:
                letters += "p"
            elif kind in plain:
                letters += plain[kind]
            else:
                letters += "?"
        yield name, letters


def table(header: str, wanted: set[str]) -> str:
    """Return the text of the table: calls *wanted*, with the other versions of each.

    Raises:
        ValueError: when one of them takes a type that has no letter.
    """
    bases = {re.sub(r"_v\d+$", "", one) for one in wanted}
    kept = {
        name: letters
        for name, letters in sorted(declared(header))
        if re.sub(r"_v\d+$", "", name) in bases
    }
    if strange := [name for name, letters in kept.items() if "?" in letters]:
        raise ValueError(f"no letter stands for a type that these take: {', '.join(strange)}")
    lines = [f'    "{name}": "{letters}",\n' for name, letters in kept.items()]
    head = (
        '"""The types of NVML\'s calls; tools/devices/nvml_types.py writes this file."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping\n"
        "from typing import Final\n\n"
        "TYPES: Final[Mapping[str, str]] = {\n"
    )
    return (
        f"{head}{''.join(lines)}}}\n"
        '"""By call a letter for each argument: p pointer or handle, I unsigned int, i int,\n'
        'L unsigned long long."""\n'
    )


def main() -> None:
    """Write the table from the header that is named."""
    import pynvml

    binding = Path(pynvml.__file__).read_text()
    TABLE.write_text(table(Path(sys.argv[1]).read_text(), reached(binding, made())))


if __name__ == "__main__":
    main()
