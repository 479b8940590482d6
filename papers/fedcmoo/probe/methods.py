"""Measurements along a run: errors of Gram estimates, progress of local training.

A probe is an algorithm that leaves the run of another one as it is and reports more about every
round. What it asks the clients for crosses no line: no bits are counted for it.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025: Table 3 (`GramProbe`) and Figure 11 (`ProgressProbe`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.compress import Largest, LowRank, Masked
from fedlib.compress.sketches import Sketch
from fedlib.core import Problem
from fedlib.core.client import Client, ClientState
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.shapes import AnyTensor, Gram, Jacobian, PerObjective
from fedlib.weights import MeanOfGrams, OneWay, TwoWay
from fedlib.weights.gram import gram_of
from fedlib.work.objectives import WeightedModel

#: Sketches of one budget, d numbers of a client: the paper's low rank in three orders of folding,
#: the largest entries (a number of 32 bits, or of 16 as the authors count), and random entries.
SKETCHES: dict[str, Sketch] = {
    "block": LowRank(),
    "row": LowRank(order="row"),
    "column": LowRank(order="column"),
    "largest": Largest(),
    "largest16": Largest(value_bits=16),
    "masked": Masked(),
    "unscaled": Masked(scaled=False),
}

#: How a sketch makes an estimate; `nrmse_two_way_block` is the error of one with the other.
EXCHANGES: dict[str, type[OneWay] | type[TwoWay]] = {"two_way": TwoWay, "one_way": OneWay}

#: How a client trains in a round.
TRAINED = {
    "method": "FedCMOO",
    "alone": "FSMGDA, each objective alone",
    "share": "FSMGDA, share of its step",
}

SKETCHED = tuple(f"{exchange}_{name}" for exchange in EXCHANGES for name in SKETCHES)
#: The names of all errors that a round reports.
ERRORS = tuple(f"nrmse_{name}" for name in (*SKETCHED, "own_grams", "own_grams_scaled"))
#: The names of the errors of the best multiples of the sketched estimates.
SCALE_FREE = tuple(f"scale_free_{name}" for name in SKETCHED)


@dataclass(frozen=True)
class GramProbe:
    r"""How far the estimates of the Gram matrix are from it, along a run.

        1  one round of `method`
        2  H_j = the Jacobians of that round's participants, G = (mean_j H_j)(mean_j H_j)'
        3  for every sketch of `SKETCHES`, one-way and two-way, and for the mean of the clients' own
           Gram matrices: nrmse = ||G_hat - G|| / ||G||, Frobenius; `ERRORS` has the names
        4  the same for the best multiple of each sketched estimate; `SCALE_FREE` has the names

    `nrmse_own_grams_scaled` is the error of the best multiple of the mean of the clients' own Gram
    matrices. Nobody could know the best multiples. Sketches that draw noise of one shape share it.

    >>> from fedlib import FedCMOOPref, problems
    >>> probe = GramProbe(FedCMOOPref(lr=0.1, local_steps=2, participants=2))
    >>> probe.size(problems.pareto(torch.eye(4).view(2, 1, 2, 4)))  # of the Jacobians
    (2, 4)

    Parameters
    ----------
    method : the algorithm whose run is followed, `FedCMOOPref` in the paper.
    """

    method: FedCMOO | FedCMOOPref

    def init(self, problem: Problem) -> WeightedModel:
        """That of the method."""
        return self.method.init(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's, and in `chance [n + 1, ...]` the sketches' noise, the server's last."""
        draw = self.method.draw(problem, rng)
        count = self.method.participants + 1
        size = self.size(problem)
        by_shape = {shape: SKETCHES[name] for name, shape in shapes(*size).items()}
        noises = []
        for sketch in by_shape.values():
            noise = sketch.draw(count, *size, rng)
            assert isinstance(noise, Tensor)
            noises.append(noise.flatten(1).double())
        return draw._replace(chance=torch.cat(noises, 1))

    def round(
        self, fed: Federation, state: WeightedModel, draw: Draw
    ) -> tuple[WeightedModel, Info]:
        """The method's round, and the errors at the model where it starts."""
        plain_draw = draw._replace(chance=())
        new_state, info = self.method.round(fed, state, plain_draw)  # 1
        aside = type(fed)(fed.problem)
        tasks, dim = self.size(fed.problem)
        clients = aside.clients(plain_draw, model=state.w)
        jacobians = aside.ask(self.method.task_gradients, clients)
        H = jacobians[..., :dim]  # 2
        clients = clients._replace(memory=H)
        G = gram_of(H.mean(0))

        def error(gram: Tensor) -> Tensor:
            relative: Tensor = (gram - G).norm() / G.norm()
            return relative

        grams = estimates(aside, clients, unpacked(draw.chance, tasks, dim))  # 3
        errors = {f"nrmse_{name}": error(gram) for name, gram in grams.items()}
        for name in SKETCHED:  # 4
            nearest = best_multiple(grams[name], G)
            errors[f"scale_free_{name}"] = error(nearest)
        return new_state, info | errors

    def size(self, problem: Problem) -> tuple[int, int]:
        """Rows and columns of the Jacobians that are sketched."""
        return problem.num_objectives, self.method.shared or problem.dim


