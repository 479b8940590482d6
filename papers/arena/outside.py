"""Other people's packages on the arena's problems: the same method beside ours, or a baseline.

`python -m papers.arena.outside` writes `results/arena/outside.json`, which the arena's page shows.
TorchJD (weights of gradients), humancompatible-train (switching subgradients) and cooper-optim
(Lagrangians) are optional: `pip install -e ".[outside]"`. Whoever is not installed is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from fedlib import run
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.core import Problem, files
from fedlib.core.problem import Batch
from fedlib.core.trace import Array
from fedlib.provenance import versions
from fedlib.steps import Hard
from fedlib.weights import FindWeights, MinNorm
from papers.arena.methods import STEPS
from papers.arena.multiples import units
from papers.arena.problems import LEVELS, arena_problem
from papers.arena.reference import doubled, slope, solved
from papers.arena.rules import best_of, excess
from papers.kit.numbers import mean
from papers.kit.store import results_dir

PACKAGES = {
    "torchjd": "torchjd",
    "humancompatible": "humancompatible-train",
    "cooper": "cooper-optim",
}
SEEDS = (0, 1, 2, 3, 4)
PASSES = 1200  # gradients of a Lagrangian run, as of every run of the arena
DUALS = (0.01, 0.001, 0.1)  # steps of the multiplier, times f(w0) / level^2
MATRICES, MOST = 200, 5  # random Gram matrices, of so many gradients at most
ROUNDS = 200  # of the comparison of switching methods
STEPS_THERE = 2000  # of TorchJD's solver

Found = dict[str, float]


def installed(module: str) -> bool:
    """Whether a package can be imported."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def grams() -> list[Tensor]:
    """Gram matrices of random gradients, and of f and g on the arena's problems along a path."""
    rng = torch.Generator().manual_seed(0)
    found = []
    for i in range(MATRICES):
        H = torch.randn(2 + i % (MOST - 1), 8, generator=rng, dtype=torch.float64)
        found.append(H @ H.T)
    for name in ("pair", "sparse"):
        problem = doubled(arena_problem(0, name=name))
        end = solved(0, name=name).w0
        for share in torch.linspace(0, 1, 11):
            H = torch.stack([slope(problem, share * end, x) for x in ([1.0, 0.0], [0.0, 1.0])])
            found.append(H @ H.T)
    return found


def weights() -> Found:
    """TorchJD's MGDA and UPGrad against MinNorm, FindWeights and the definition of UPGrad.

    MGDA there is Frank-Wolfe, exact in a step for two gradients; of more, the squared norm that it
    reaches is compared. UPGrad's projector regularizes, which is turned down.
    """
    theirs = importlib.import_module("torchjd.aggregation")
    cone = importlib.import_module("torchjd._linalg").QuadprogProjector
    mgda = theirs.MGDAWeighting(epsilon=1e-6, max_iters=STEPS_THERE)
    upgrad = theirs.UPGradWeighting(projector=cone(norm_eps=0.0, reg_eps=1e-9))
    several, found = FindWeights(step=0.1, steps=5000), grams()
    apart = dict.fromkeys(("mgda_two", "mgda_more", "find_two", "upgrad"), 0.0)
    for G in found:
        start = G.new_full((len(G),), 1 / len(G))
        exact, other = MinNorm()(G, start), mgda(G)
        far = {"upgrad": float((upgrad(G) - dual_cone_mean(G)).abs().max())}
        if len(G) == 2:
            far["mgda_two"] = float((other - exact).abs().max())
            far["find_two"] = float((other - several(G, start)).abs().max())
        else:
            longer = float(other @ G @ other) - float(exact @ G @ exact)
            far["mgda_more"] = longer / float(G.diagonal().mean())
        apart = {k: max(x, far.get(k, 0.0)) for k, x in apart.items()}
    return apart | {"matrices": float(len(found))}


def dual_cone_mean(G: Tensor) -> Tensor:
    """UPGrad by its definition: the mean of the projections of all rows onto the dual cone.

    The nearest vector to g_k with no negative product is g_k + H' v for the v >= 0 that minimizes
    |g_k + H' v|.
    """
    values, vectors = np.linalg.eigh(G.numpy())
    root = np.sqrt(values.clip(0))[:, None] * vectors.T
    rows = [np.eye(len(G))[k] + nnls(root, -root[:, k])[0] for k in range(len(G))]
    return torch.from_numpy(np.mean(rows, 0))


