"""Quadratics with a known Pareto front, and the probe of the balancing direction.

All have a known Pareto front (`fedlib.problems.pareto`). In `federation` the clients also differ in
their curvatures: with equal ones local steps would be those of one client, without drift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch
from torch import Tensor
from torch.func import jacrev

from fedlib.core import Problem
from fedlib.core.client import Client
from fedlib.core.describe import renamed_from
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.problems import pareto
from fedlib.problems.quadratics import pareto_metrics, pareto_point
from fedlib.weights.preference import balancing
from fedlib.work.states import Model

CLIENTS = 20
LEAST = 0.25  # least curvature of a client; the largest is 1
FRONT = 501  # points of the front
LONGER = (0.01, 0.1, 1.0)  # lengths of the steps that the probe also tries


@renamed_from("papers.fedcmoo.toy.problems.federation")
@lru_cache(maxsize=128)
def federation(
    seed: int,
    *,
    tasks: int = 2,
    dim: int = 10,
    spread: float = 0.0,
    noise: float = 0.0,
    rows: int = 1,
    scale: float = 1.0,
) -> Problem:
    r"""Twenty clients, $f_{jk}(w)=\frac12\lVert w-c_{jk}\rVert^2_{A_{jk}}$ with diagonal A.

    Parameters
    ----------
    seed : fixes centres, curvatures (uniform between a quarter and 1) and the start.
    tasks, dim : M and d.
    spread : root mean square distance of a client's centres from the common ones.
    noise : the same of a row's centre from its client's.
    rows : of each client.
    scale : multiplies objective 1 (so that L is the larger of 1 and this).
    """
    rng = torch.Generator().manual_seed(seed)
    normal = partial(torch.randn, generator=rng, dtype=torch.float64)
    common = normal(1, 1, tasks, dim)
    of_client = normal(CLIENTS, 1, tasks, dim)
    single = normal(CLIENTS, rows, tasks, dim)
    start = normal(dim)
    share = torch.rand(
        CLIENTS,
        1,
        tasks,
        dim,
        generator=rng,
        dtype=torch.float64,
    )
    A = (LEAST + (1 - LEAST) * share).expand(CLIENTS, rows, tasks, dim).clone()
    A[:, :, 0] *= scale
    of_row = noise * (single - single.mean(1, True))
    centres = common + (spread * of_client + of_row) / dim**0.5
    quadratics = pareto(centres, w0=2 * start)
    curvature = A.mean((0, 1))
    middle = (A * centres).mean((0, 1)) / curvature
    share = torch.linspace(0, 1, FRONT, dtype=torch.float64)
    lam = torch.stack([1 - share, share], -1)
    front = pareto_point(middle, curvature, lam) if tasks == 2 else middle[:0]
    config = {
        **quadratics.config,
        "kind": "federation",
        "curvature": [LEAST, 1.0],
        "spread": spread,
        "noise": noise,
        "scale": scale,
    }
    return replace(
        quadratics,
        data=(quadratics.data[0], A.flatten(0, 1)),
        heldout=(middle, curvature, front),
        metrics=gram_metrics,
        config=config,
    )


def gram_metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
    middle, curvature, _ = problem.heldout
    g = (curvature * (w - middle))[:2]
    G = g @ g.mT
    return {
        **pareto_metrics(w, problem),
        "g_11": G[0, 0],
        "g_12": G[0, 1],
        "g_22": G[1, 1],
    }


@dataclass(frozen=True)
class DirectionProbe:
    r"""No method: every round looks at the imbalance mu around another random model.

    At `w = w_0 + radius z` with random preferences r, along the unit vector of `-grad F a`:

        slope   central difference of mu over `length` both ways
        error   of the formula `-|grad F a| / sum_k r_k F_k`, relative to the formula
        change  mu after `length` less mu before; `change_1`, ... after 0.01, 0.1, 1

    Reference: Mahapatra and Rajan (2020), Theorem 1, as used in FedCMOO's appendix C.2.

    Parameters
    ----------
    radius : of the random models, in units of a standard normal vector.
    length : of the short step, in units of the model.
    """

    radius: float = 1.0
    length: float = 1e-4

    def init(self, problem: Problem) -> Model:
        return Model(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        size = problem.dim + problem.num_objectives
        numbers = torch.randn(size, generator=rng)
        return Draw(torch.arange(problem.num_clients), downlink=numbers)

    def losses_and_gradients(self, client: Client) -> Tensor:
        rows = client.batch(0)
        slopes = jacrev(client.losses)(client.model, rows)
        losses = client.losses(client.model, rows)
        return torch.cat([losses.unsqueeze(-1), slopes], -1)

    def round(
        self,
        fed: Federation,
        state: Model,
        draw: Draw,
    ) -> tuple[Model, Info]:
        """One model: its direction, and mu on both sides of it."""
        assert isinstance(draw.downlink, Tensor)
        dim = len(state.w)
        z = draw.downlink.to(state.w)
        w = state.w + self.radius * z[:dim]
        r = z[dim:].exp()

        def known(at: Tensor) -> Tensor:
            clients = fed.clients(draw, model=at)
            answers: Tensor = fed.ask(self.losses_and_gradients, clients)
            return answers.mean(0)

        losses_and_slopes = known(w)
        F = losses_and_slopes[:, 0]
        J = losses_and_slopes[:, 1:]
        a, mu = balancing(F, r)
        descent = a @ J
        size = descent.square().sum().sqrt()
        unit = descent / size

        def along(length: float) -> Tensor:
            moved = known(w - length * unit)
            _, mu_there = balancing(moved[:, 0], r)
            return mu_there - mu

        ahead = along(self.length)
        backward = along(-self.length)
        slope = (ahead - backward) / (2 * self.length)
        error = (slope * (r @ F) / size + 1).abs()
        curves = {"mu": mu, "slope": slope, "error": error, "change": ahead}
        for k, length in enumerate(LONGER, 1):
            curves[f"change_{k}"] = along(length)
        return state, fed.info(**curves)