def estimates(
    fed: Federation,
    clients: ClientState,
    noises: Mapping[str, AnyTensor],
) -> dict[str, Gram]:
    """All estimates of the mean Jacobian's Gram matrix; the clients remember their Jacobians."""
    jacobians = clients.memory
    assert isinstance(jacobians, Tensor)
    shared = jacobians.shape[-1]
    grams = {}
    for exchange, estimate in EXCHANGES.items():
        for name, sketch in SKETCHES.items():
            up: Any = ()
            down: Any = ()
            if name in noises:
                up = noises[name][:-1]
                down = noises[name][-1]
            noisy = clients._replace(noise=up)
            gram, _ = estimate(sketch)(
                fed,
                noisy,
                down,
                remembered,
                shared,
            )
            grams[f"{exchange}_{name}"] = gram
    own_grams, _ = MeanOfGrams()(
        fed,
        clients,
        (),
        remembered,
        shared,
    )
    exact = gram_of(jacobians.mean(0))
    grams["own_grams"] = own_grams
    grams["own_grams_scaled"] = best_multiple(own_grams, exact)
    return grams


def best_multiple(estimate: Gram, exact: Gram) -> Tensor:
    """The multiple of an estimate that is nearest to the exact matrix."""
    scale = (estimate * exact).sum() / estimate.square().sum()
    return scale * estimate


def remembered(client: Client) -> Jacobian:
    """At the client: the Jacobian that it has at hand."""
    return client.memory


@lru_cache(maxsize=64)
def shapes(tasks: int, dim: int) -> dict[str, tuple[int, ...]]:
    """The shape of the noise of a message, by the names of the sketches that draw any."""
    by_sketch = {}
    for name, sketch in SKETCHES.items():
        noise = sketch.draw(0, tasks, dim, torch.Generator())
        if isinstance(noise, Tensor):
            by_sketch[name] = tuple(noise.shape[1:])
    return by_sketch


def unpacked(noise: Float[Tensor, "n s"] | tuple[()], tasks: int, dim: int) -> dict[str, AnyTensor]:
    """The noise of every sketch that draws some, from what `GramProbe.draw` has packed."""
    assert isinstance(noise, Tensor)
    by_sketch = shapes(tasks, dim)
    distinct = [*dict.fromkeys(by_sketch.values())]
    lengths = [prod(shape) for shape in distinct]
    pieces = torch.split(noise, lengths, 1)
    by_shape = {}
    for shape, piece in zip(distinct, pieces, strict=True):
        shaped = piece.reshape(-1, *shape)
        # positions, one row a message, are whole numbers again
        by_shape[shape] = shaped.long() if len(shape) == 1 else shaped
    return {name: by_shape[shape] for name, shape in by_sketch.items()}


