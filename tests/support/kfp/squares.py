from kfp import compiler, dsl
from kfp.dsl import Dataset, Input, Output


@dsl.component
def make(rows: int, data: Output[Dataset]) -> int:
    with open(data.path, "w") as file:
        file.write("\n".join(str(one * one) for one in range(rows)))
    data.metadata["rows"] = rows
    return rows


@dsl.component
def total(data: Input[Dataset], rows: int) -> int:
    with open(data.path) as file:
        found = [int(line) for line in file]
    assert len(found) == rows
    return sum(found)


@dsl.pipeline(name="squares")
def squares(rows: int = 5) -> int:
    made = make(rows=rows)
    return total(data=made.outputs["data"], rows=made.outputs["Output"]).output


compiler.Compiler().compile(squares, "squares.yaml")
