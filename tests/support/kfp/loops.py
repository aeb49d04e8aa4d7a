import functools
from typing import List

from kfp import compiler, dsl

component = functools.partial(dsl.component, base_image="python:3.11", install_kfp_package=False)


@component
def word(text: str) -> str:
    return text


@component
def listed() -> List[str]:
    return ["a", "b"]


@dsl.pipeline(name="loops")
def loops() -> str:
    made = listed()
    with dsl.ParallelFor([{"a": "p", "b": 1}, {"a": "q", "b": 2}]) as x:
        with dsl.ParallelFor(made.output) as y:
            first = word(text=f"{x.a}/{y}")
            with dsl.If(y == "b"):
                word(text=f"{x.a}+{y}+{first.output}")
    with dsl.ParallelFor([1, 2]) as z:
        with dsl.If(z == 2):
            with dsl.ParallelFor(made.output) as u:
                word(text=f"{z}{u}")
    return word(text="end").output


compiler.Compiler().compile(loops, "loops.yaml")
