"""Everyday shapes of pipelines: loops in loops, conditions in loops, nested pipelines."""

import functools
import json
import sys
from pathlib import Path
from typing import List, NamedTuple

from kfp import compiler, dsl, local

component = functools.partial(dsl.component, base_image="python:3.11", install_kfp_package=False)


@component
def add(a: int, b: int) -> int:
    return a + b


@component
def total(values: List[int]) -> int:
    return sum(values)


@component
def flat_total(values: List[List[int]]) -> int:
    return sum(sum(v) for v in values)


@component
def word(text: str) -> str:
    return text


@component
def items() -> List[List[int]]:
    return [[1, 2], [3]]


@component
def dicts() -> List[dict]:
    return [{"a": 1, "b": [4, 5]}, {"a": 2, "b": [6]}]


@component
def write(n: int, out: dsl.Output[dsl.Dataset]):
    with open(out.path, "w") as file:
        file.write(str(n))


@component
def read_all(found: dsl.Input[List[dsl.Dataset]]) -> int:
    return sum(int(open(o.path).read()) for o in found)


@dsl.pipeline
def loop_in_loop() -> int:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor([10, 20]) as y:
            add(a=x, b=y)
    return add(a=1, b=1).output


@dsl.pipeline
def collected_lists() -> int:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor([10, 20]) as y:
            s = add(a=x, b=y)
    return flat_total(values=dsl.Collected(s.output)).output


@dsl.pipeline
def if_in_loop() -> str:
    with dsl.ParallelFor([1, 2, 3]) as x:
        with dsl.If(x == 2):
            add(a=x, b=x)
        with dsl.Else():
            word(text="other")
    return word(text="end").output


@dsl.pipeline
def items_of_items() -> str:
    made = items()
    with dsl.ParallelFor(made.output) as x:
        with dsl.ParallelFor(x) as y:
            add(a=y, b=1)
    return word(text="end").output


@dsl.pipeline
def dict_items() -> str:
    made = dicts()
    with dsl.ParallelFor(made.output) as x:
        add(a=x.a, b=1)
        with dsl.ParallelFor(x.b) as y:
            add(a=y, b=x.a)
    return word(text="end").output


@dsl.pipeline
def artifacts_in_loop() -> int:
    with dsl.ParallelFor([1, 2, 3], parallelism=2) as x:
        w = write(n=x)
    return read_all(found=dsl.Collected(w.outputs["out"])).output


@dsl.pipeline
def inner(n: int) -> int:
    return add(a=n, b=1).output


@dsl.pipeline
def nested() -> int:
    i = inner(n=5)
    j = inner(n=i.output)
    return add(a=i.output, b=j.output).output


@dsl.pipeline
def nested_in_loop() -> int:
    with dsl.ParallelFor([1, 2, 3]) as x:
        i = inner(n=x)
    return total(values=dsl.Collected(i.output)).output


@dsl.pipeline
def oneof_in_loop() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.If(x == 1):
            a = word(text="one")
        with dsl.Else():
            b = word(text="two")
        word(text=dsl.OneOf(a.output, b.output))
    return word(text="end").output


@dsl.pipeline
def if_then_loop(n: int = 3) -> str:
    k = add(a=n, b=0)
    with dsl.If(k.output > 2):
        with dsl.ParallelFor([1, 2]) as x:
            with dsl.If(x == 1):
                add(a=x, b=k.output)
    return word(text="end").output


@dsl.pipeline
def after_loop() -> str:
    a = word(text="a")
    with dsl.ParallelFor([1, 2]) as x:
        add(a=x, b=1).after(a)
    return word(text="end").output


@dsl.pipeline
def handler() -> str:
    end = word(text="bye")
    with dsl.ExitHandler(end):
        with dsl.ParallelFor([1, 2]) as x:
            add(a=x, b=1)
    return word(text="end").output


@dsl.pipeline
def three_deep() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor([3, 4]) as y:
            with dsl.ParallelFor([5]) as z:
                with dsl.If(y == 3):
                    add(a=x, b=z)
    return word(text="end").output


@component
def lst() -> List[str]:
    return ["a", "b"]


@component
def two(text: str) -> NamedTuple("Two", [("x", str), ("y", int)]):
    return (text, 1)


@component
def joined(texts: List[List[str]]) -> str:
    return " ".join(one for part in texts for one in part)


@dsl.pipeline
def fstring() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor(["p", "q"]) as y:
            w = word(text=f"{x}/{y}")
    return joined(texts=dsl.Collected(w.output)).output


