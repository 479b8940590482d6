"""Tests of people's functions before a run: a mistake raises one sentence that names it."""

import math
import numbers
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, grad_and_value, vjp, vmap

from fedlib import checks
from fedlib.core.problem import Batch, Problem
from fedlib.core.trees import index_tree, loop_map
from fedlib.problems.client_rows import SHARES, ClientRows, Function, plain_client
from fedlib.problems.explain import attempt, unmet_rule
from fedlib.problems.own_functions import OwnFunctions
from fedlib.shapes import Vector

SPREAD = 0.1  # distance scale of the random point at which functions are tested, beside the start
HOLDS = "for which its condition holds"
FINITE = "be finite where methods start"


class Point(NamedTuple):
    """A model, and the functions and the problem as `OwnFunctions.evaluated` gives them there."""

    w: Vector
    functions: OwnFunctions
    problem: Problem


class Preflight:
    """The tests of the functions of a problem, at its start and at a random point.

    There are two points, since all rows may have the same loss at a symmetric start. A large
    problem is tested some rows at a time: functions and their gradients by the module's outputs on
    all rows of a client, and the module's own gradients on `chunk` rows.
    """

    def __init__(self, caller: str, functions: OwnFunctions, problem: Problem) -> None:
        self.caller = caller
        self.functions = functions
        self.problem = problem
        self.over_clients = loop_map if problem.sequential_clients else vmap
        rng = torch.Generator().manual_seed(0)
        step = SPREAD * torch.randn(problem.dim, generator=rng)
        self.points = []
        beside = problem.w0 + step.to(problem.w0)
        for w in (problem.w0, beside):
            with torch.no_grad():
                evaluated = attempt(caller, "module", functions.evaluated, w, problem)
            self.points.append(Point(w, *evaluated))

    def try_function(self, name: str, function: Function) -> None:
        """Raise ValueError unless a loss returns one finite number that does not depend on padding.

        Warn if its gradient is zero on the rows of every client.
        """
        start = self.points[0]
        client = plain_client(start.problem, 0)
        rows = start.functions.rows(start.w, client)
        plain_number(self.caller, name, function, rows)
        flat = True
        for point in self.points:
            gradients = self.try_slopes(name, function, point)
            if self.functions.chunk is not None:
                gradients = self.pulled_back(name, function, point, gradients)
            for gradient in gradients:
                entries = gradient.nan_to_num()
                flat = flat and not entries.any()
        if flat:
            warnings.warn(
                f"{self.caller}: the gradient of {name} is zero on the rows of every client, so no "
                "method can lower it; pass a loss in its place, and this function as a measure.",
                stacklevel=5,
            )

    def try_slopes(self, name: str, function: Function, point: Point) -> list[Tensor]:
        """A loss's gradients at one point for the clients, in their order.

        They are gradients by w, or by the module's outputs if the problem is large. Raises the
        errors of `try_function`.
        """
        slope = self.slope(function, point)
        gradients: dict[int, Tensor] = {}
        for group in self.problem.size_groups():
            batch = point.problem.rows_of(group)
            mapped = self.over_clients(slope, (0,))
            try:
                slopes, (values, shares) = mapped(batch)
            except Exception as error:
                raise self.failed(name, slope, point, group, error) from error
            self.check_shares(name, shares, group)
            if point is self.points[0]:
                entries = slopes.isfinite().flatten(1)
                finite = values.isfinite() & entries.all(1)
                self.check_finite(f"{name} and its gradient", finite, group)
            self.check_padding(name, slope, point, group, slopes, values)
            gradients.update(zip(group, slopes, strict=True))
        return [gradients[client] for client in range(self.problem.num_clients)]

    def failed(
        self,
        name: str,
        slope: Callable[[Batch], Any],
        point: Point,
        group: list[int],
        error: Exception,
    ) -> ValueError:
        """The error for a loss that fails; it names a client if the loss works on others."""
        failures: dict[int, Exception] = {}
        for client in group:
            try:
                slope(plain_client(point.problem, client))
            except Exception as failure:
                failures[client] = failure
        if failures and len(failures) < len(group):
            client, error = next(iter(failures.items()))
            name += f" on client {client}"
        rule = unmet_rule(name, error)
        return ValueError(f"{self.caller}: {name} must {rule}.")

    def slope(self, function: Function, point: Point) -> Callable[[Batch], Any]:
        """The function `rows -> (gradient, (value, share of rows for which a condition holds))`."""
        value = partial(value_and_share, point.functions, function)
        if self.functions.chunk is None:
            return partial(grad_and_value(value, has_aux=True), point.w)

        def by_outputs(batch: Batch) -> Any:
            outputs, *further = batch.data

            def of_outputs(x: Tensor) -> tuple[Tensor, Tensor]:
                rows = Batch((x, *further), batch.weight)
                return value(point.w, rows)

            return grad_and_value(of_outputs, has_aux=True)(outputs)

        return by_outputs

    def check_shares(self, name: str, shares: Float[Tensor, "n"], group: list[int]) -> None:
        """Raise ValueError if a condition of a function holds for no row of a client."""
        client = group[int(shares.argmin())]
        fault = f"none on client {client}"
        rule = f"have rows on every client {HOLDS}"
        fits = (shares > 0).all()
        checks.require(fits, self.caller, name, rule, fault, "or take a GroupGap")

    def check_finite(self, name: str, finite: Tensor, group: list[int]) -> None:
        """Raise ValueError unless a value of each client is finite."""
        client = group[int(finite.int().argmin())]
        fault = f"NaN or infinity on client {client}"
        remedy = "look for a logarithm or a quotient"
        fits = finite.all()
        checks.require(fits, self.caller, name, FINITE, fault, remedy)

    def check_padding(
        self,
        name: str,
        slope: Callable[[Batch], Any],
        point: Point,
        group: list[int],
        slopes: Float[Tensor, "n ..."],
        values: Float[Tensor, "n"],
    ) -> None:
        """Raise ValueError unless the group's smallest client gives the same without padding."""
        sizes = [self.problem.sizes[client] for client in group]
        smallest = min(sizes)
        padding = max(sizes) - smallest
        if not padding:
            return
        position = sizes.index(smallest)
        unpadded = plain_client(point.problem, group[position])
        gradient, (value, _) = slope(unpadded)
        if self.functions.chunk is not None:  # a gradient of each row: 0 for padding
            zeros = gradient.new_zeros(padding, *gradient.shape[1:])
            gradient = torch.cat([gradient, zeros])
        padded_value = values[position]
        if agree(padded_value, value) and agree(slopes[position], gradient):
            return
        self.check_rows_apart(point, group, position)
        fault = f"{padded_value:.4g} with them and {value:.4g} without"
        remedy = "take rows.mean(values) in place of values.mean() or sum()"
        checks.require(False, self.caller, name, "not count padding rows", fault, remedy)

    def check_rows_apart(self, point: Point, group: list[int], position: int) -> None:
        """Raise ValueError if the outputs of a client's rows depend on the padding."""
        padded = index_tree(point.problem.rows_of(group), position)
        alone = plain_client(point.problem, group[position])
        with torch.no_grad():
            together = apply_to(point.functions, padded.data[0], point.w)
            single = apply_to(point.functions, alone.data[0], point.w)
        if not isinstance(together, Tensor):
            return
        beside_padding = together[: len(single)]
        fits = agree(beside_padding, single)
        rule = "compute each row's output from this row alone"
        fault = "other outputs beside padding rows"
        remedy = "take nn.GroupNorm or nn.LayerNorm, which use no statistics over rows"
        checks.require(fits, self.caller, "module", rule, fault, remedy)

    def pulled_back(
        self, name: str, function: Function, point: Point, gradients: list[Tensor]
    ) -> list[Tensor]:
        """Whether the gradients by w are not zero, for `chunk` rows after another.

        They come from the gradients by the module's outputs.
        """
        value = partial(value_and_share, self.functions, function)
        slope = partial(grad_and_value(value, has_aux=True), point.w)
        mapped = self.over_clients(slope, (0,))
        single_rows = self.problem.rows_of([0, 0], 1)  # tests whether a map can follow the module
        attempt(self.caller, name, mapped, single_rows)
        row_slopes = []
        for client_slopes, size in zip(gradients, self.problem.sizes, strict=True):
            row_slopes.append(client_slopes[:size])
        by_row = torch.cat(row_slopes)
        chunk = self.functions.chunk or len(by_row)
        input_chunks = torch.split(self.problem.data[0], chunk)
        slope_chunks = torch.split(by_row, chunk)
        result: list[Tensor] = []
        for inputs, slopes in zip(input_chunks, slope_chunks, strict=True):
            output = partial(apply_to, self.functions, inputs)
            pull_back = vjp(output, point.w)[1]
            (gradient,) = pull_back(slopes)
            if point is self.points[0]:
                fits = gradient.isfinite().all()
                start = len(result) * chunk
                fault = f"NaN or infinity in rows {start} and following"
                checks.require(fits, self.caller, f"the gradient of {name}", FINITE, fault)
            result.append(gradient.any())
        return result

    def try_measure(self, name: str, measure: Function) -> bool:
        """Whether a measure returns a tensor; ValueError unless it returns one finite number."""
        w, functions, problem = self.points[0]
        label, rows = next(functions.measured_rows(w, problem))
        SHARES.clear()
        number = plain_number(self.caller, name, measure, rows, on_host=True)
        if not isinstance(number, Tensor):
            self.try_host_measure(name, measure)
            return False
        if problem.heldout:
            self.check_number(name, label, number)
            return True
        value = partial(value_and_share, functions, measure, w)
        mapped = self.over_clients(value, (0,))
        for group in problem.size_groups():
            batch = problem.rows_of(group)
            values, shares = attempt(self.caller, name, mapped, batch)
            self.check_shares(name, shares, group)
            self.check_finite(name, values.isfinite(), group)
        return True

    def try_host_measure(self, name: str, measure: Function) -> None:
        """Raise ValueError unless a measure of plain numbers works on the rows of every client."""
        w, functions, problem = self.points[0]
        with torch.no_grad():
            for label, rows in functions.measured_rows(w, problem):
                SHARES.clear()
                title = f"{name} on {label}"
                number = plain_number(self.caller, title, measure, rows, on_host=True)
                self.check_number(name, label, number)

    def check_number(self, name: str, label: str, number: Any) -> None:
        """Raise ValueError if a condition held for no row, or a number is not finite."""
        holds = all(share > 0 for share in SHARES)
        rule = f"have rows on {label} {HOLDS}"
        checks.require(holds, self.caller, name, rule, "none")
        finite = math.isfinite(float(number))
        rule = f"be finite on {label} where methods start"
        checks.require(finite, self.caller, name, rule, number)


