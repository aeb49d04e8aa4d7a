"""Record what Kubernetes' own code says of objects, for the tests to compare our answers with.

``python tools/schemas/record.py builtin|custom [NEW.jsonl]`` asks again about everything on record,
and about what is in a file with one question a line: an object of a built-in kind, or a custom
resource as ``{crd, object, old}``. It needs a Go toolchain, which builds the programs in
``answers/`` (a minute). Where our answer differs, the record says so and the difference is printed;
the tests hold us to the others.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.recorded_answers import COMPARABLE, OURS  # noqa: E402 - found next to the tests, which use it too


def main(arguments: list[str]) -> int:
    """Ask, compare, write, and say how often we agree."""
    sort, *files = arguments
    record = ROOT / "tests" / "unit" / "apiserver" / "recorded" / f"{sort}.json.gz"
    given = [case["given"] for case in read(record)]
    for name in files:
        given += [json.loads(line) for line in Path(name).read_text().splitlines() if line]
    distinct = list({json.dumps(each, sort_keys=True): each for each in given}.values())
    cases = []
    for each, answer in zip(distinct, ask(sort, distinct), strict=True):
        own = OURS[sort](each)
        cases.append({"given": each, "answer": answer, "agrees": own == answer})
        if own != answer:
            shown = (json.dumps(part) for part in (each, answer, own))
            sys.stdout.write("{}\n  real {}\n  ours {}\n".format(*shown))
    plain = json.dumps(cases, separators=(",", ":"), sort_keys=True)
    record.write_bytes(gzip.compress(plain.encode(), compresslevel=9, mtime=0))
    sys.stdout.write(f"{sum(case['agrees'] for case in cases)} of {len(cases)} agree\n")
    return 0


def read(record: Path) -> list[Json]:
    """Return the cases on record."""
    if not record.exists():
        return []
    cases: list[Json] = json.loads(gzip.decompress(record.read_bytes()))
    return cases


def ask(sort: str, questions: list[Json]) -> list[Json]:
    """Return what Kubernetes' code says to *questions*.

    Raises:
        subprocess.CalledProcessError: when the program cannot be built or fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / sort
        build = ["go", "build", "-o", str(program), f"./{sort}"]
        subprocess.run(build, cwd=HERE / "answers", check=True)
        lines = "".join(f"{json.dumps(each)}\n" for each in questions)
        shown = subprocess.run([program], input=lines, check=True, capture_output=True, text=True)
    return [COMPARABLE[sort](json.loads(line)) for line in shown.stdout.splitlines()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