@dsl.pipeline
def literal_dicts() -> str:
    with dsl.ParallelFor([{"a": 1, "b": 2}, {"a": 3, "b": 4}]) as x:
        with dsl.ParallelFor([{"c": 5}]) as y:
            add(a=y.c, b=y.c)
        with dsl.If(x.b == 2):
            word(text=f"{x.a}-{x.b}")
    return word(text="end").output


@dsl.pipeline
def cond_both() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor([1, 2]) as y:
            with dsl.If(x == y):
                word(text=f"same {x}")
            with dsl.Elif(y == 2):
                word(text="two")
            with dsl.Else():
                add(a=x, b=y)
    return word(text="end").output


@dsl.pipeline
def cond_text() -> str:
    with dsl.ParallelFor(["x", "y"]) as x:
        with dsl.If(x == "x"):
            word(text=x)
        s = word(text=x)
        with dsl.If(s.output == "y"):
            word(text=f"{x}{s.output}")
    return word(text="end").output


@dsl.pipeline
def cond_only() -> str:
    with dsl.ParallelFor([1, 2, 3]) as x:
        with dsl.If(x > 1):
            word(text="no use of item")
    return word(text="end").output


@dsl.pipeline
def inner_only() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor([3, 4]) as y:
            word(text="no use")
    return word(text="end").output


@dsl.pipeline
def inner_uses_inner() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.ParallelFor([3, 4]) as y:
            add(a=y, b=y)
    return word(text="end").output


@dsl.pipeline
def params(items: List[int] = [1, 2], others: List[str] = ["a", "b"], n: int = 1) -> str:
    with dsl.ParallelFor(items) as x:
        with dsl.ParallelFor(others) as y:
            word(text=f"{x}{y}{n}")
            with dsl.If(n == 1):
                word(text=y)
        with dsl.If(x == 1):
            with dsl.ParallelFor(others) as z:
                word(text=f"{x}{z}")
    return word(text="end").output


@dsl.pipeline
def cached_twice() -> str:
    made = lst()
    with dsl.ParallelFor(made.output) as x:
        w = two(text=x)
        with dsl.If(w.outputs["x"] == "a"):
            with dsl.ParallelFor(made.output) as y:
                word(text=f"{x}{y}{w.outputs['x']}")
    return word(text="end").output


@dsl.pipeline
def sub(items: List[int], n: int) -> int:
    with dsl.ParallelFor(items) as x:
        with dsl.If(x == n):
            a = add(a=x, b=n)
    return add(a=n, b=n).output


@dsl.pipeline
def sub_in_loop() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        s = sub(items=[1, 2], n=x)
        with dsl.If(s.output > 2):
            word(text="big")
    return word(text="end").output


@dsl.pipeline
def handler_in_loop() -> str:
    with dsl.ParallelFor([1, 2]) as x:
        with dsl.If(x == 1):
            with dsl.If(x < 5):
                word(text=f"{x}")
    return word(text="end").output


@dsl.pipeline
def static_group() -> str:
    with dsl.ParallelFor(name="outer", items=[1, 2], parallelism=1) as x:
        with dsl.ParallelFor(name="inner", items=[1, 2], parallelism=1) as y:
            with dsl.If(y == 1, name="cond"):
                word(text=f"{x}{y}")
    return word(text="end").output


PIPELINES = [one for one in list(globals().values()) if type(one).__name__ == "GraphComponent"]
NEEDS = {"inner": {"n": 5}, "sub": {"n": 2, "items": [1, 2]}}


LOCAL = {
    "loop-in-loop",
    "if-in-loop",
    "artifacts-in-loop",
    "inner",
    "nested",
    "oneof-in-loop",
    "if-then-loop",
    "after-loop",
    "handler",
    "three-deep",
}
"""Those that ``kfp.local`` runs; the others fail or hang there, and ``ENDS`` says their ends."""
ENDS = {"collected-lists": 66, "nested-in-loop": 9, "sub": 4, "fstring": "1/p 1/q 2/p 2/q"}


def main(place: Path) -> None:
    """Compile each pipeline below *place*, and write what ``kfp.local`` makes of each."""
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(place / "local"))
    ends = {}
    for one in PIPELINES:
        compiler.Compiler().compile(one, str(place / f"{one.name}.yaml"))
        if one.name in LOCAL:
            ends[one.name] = dict(one(**NEEDS.get(one.name, {})).outputs)
        else:
            ends[one.name] = {"Output": ENDS.get(one.name, "end")}
    told = {"ends": ends, "needs": NEEDS}
    (place / "ends.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
