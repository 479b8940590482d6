"""The algorithms of one call of `run`: one template, and the numbers in which they differ."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.floats import change_unchecked, differing_floats, fill, floats
from fedlib.core.problem import Problem
from fedlib.core.sampling import seeded
from fedlib.engine.schedules import Schedules


class Grid:
    """Algorithms that differ in float parameters: a template, and their numbers `[G]` by name.

    The numbers have the dtype of the problem's model. `drawing` holds the points whose draws are
    made: the template for all of them, or every point if their draws differ.

    Raises ValueError if two algorithms differ in more than floats, or if a schedule changes a field
    on which the draws depend.
    """

    def __init__(
        self,
        points: Sequence[Algorithm],
        problem: Problem,
        device: torch.device,
        rules: Mapping[str, Callable[[int], float]],
    ) -> None:
        self.points = list(points)
        self.template = self.points[0]
        check_alike(self.points)
        self.numbers: dict[str, Float[Tensor, "G"]] = {}
        differing = differing_floats([floats(point) for point in self.points])
        for name, values in differing.items():
            self.numbers[name] = problem.w0.new_tensor(values).to(device)
        self.drawing = [self.template]
        if differing and not draws_alike(self.template, list(differing), problem):
            self.drawing = self.points
        self.schedules = Schedules(rules, self.points)
        for name, scheduled in self.schedules.tensors(problem.w0).items():
            alike = draws_alike(self.template, [name], problem)
            rule = "change a field that the method's draw does not read"
            checks.require(alike, "run", "schedules", rule, name)
            self.numbers[name] = scheduled.to(device)

    def __len__(self) -> int:
        """G, the number of points."""
        return len(self.points)


def check_alike(algorithms: Sequence[Algorithm]) -> None:
    """Raise ValueError if two algorithms differ in more than floats."""
    template = algorithms[0]
    numbers = floats(template)
    for algorithm in algorithms:
        is_alike = type(algorithm) is type(template) and floats(algorithm).keys() == numbers.keys()
        if not is_alike or fill(algorithm, numbers) != template:
            raise ValueError(
                checks.sentence(
                    "run",
                    "the algorithms of one grid",
                    "differ in float parameters only",
                    describe_difference(template, algorithm),
                    "run them one by one",
                )
            )


def describe_difference(a: Algorithm, b: Algorithm) -> str:
    """A text on how two algorithms differ beyond floats: in their types, or in a first field."""
    if type(a) is not type(b):
        return f"{type(a).__name__} and {type(b).__name__}"
    for field in dataclasses.fields(a):  # type: ignore[arg-type]
        x = getattr(a, field.name)
        y = getattr(b, field.name)
        are_floats = type(x) is float and type(y) is float
        if x != y and not are_floats:
            return f"{field.name} {x!r:.60} and {y!r:.60}"
    return "equal ones"


def draws_alike(template: Algorithm, names: Sequence[str], problem: Problem) -> bool:
    """Whether an algorithm draws without the named numbers, so that all grid points draw alike.

    It draws once with numbers that have no value; a draw that reads one of them fails.
    """
    unknown = {name: torch.empty((), device="meta") for name in names}
    expected = template.draw(problem, seeded(0, "rounds"))
    try:
        blind = fill(template, unknown, change_unchecked)
        drawn = blind.draw(problem, seeded(0, "rounds"))
        pairs = zip(pytree.tree_leaves(drawn), pytree.tree_leaves(expected), strict=True)
        return all(not x.is_meta and torch.equal(x, y) for x, y in pairs)
    except Exception:  # whatever the draw does with such a number
        return False
