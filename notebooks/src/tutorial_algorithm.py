# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Bring your own algorithm
#
# A method of this library is one file: a frozen dataclass of its parameters with `init`, `draw` and `round`. This page writes one that the library does not have, federated averaging with momentum at the server {cite}`hsu2019measuring`, runs it on many seeds at once, counts what it sends, and puts it through the test that every method of the library must pass. Then it makes six typical mistakes, one line each, and shows what that test says.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer rounds and seeds
rounds = None  # communication rounds; None: 60 in the full profile, 15 in the quick one
seeds = None  # list of seeds; None: five in the full profile, two in the quick one

# %% [markdown]
# ## The whole method
#
# The docstring holds the pseudocode, numbered, and the code cites the numbers: whoever reads one finds the other. The three methods have one job each.
#
# * `init` checks the parameters against the problem and returns the state before round 0, a `NamedTuple` whose first field is the model `w`.
# * `draw` is the only place for randomness: who takes part, which rows make a minibatch. It gets a generator of the seed.
# * `round` is the server's program. It reaches clients through `fed.ask(method, clients, *broadcast)` alone: what is broadcast and what comes back is counted there. `method` runs at a client, which sees its own rows and nothing else. The round returns the next state and `fed.info()`.

# %%
SOURCE = '''"""Federated averaging with momentum at the server."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.sampling import check_work, draw_round
from fedlib.core.problem import Draw, Info
from fedlib.core import Problem


class State(NamedTuple):
    """The model, and the running mean of the clients' changes."""

    w: Tensor  # [d]
    m: Tensor  # [d]


@dataclass(frozen=True)
class FedAvgM:
    r"""Federated averaging, the server stepping along a running sum of past changes.

        1  sample n distinct clients S; the server sends w to them; initially m = 0
        2  each j in S: u = w, then E times u <- u - lr grad f_j(u)
        3  each j in S sends w - u
        4  m <- momentum m + mean_j (w - u_j)
        5  w <- project(w - m)

    Parameters
    ----------
    lr : step size of the clients.
    local_steps : E.
    participants : n.
    momentum : how much of the last m stays, 0 is plain averaging.
    batch_size : rows of a minibatch, or None for all of the client's.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    momentum: Annotated[float, checks.between(0, 1, open_high=True)] = 0.9
    batch_size: Count | None = None

    def __post_init__(self) -> None:
        checks.fields(self)  # against what their annotations say they take

    def init(self, problem: Problem) -> State:
        check_work("FedAvgM", problem, self.participants, self.batch_size)
        return State(problem.w0, torch.zeros_like(problem.w0))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return draw_round(  # 1
            problem,
            rng,
            participants=self.participants,
            local_steps=self.local_steps,
            batch_size=self.batch_size,
        )

    def local_change(self, client: Client, w: Tensor) -> Tensor:
        u, weights = w, client.objective_weights(w)
        for step in range(self.local_steps):
            rows = client.batch(step)
            u = u - self.lr * client.gradient(u, rows, weights)  # 2
        return w - u  # 3

    def round(
        self, fed: Federation, state: State, draw: Draw
    ) -> tuple[State, Info]:
        clients = fed.clients(draw)  # 1
        change = fed.ask(self.local_change, clients, state.w).mean(0)  # 2, 3
        m = self.momentum * state.m + change  # 4
        return State(fed.project(state.w - m), m), fed.info()  # 5
'''

# %% [markdown]
# Save it as a file beside your notebook, here in a temporary folder, and import it:

# %%
import importlib
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
sys.path.insert(0, str(folder))


def from_file(name, source):
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    importlib.invalidate_caches()
    return importlib.import_module(name).FedAvgM


FedAvgM = from_file("fedavgm", SOURCE)
method = FedAvgM(lr=0.05, local_steps=2, participants=5, batch_size=8)

# %% [markdown]
# ## Run it
#
# Twenty clients with equal parts of the breast cancer data, five a round. A list of methods that differ in numbers only is a grid, and grid and seeds advance as one computation.

# %%
from dataclasses import replace

import torch

import fedlib as fl
from fedlib import data, problems
from papers.kit import plot
from papers.kit.claims import check

rounds = rounds or {"quick": 15, "full": 60}[profile]
seeds = seeds or {"quick": [0, 1], "full": [0, 1, 2, 3, 4]}[profile]
table = data.breast_cancer()
problem = problems.neyman_pearson(
    table.X, table.y, clients=20, dtype=torch.float64
)
grid = [replace(method, momentum=momentum) for momentum in (0.0, 0.5, 0.9)]
runs = fl.run(grid, problem, rounds=rounds, seeds=seeds, progress=False)
names = [f"momentum {a.momentum:g}" for a in grid]
traces = dict(zip(names, runs, strict=True))


# %%
def draw(fig):
    ax = fig.subplots()
    plot.bands(ax, traces, "f", log=True)
    ax.set_ylabel("f")
    ax.legend()


plot.show(
    draw,
    alt="The objective over the rounds on a logarithmic axis, for momentum "
    "0, 0.5 and 0.9: the larger the momentum, the faster it falls.",
    caption="Federated averaging with momentum at the server.",
    size=(5.5, 3.2),
)

