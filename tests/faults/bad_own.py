"""A `Problem` with something wrong in it, and frames and clients that do not make one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bad_values as bad
import numpy as np
import pandas as pd
import torch
from bad_frames import FUNCTIONS, TOLD, a_typo, fit, frame, no_mean
from bad_values import Calls, tensors
from judging import Case
from torch import nn

from fedlib import problems
from fedlib.core import Problem
from fedlib.core.problem import Pooled
from fedlib.problems import ClientRows
from fedlib.problems.quadratics import exact_metrics, quadratic_gradient, quadratic_losses

A = torch.arange(8.0).view(4, 2)


def parts() -> dict[str, Any]:
    """The arguments of a problem that is in order."""
    return {
        "name": "plain",
        "data": (A, -A, torch.ones(4)),
        "rows": torch.arange(4).unsqueeze(1),
        "sizes": (1,) * 4,
        "losses": quadratic_losses,
        "gradient": quadratic_gradient,
        "num_objectives": 1,
        "num_constraints": 1,
        "w0": torch.zeros(2),
        "metrics": exact_metrics,
        "heldout": (torch.zeros(2),),
    }


#: Functions of too few and of too many arguments.
ARITIES = (lambda: 1, lambda w: w, lambda *, w, b: w @ b)


def problem_calls() -> Iterator[Calls]:
    """Every field of a problem."""
    broken = A.clone()
    broken[1, 1] = bad.NAN
    data = (
        None,
        A,
        [A],
        "abc",
        3,
        (),
        (A, None),
        (A.numpy(),),
        (A, A[:3]),
        (broken,),
        (A / 0,),
        (A.to(torch.complex64),),
        (torch.tensor(1.0),),
        (A, (A,)),
        (A.tolist(),),
        (A.to("meta"), A, A),
    )
    rows = (
        None,
        [[0], [1], [2], [3]],
        np.arange(4),
        A,
        A.long().float(),
        torch.arange(4),
        torch.arange(4).view(4, 1) + 1,
        torch.arange(4).view(4, 1) - 1,
        torch.zeros(4, 0).long(),
        torch.zeros(0, 1).long(),
        torch.arange(4).int().view(4, 1),
        torch.arange(4).view(1, 4),
        torch.arange(4).view(4, 1, 1),
        torch.ones(4, 1, dtype=torch.bool),
    )
    sizes = (
        None,
        4,
        [1] * 4,
        (1,) * 3,
        (1,) * 5,
        (0, 1, 1, 1),
        (2, 1, 1, 1),
        (1.0,) * 4,
        ("1",) * 4,
        (-1, 1, 1, 1),
        (True,) * 4,
        torch.ones(4),
        (None,) * 4,
    )
    start = (*tensors((2,)), torch.zeros(0), torch.zeros(2, 1), torch.zeros(2).to("meta"))
    held = (None, A, [A], ("a",), (None,), (A / 0,), (A.to(torch.complex64),), ({"a": A},))
    lengths = (3, None, [1] * 4, torch.ones(3).long(), torch.ones(4), torch.tensor([1, 1, 1, 2]))
    functions = (*bad.FUNCTION, nn.Module, *ARITIES)
    values = {
        "name": (*bad.NAME, None),
        "data": data,
        "rows": rows,
        "sizes": sizes,
        "losses": functions,
        "metrics": functions,
        "gradient": tuple(f for f in functions if f is not None),
        "num_objectives": bad.COUNT,
        "num_constraints": bad.WHOLE,
        "w0": start,
        "heldout": held,
        "lengths": lengths,
        "sequential_clients": bad.FLAG,
        "set": ("ball", 3, [], object(), problems.quadratics, object),
        "pooled": ("mean", 3, (1, 2), object(), Pooled),
        "simulator": ("cart", 3, True, int),
        "config": (*bad.CONFIG, None),
    }
    also = {"rows": ("sizes", "data"), "sizes": ("rows",), "w0": ("data",)}
    yield Calls(Problem, parts, values, also, "Problem")
    yield Calls(Problem(**parts()).within, dict, {"convex_set": bad.RECORD}, {}, "within")
    named = ({"dat": (A,)}, {"w0": "x"}, {"data": (None,)}, {"seed": A}, {"rows": [[0]]})
    also = {"tensors": ("tensor", "w0", "data", "rows")}
    yield Calls(Problem(**parts()).with_tensors, dict, {"tensors": named}, also, "with_tensors")
    rows_of = ClientRows(torch.zeros(3), torch.ones(3), {}, torch.ones(3) / 3)
    values = {"values": (torch.ones(3, 1), torch.ones(2), torch.tensor(1.0))}
    yield Calls(rows_of.mean, dict, values, {}, "ClientRows.mean")


def frame_good() -> dict[str, Any]:
    options = {"client": "clinic", "target": "ill", "features": ["age", "dose"]}
    return {"frame": frame(), **options, "module": nn.Linear(2, 1), "objective": fit}


def frame_calls() -> Iterator[Calls]:
    """Every argument of `from_frame`."""
    whole = frame()
    twice = whole.rename(columns={"gap": "age"})
    labels = ("nobody", 3, None, ["ill"], {}, "Clinic")
    lists = ("age", 3, ["age", "age"], ["nobody"], ["clinic"], ["word"], ["wave"])
    lists += (["gap"], ["top"], ["thing"], ["day"], ["kind"], ["ill"], {"age": 1}, [None])
    modules = ("net", None, 3, nn.Linear, nn.Linear(3, 1), nn.Sequential(), nn.BatchNorm1d(2))
    modules += (nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5)), torch.ones(2))
    functions = ("fit", 3, None, [fit, 3], {}, nn.MSELoss, *FUNCTIONS)
    reports = ([fit], "f", 3, {"f": fit}, {3: fit}, {"": fit}, {"x": 3}, {"seed": fit})
    reports += ({"round": fit}, {"x": no_mean}, {"x": a_typo}, {"x": nn.MSELoss})
    held = ("x", 3, whole[:0], whole.drop(columns="age"), whole.assign(ill=np.nan))
    held += (whole.assign(age="x"), whole.to_dict(), pd.concat([whole, whole[["age"]]], axis=1))
    frames = (
        None,
        3,
        "x",
        whole.to_dict(),
        whole.to_numpy(),
        whole[:0],
        twice,
        whole.drop(columns="ill"),
    )
    values = {
        "frame": frames,
        "client": (*labels, "where", "age", "ill"),
        "target": (*labels, "word", "wave", "gap", "top", "age", "clinic"),
        "features": (*lists, []),
        "columns": (*tuple(x for x in lists if x != ["gap"]), ["age"], ["gap"]),
        "module": modules,
        "objective": (*functions, []),
        "constraint": functions,
        "measures": reports,
        "heldout": held,
        "name": bad.NAME,
    }
    also = {
        "frame": ("column", "'ill'", "target"),
        "client": ("column", "features", "target"),
        "target": ("column", "features", "client"),
        "features": ("column", "module"),
        "columns": ("column", "features"),
        "objective": TOLD,
        "constraint": TOLD,
        "measures": TOLD,
        "heldout": ("column",),
    }
    yield Calls(problems.from_frame, frame_good, values, also)
    several = {**frame_good(), "objective": [fit, fit], "constraint": [fit, fit]}
    taken = tuple({name: fit} for name in ("f", "g", "f_1", "f_2", "g_1", "g_2", "seed"))
    yield Calls(problems.from_frame, lambda: several, {"measures": taken}, also, "several")


def clients_good() -> dict[str, Any]:
    own = [(A[:, :2] + j, torch.arange(4.0)) for j in range(3)]
    return {"clients": own, "module": nn.Linear(2, 1), "objective": fit}


def clients_calls() -> Iterator[Calls]:
    """Every argument of `from_clients`."""
    x, y = A, torch.arange(4.0)
    pair = (x, y)
    broken = x.clone()
    broken[2, 0] = bad.NAN
    wrong = [(x,), (x, y, y), x, None, "xy", 3, (x, y[:3]), (broken, y), (x, y / 0), (x, None)]
    wrong += [(x.numpy(), y), (x[:0], y[:0]), (x.to(torch.complex64), y), (x[:, :1], y)]
    wrong += [(x, torch.tensor(1.0)), (x, y.unsqueeze(1))]
    wrong += [{"x": x}, (x, y.tolist())]
    lists = [None, 3, "xy", [], {}, pair, torch.ones(3, 2), {0: pair}]
    functions = ("fit", 3, None, [fit, 3], {}, *FUNCTIONS)
    held = [w for w in wrong if w is not None] + [(x[:0], y[:0])]
    values: dict[str, tuple[Any, ...]] = {
        "clients": (*lists, *([pair, w] for w in wrong)),
        "heldout": (*held, None),
        "columns": ("a", ["a", "a"], ["a"], 3, None, [["a"]]),
        "module": (None, "net", nn.Linear, nn.Linear(3, 1), nn.Dropout(0.5), nn.ReLU()),
        "objective": (*functions, []),
        "constraint": functions,
        "measures": ([fit], {"f": fit}, {3: fit}, {"": fit}, {"x": 3}, {"x": no_mean}),
        "name": bad.NAME,
    }
    also = {
        "clients": ("client 1", "client 0", "target", "a client"),
        "columns": ("client 0",),
        "objective": TOLD,
        "constraint": TOLD,
        "measures": TOLD,
    }
    yield Calls(problems.from_clients, clients_good, values, also)


def cases() -> Iterator[Case]:
    """All of them."""
    for group in (problem_calls, frame_calls, clients_calls):
        for calls in group():
            yield from calls.cases()


def good() -> Iterator[tuple[str, Any]]:
    """What must pass, by name."""
    rows = frame()
    more: list[dict[str, Any]] = [
        {},
        {"client": "age", "features": ["dose"], "module": nn.Linear(1, 1)},
        {"frame": rows[rows.clinic == "a"].reset_index(drop=True)},
        {"features": pd.Index(["age", "dose"])},
        {"frame": rows.assign(ill=rows.ill.astype("Int64"), age=rows.age.astype("Float64"))},
        {"frame": rows.assign(dose=rows.dose > 0.5)},
        {"frame": rows.assign(ill=rows.ill.astype(np.int8)), "columns": ["one"]},
        {"heldout": rows[:2], "measures": {"loss": fit, "g": fit}},
        {"objective": [fit, fit], "constraint": (fit,), "measures": {"g_1": fit}},
        {"target": 7, "frame": rows.rename(columns={"ill": 7})},
    ]
    for changes in more:
        yield f"from_frame {[*changes]}", lambda c=changes: problems.from_frame(**frame_good() | c)
    own = clients_good()["clients"]
    several: list[dict[str, Any]] = [
        {},
        {"clients": own[:1]},
        {"clients": tuple(own), "heldout": own[0]},
        {"clients": [(x[: 2 + j], y[: 2 + j]) for j, (x, y) in enumerate(own)]},
        {"clients": [(x.double(), y.long()) for x, y in own]},
    ]
    for changes in several:
        yield (
            f"from_clients {[*changes]}",
            lambda c=changes: problems.from_clients(**clients_good() | c),
        )
    free: list[dict[str, Any]] = [
        {},
        {"gradient": None, "heldout": ()},
        {"lengths": torch.ones(4).long(), "sequential_clients": np.True_},
        {"config": {"a": [1, "b", None, {"c": (1, 2)}]}},
        {"w0": nn.Parameter(torch.zeros(2))},
    ]
    for changes in free:
        yield f"Problem {[*changes]}", lambda c=changes: Problem(**parts() | c)
