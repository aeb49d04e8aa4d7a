import functools

from kfp import compiler, dsl
from kfp.dsl import Artifact, Output

component = functools.partial(dsl.component, base_image="python:3.11", install_kfp_package=False)


@component
def flip(side: str) -> str:
    return side


@component
def square(number: int) -> int:
    return number * number


@component
def add(numbers: list) -> int:
    return sum(numbers)


@component
def say(text: str, note: str = "none") -> str:
    return f"{text}/{note}"


@component
def fail_at_first(times: int, place: str) -> str:
    import pathlib

    count = pathlib.Path(place) / "tries"
    tries = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(tries))
    if tries <= times:
        raise RuntimeError("not yet")
    return "done"


@dsl.container_component
def shout(text: str, said: dsl.OutputPath(str), loud: Output[Artifact]):
    return dsl.ContainerSpec(
        image="python:3.11",
        command=["sh", "-c"],
        args=[
            'printf "%s" "$0" | tr a-z A-Z > "$1"; mkdir -p "$(dirname "$2")"; cp "$1" "$2"',
            text,
            said,
            loud.path,
        ],
    )


@dsl.pipeline
def inner(number: int) -> int:
    return square(number=square(number=number).output).output


@dsl.pipeline(name="shapes")
def shapes(place: str, side: str = "heads", numbers: list = [1, 2, 3]) -> str:
    coin = flip(side=side)
    with dsl.If(coin.output == "heads"):
        heads = say(text="won")
    with dsl.Elif(coin.output == "edge"):
        edge = say(text="edge")
    with dsl.Else():
        tails = say(text="lost", note="sorry")
    chosen = dsl.OneOf(heads.output, edge.output, tails.output)
    with dsl.ParallelFor(items=numbers, parallelism=2) as number:
        each = square(number=number)
    total = add(numbers=dsl.Collected(each.output))
    deep = inner(number=2)
    tried = fail_at_first(times=2, place=place).set_retry(num_retries=2).set_caching_options(False)
    with dsl.ParallelFor([{"a": "x", "b": "y"}]) as pair:
        say(text=pair.a, note=pair.b)
    add(numbers=[1, 2]).after(total, deep, tried)
    return shout(text=chosen).outputs["said"]


compiler.Compiler().compile(shapes, "shapes.yaml")