# %% [markdown]
# The same draws in another engine: `Loop` takes one client after another in plain Python and sends every message through its wire format. It is slow, and what to debug with: a `print` in `local_change` shows numbers there. Without momentum, the method must be the library's averaging:

# %% tags=["nbval-check-output"]
few = {"rounds": 3, "seeds": seeds, "progress": False}
fast = fl.run(method, problem, engine=fl.Vectorized, **few)
slow = fl.run(method, problem, engine=fl.Loop, **few)
own = fl.run(replace(method, momentum=0.0), problem, **few)
plain = fl.run(fl.FedAvg(0.05, 2, 5, batch_size=8), problem, **few)


def apart(a, b):
    return abs(a.metrics["f"] - b.metrics["f"]).max()


check("both engines agree to 1e-12", apart(fast, slow) < 1e-12)
check("momentum 0 is FedAvg to 1e-12", apart(own, plain) < 1e-12)
bits = 5 * problem.dim * 32
right = [(fast.info[k] == bits).all() for k in ("bits_up", "bits_down")]
_ = check("five models of 32-bit numbers go each way", all(right))

# %% [markdown]
# ## The test that every method must pass
#
# `fl.check_algorithm(method, problem)` runs a list of checks and raises an error that lists the ones which fail; `findings` gives them by name. Nothing in them knows what your method is about: they look at what a round does when its draw is repeated, when rows are hidden from the server, when every client is there twice.

# %% tags=["nbval-check-output"]
from textwrap import fill

from fedlib.testing.contract import CHECKS, findings

fl.check_algorithm(method, problem)
for name, function in CHECKS.items():
    print(fill(f"{name}: {function.__doc__}", 78, subsequent_indent="    "))


# %% [markdown]
# ## Six mistakes
#
# Each is the file above with one line changed, and what the checks find.

# %%
def mistaken(name, old, new):
    assert SOURCE.count(old) == 1
    wrong = from_file(name, SOURCE.replace(old, new))
    found = findings(wrong(0.05, 2, 5, batch_size=8), problem)
    for title, finding in found.items():
        if finding:
            print(fill(f"{title}: {finding}", 78))


# %% [markdown]
# **Branching on a tensor.** A round is recorded once and then serves all seeds, so Python cannot decide by a value:

# %% tags=["nbval-check-output"]
mistaken(
    "branching",
    "m = self.momentum * state.m + change",
    "m = change if change.norm() < 0.01 else self.momentum * state.m + change",
)

# %% [markdown]
# **Random numbers inside a round**, here some noise on what is sent. A run could not be repeated, and a GPU would draw others:

# %% tags=["nbval-check-output"]
mistaken(
    "noisy",
    "m = self.momentum * state.m + change",
    "m = self.momentum * state.m + change + torch.randn(30) / 99",
)

# %% [markdown]
# **Something sent that is not counted.** `fed.clients(draw, model=w)` is for models that clients *hold already*, because the last round told it to them with `fed.broadcast`. Here nobody did:

# %% tags=["nbval-check-output"]
mistaken(
    "uncounted",
    """clients = fed.clients(draw)  # 1
        change = fed.ask(self.local_change, clients, state.w)""",
    """clients = fed.clients(draw, model=state.w)  # 1
        change = fed.ask(lambda c: self.local_change(c, c.model), clients)""",
)

# %% [markdown]
# **The server reads what clients hold.** The problem is in reach of a simulation; in a federation it would not be:

# %% tags=["nbval-check-output"]
mistaken(
    "reading",
    "m = self.momentum * state.m + change",
    "m = change * fed.problem.mean_losses(state.w)[0]",
)

# %% [markdown]
# **A sum where a mean belongs.** It acts like a step size that grows with the number of participants, so that nothing tuned on five of them holds for fifty:

# %% tags=["nbval-check-output"]
mistaken("summing", "state.w).mean(0)", "state.w).sum(0)")

# %% [markdown]
# **Writing into the state.** The run loop still needs it, for instance to repeat a round that diverged:

# %% tags=["nbval-check-output"]
mistaken(
    "writing",
    "m = self.momentum * state.m + change",
    "m = state.m.mul_(self.momentum).add_(change)",
)

# %% [markdown]
# ## Into the library
#
# If the method is to stay:
#
# 1. the file goes to `fedlib/algorithms/`, with the citation at its top and *Differs* in its docstring where it departs from the paper;
# 2. one line in `fedlib/testing/examples.py`, the method with its settings beside its kin: the list `ALGORITHMS` is read off the folder, and the checks above then run with every `make test`;
# 3. a test of its own that knows what the method is about: numbers worked out by hand, a plain twin, a solution in closed form.
#
# Where to look next: the [next page](tutorial_scaffold.ipynb) for clients that remember something between rounds (`Reply`, `fed.store_memory`), [`fedlib/algorithms/fedsgm.py`](../book/api.md) for compression, `baselines.py` for the plainest methods, and the [page before](tutorial_problem.ipynb) for problems of your own.