@dataclass(frozen=True)
class ProgressProbe:
    r"""What local training does to the participants' own losses: `method`'s, and that of `rival`.

        1  one round of `method`, from w to the next model
        2  its participants' ends of local training, u_j
        3  the same participants train from w as in `rival`: v_jk, the end for objective k alone
        4  with the rival's weights lam, v_j = w - sum_k lam_k (w - v_jk): client j's share of the
           rival's step
        5  on each client's own rows: loss of k at w minus that at u_j, at v_jk, at v_j; accuracy
           at the end minus that at w; means over the participants

    It reports `method_loss_k` and `method_accuracy_k` of u_j, the same as `alone_` of v_jk and as
    `share_` of v_j, and their means over the objectives without `_k`. All are gains: positive
    where local training helps.

    Parameters
    ----------
    method : the algorithm whose run is followed, `FedCMOO`.
    rival : the one that trains every objective by itself, `FSMGDA`; its draws come from a copy of
        the generator, so that it has the same participants.
    """

    method: FedCMOO
    rival: FSMGDA

    def init(self, problem: Problem) -> WeightedModel:
        """That of the method; all clients have equally many rows."""
        self.rival.init(problem)
        return self.method.init(problem)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """The method's, and in `chance` the rival's minibatches."""
        twin = torch.Generator()
        twin.set_state(rng.get_state())
        draw = self.method.draw(problem, rng)
        return draw._replace(chance=self.rival.draw(problem, twin).batches)

    def round(
        self, fed: Federation, state: WeightedModel, draw: Draw
    ) -> tuple[WeightedModel, Info]:
        """The method's round, and the gains of both local trainings from where it starts."""
        plain_draw = draw._replace(chance=())
        new_state, info = self.method.round(fed, state, plain_draw)  # 1
        problem = fed.problem
        aside = type(fed)(problem)
        w = state.w
        clients = aside.clients(plain_draw, model=w)
        jacobians = aside.ask(self.method.task_gradients, clients)
        clients = clients._replace(memory=jacobians)
        updates = aside.ask(self.method.local_update, clients, new_state.weights)
        ends = w - length(self.method) * updates  # 2

        rivals = aside.clients(Draw(draw.participants, draw.chance), model=w)
        flat = aside.ask(self.rival.local_updates, rivals)
        sent = flat.unflatten(1, (problem.num_objectives, -1))
        alone = w - length(self.rival) * sent  # 3
        lam = self.rival_weights(sent.mean(0), state, problem)
        share = torch.einsum("k,nkd->nd", lam, sent)
        shared = w - length(self.rival) * share  # 4

        models = torch.cat([ends.unsqueeze(1), shared.unsqueeze(1), alone], 1)
        all_rows = aside.clients(Draw(draw.participants), model=w)
        all_rows = all_rows._replace(memory=models)

        def gains(client: Client) -> Tensor:
            return own_gains(client, problem)

        measured = aside.ask(gains, all_rows).mean(0)  # 5
        return new_state, info | named(measured)

    def rival_weights(
        self,
        updates: Jacobian,
        state: WeightedModel,
        problem: Problem,
    ) -> PerObjective:
        """The rival's weights `[M]` for the mean updates `[M, d]`."""
        G = gram_of(updates[:, : self.rival.shared or problem.dim])
        lam = self.rival.weights(G, state.weights)
        return lam if self.rival.least is None else self.rival.least(lam)


def length(method: FedCMOO | FSMGDA) -> float:
    """What an update is multiplied by: `E lr`."""
    return method.local_steps * method.lr


def own_gains(client: Client, problem: Problem) -> Float[Tensor, "3 2 M"]:
    """At the client: gains in loss and accuracy of u_j, v_jk and v_j, in this order.

    Its memory holds the models u_j, v_j, v_j1, ..., v_jM.
    """
    on_rows = replace(problem, heldout=client.rows.data)
    tasks = range(client.num_objectives)

    def at(u: Tensor) -> Tensor:
        metrics = problem.metrics(u, on_rows)
        losses = [metrics[f"loss_{task + 1}"] for task in tasks]
        accuracies = [metrics[f"accuracy_{task + 1}"] for task in tasks]
        return torch.stack([torch.stack(losses), torch.stack(accuracies)])

    start = at(client.model)
    trained, shared, *alone = client.memory
    own_task = [at(alone[task])[:, task] for task in tasks]
    at_ends = torch.stack([at(trained), torch.stack(own_task, 1), at(shared)])
    sign = start.new_tensor([[-1.0], [1.0]])
    return sign * (at_ends - start)


def named(gains: Float[Tensor, "3 2 M"]) -> Info:
    """The gains under their names, and the means over the objectives."""
    info: Info = {}
    names = [f"{trained}_{curve}" for trained in TRAINED for curve in ("loss", "accuracy")]
    for name, values in zip(names, gains.flatten(0, 1), strict=True):
        info[name] = values.mean()
        for task, value in enumerate(values, start=1):
            info[f"{name}_{task}"] = value
    return info