def switching() -> Found:
    """humancompatible-train's SSG with SGD against FedSGM hard, one client, one local step."""
    theirs = importlib.import_module("humancompatible.train.dual_optim")
    far, switches, agree = [], [], []
    for seed in SEEDS:
        problem = doubled(arena_problem(seed, name="np", form="pooled"))
        of = units("np", 0, 1, 64, 0)
        lr, level = 3 * of.lr, LEVELS["np"]
        ours = run(
            FedSGM(lr, 1, 1, tolerance=0.0, level=level, switch=Hard()),
            problem,
            rounds=ROUNDS,
            progress=False,
        )
        w = problem.w0.clone().requires_grad_()
        step, dual = torch.optim.SGD([w], lr=lr), theirs.SSG(m=1)
        taken = []
        for _ in range(ROUNDS):
            f, g = problem.losses(w, every_row(problem))
            step.zero_grad()
            dual.forward_update(f, (g - level).unsqueeze(0)).backward()
            step.step()
            taken.append(dual.last_switched_to_constraints)
        far.append(float((w.detach() - ours.state.w[0]).abs().max() / w.detach().abs().max()))
        switches.append(float(np.mean(taken)))
        agree.append(float(np.mean(ours.info["sigma"][0] == np.array(taken))))
    return {
        "apart": max(far),
        "same_switches": min(agree),
        "switched": float(np.mean(switches)),
        "rounds": float(ROUNDS),
    }


def every_row(problem: Problem) -> Batch:
    """All rows as one batch."""
    return Batch(
        problem.data, problem.w0.new_full((len(problem.data[0]),), 1 / len(problem.data[0]))
    )


def lagrangian(name: str) -> Found:
    """Cooper's simultaneous gradient descent-ascent, tuned and measured by the arena's rules."""
    f, violations, tested = {}, {}, {}
    of = units(name, 0, 1, 64, 0)
    for x in STEPS[3]:
        for y in DUALS:
            ends = [descent_ascent(name, s, x * of.lr, y * of.start / of.level**2) for s in SEEDS]
            key = f"{x:g} / L, {y:g}"
            at = {k: np.array([end[k] for end in ends]) for k in ends[0]}
            if np.isfinite(at["val_f"]).all():
                f[key], violations[key] = at["val_f"].mean(), excess(at["val_g"], name).mean()
                tested[key] = at
    best = tested[best_of(f, violations)]
    optimum = optimal(name)
    gap = mean(100 * (best["test_f"] - optimum) / optimum.mean())
    violation = mean(excess(best["test_g"], name))
    return {
        "gap": gap.value,
        "gap_low": gap.low,
        "gap_high": gap.high,
        "excess": violation.value,
        "excess_low": violation.low,
        "excess_high": violation.high,
    }


def optimal(name: str) -> Array:
    """The optimum's test objective, a value a seed."""
    ends = [solved(seed, name=name) for seed in SEEDS]
    return np.array([float(p.metrics(p.w0, p)["test_f"]) for p in ends])


def descent_ascent(name: str, seed: int, lr: float, dual_lr: float) -> dict[str, float]:
    """One run of Cooper on all rows in one place; what it ends with."""
    cooper: Any = importlib.import_module("cooper")
    problem, level = arena_problem(seed, name=name, form="pooled"), LEVELS[name]
    w, rows = problem.w0.clone().requires_grad_(), every_row(problem)

    class Constrained(cooper.ConstrainedMinimizationProblem):  # type: ignore[misc]
        """f subject to g <= level."""

        def __init__(self) -> None:
            super().__init__()
            self.constraint = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                formulation_type=cooper.formulations.Lagrangian,
                multiplier=cooper.multipliers.DenseMultiplier(num_constraints=1),
            )

        def compute_cmp_state(self) -> Any:
            f, g = problem.losses(w, rows)
            state = cooper.ConstraintState(violation=(g - level).unsqueeze(0))
            return cooper.CMPState(loss=f, observed_constraints={self.constraint: state})

    task = Constrained()
    both = cooper.optim.SimultaneousOptimizer(
        cmp=task,
        primal_optimizers=torch.optim.SGD([w], lr=lr),
        dual_optimizers=torch.optim.SGD(task.dual_parameters(), lr=dual_lr, maximize=True),
    )
    for _ in range(PASSES):
        both.roll()
    return {k: float(v) for k, v in problem.metrics(w.detach(), problem).items()}


CHECKS: dict[str, tuple[str, Callable[[], Found]]] = {
    "weights": ("torchjd", weights),
    "switching": ("humancompatible", switching),
    "lagrangian_np": ("cooper", lambda: lagrangian("np")),
    "lagrangian_pair": ("cooper", lambda: lagrangian("pair")),
}


def path() -> Path:
    """Where the findings lie."""
    return results_dir() / "arena" / "outside.json"


def main() -> None:
    """Run every check whose package is there, and store what was found."""
    found = {name: check() for name, (module, check) in CHECKS.items() if installed(module)}
    packages = {PACKAGES[m]: metadata.version(PACKAGES[m]) for m in PACKAGES if installed(m)}
    content = {
        "schema": files.SCHEMA,
        "kind": "outside",
        "packages": packages,
        "seeds": list(SEEDS),
        "found": found,
        "provenance": versions(),
    }
    files.write_json(path(), {**content, "digest": files.digest(content)})


if __name__ == "__main__":
    main()
