"""Record what Kubernetes' own code says of objects, for the tests to compare our answers with.

``python tools/schemas/record.py [NEW.jsonl]`` asks again about every object on record, and about
those in a file with one JSON object a line. It needs a Go toolchain, which builds the program in
``answers/`` (half a minute). Where our answer differs, the record says so and the difference is
printed; the tests hold us to the others.
"""

from __future__ import annotations

import copy
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.schema import Schema

Json = dict[str, Any]

HERE = Path(__file__).parent
RECORD = HERE.parents[1] / "tests" / "unit" / "apiserver" / "recorded" / "answers.json.gz"
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTINS}


def main(arguments: list[str]) -> int:
    """Ask, compare, write, and say how often we agree."""
    objects = [case["given"] for case in read()]
    for name in arguments:
        objects += [json.loads(line) for line in Path(name).read_text().splitlines() if line]
    distinct = list({json.dumps(obj, sort_keys=True): obj for obj in objects}.values())
    cases = [
        {"given": given, "answer": answer, "agrees": ours(given) == answer}
        for given, answer in zip(distinct, ask(distinct), strict=True)
    ]
    for case in cases:
        if not case["agrees"]:
            real, own = json.dumps(case["answer"]), json.dumps(ours(case["given"]))
            sys.stdout.write(f"{json.dumps(case['given'])}\n  real {real}\n  ours {own}\n")
    plain = json.dumps(cases, separators=(",", ":"), sort_keys=True)
    RECORD.write_bytes(gzip.compress(plain.encode(), compresslevel=9, mtime=0))
    sys.stdout.write(f"{sum(case['agrees'] for case in cases)} of {len(cases)} agree\n")
    return 0


def read() -> list[Json]:
    """Return the cases on record."""
    if not RECORD.exists():
        return []
    cases: list[Json] = json.loads(gzip.decompress(RECORD.read_bytes()))
    return cases


def ask(objects: list[Json]) -> list[Json]:
    """Return what Kubernetes' code says of *objects*.

    Raises:
        subprocess.CalledProcessError: when the program cannot be built or fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "answers"
        build = ["go", "build", "-o", str(program), "."]
        subprocess.run(build, cwd=HERE / "answers", check=True)
        lines = "".join(f"{json.dumps(obj)}\n" for obj in objects)
        shown = subprocess.run([program], input=lines, check=True, capture_output=True, text=True)
    return [comparable(json.loads(line)) for line in shown.stdout.splitlines()]


def ours(given: Json) -> Json:
    """Return what we say of the object *given*."""
    obj = copy.deepcopy(given)
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    schema = Schema.builtin(kind.schema_name)
    if error := schema.decoding_error(obj):
        return {"error": error}
    schema.prune(obj)
    kind.prepare(obj, None)
    errors = [str(cause) for cause in kind.validate(obj, None)]
    return comparable({"object": obj, "errors": errors})


def comparable(answer: Json) -> Json:
    """Return *answer* without what has no order, or is another part's to fill in."""
    if "error" in answer:
        return {"error": answer["error"]}
    if answer["errors"]:
        # What is refused is never stored, in whatever form.
        return {"errors": sorted(answer["errors"])}
    obj = {name: part for name, part in answer["object"].items() if name != "status"}
    return {"object": obj}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