def value_and_share(
    functions: OwnFunctions, function: Function, w: Tensor, batch: Batch
) -> tuple[Tensor, Tensor]:
    """A function of some rows, and the smallest share of rows for which a condition held."""
    SHARES.clear()
    value = function(functions.rows(w, batch))
    everything = batch.weight.new_ones(())
    shares = torch.stack([*SHARES, everything])
    smallest = shares.min()
    return value, smallest


def apply_to(functions: OwnFunctions, inputs: Tensor, w: Tensor) -> Tensor:
    """The module's output as a function of w."""
    result: Tensor = functions.apply(w, inputs, train=False)
    return result


def agree(left: Tensor, right: Tensor) -> bool:
    """Whether two results of the same sums, in another order, are the same number or vector."""
    eps = torch.finfo(left.dtype).eps
    relative = max(1e-3, 8 * eps)
    magnitudes = right.abs().nan_to_num()
    largest = float(magnitudes.amax())
    absolute = max(1e-5, eps) + relative * largest
    return torch.allclose(left, right, rtol=relative, atol=absolute, equal_nan=True)


def needs_loop(functions: OwnFunctions, problem: Problem) -> bool:
    """Whether torch cannot map the module or a loss, since an operation has no rule for `vmap`."""
    batch = problem.rows_of([0, 0], 1)
    slope = grad(lambda w, batch: functions.losses(w, batch).sum())
    try:
        vmap(slope, (None, 0))(problem.w0, batch)
    except Exception as error:  # other failures get their sentence from the tests that follow
        return "does not have vmap support" in str(error)
    return False


def plain_number(
    caller: str, name: str, function: Function, rows: ClientRows, *, on_host: bool = False
) -> Any:
    """The single number that a function returns: a tensor or, `on_host`, one of Python's."""
    with torch.no_grad():
        number = attempt(caller, name, function, rows)
    returned = number
    if isinstance(number, Tensor):
        fits = not number.dim()
        returned = list(number.shape)
    elif isinstance(number, np.ndarray):
        fits = on_host and not number.ndim
    else:
        fits = on_host and isinstance(number, numbers.Real)
    rule = "return one number, a tensor of shape []"
    checks.require(fits, caller, name, rule, returned, "rows.mean(values) is a mean of rows")
    return number
