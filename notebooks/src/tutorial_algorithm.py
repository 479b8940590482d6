# %% [markdown]
# # Bring your own algorithm
#
# A method of this library is one file with a frozen dataclass, whose fields are the method's parameters. This page
# implements federated averaging with momentum at the server {cite}`hsu2019measuring`, which the library does not have,
# and shows how the library's test reports six typical mistakes.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer rounds and seeds
rounds = None  # communication rounds; None: 60 in the full profile, 15 in the quick one
seeds = None  # list of seeds; None: five in the full profile, two in the quick one

# %% [markdown]
# ## The whole method
#
# The docstring contains numbered pseudocode, and comments in the code cite its lines. The library calls three functions
# of the class:
#
# * `init` checks the parameters against the problem. It returns the state before round 0, a `NamedTuple` whose first
#   field is the model `w`.
# * `draw` makes all random choices, such as the participating clients and the rows of a minibatch, with a random
#   generator that depends on the seed.
# * `round` is the server's program. It reaches clients only through `fed.ask(method, clients, *broadcast)`, which also
#   counts the bits in both directions. Here `method` is a function that runs at a client and sees only that client's
#   rows. `round` returns the next state and `fed.info()`.
#
# In many methods a sample of clients makes local steps. Such a method derives from `LocalWork`. This class checks the
# fields, draws the clients and their minibatches, and makes the steps; its `init` has the model alone as state (`Model`).
# `self.local_model(client, w, weights)` is a client's model after the steps. The `weights` say how much each of the
# client's losses counts; for the mean objective they are `client.objective_weights(w)`.
#
# A method whose steps have another direction gives this direction as a function of the point and the step. FedProx adds
# a pull to the server's model. What it does at a client ends with:
#
# ```python
# def gradient(u, step):
#     return client.gradient(u, client.batch(step), weights) + self.mu * (u - w)
#
# return self.local(w, gradient, self.local_steps, self.lr)
# ```
#
# All names that a method needs are in [`fedlib.protocols`](../book/api_own.md). The types of its numbers are in
# `fedlib.checks`, such as `Count` (a positive whole number), `Positive` and `Nonnegative`. The server's
# `fed.mean(answers, clients)` is the mean of the answers, by the problem's `client_weights` if it has some; `.mean(0)`, as
# below, is the plain mean.

# %%
SOURCE = '''"""Federated averaging with momentum at the server."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.protocols import (
    Client,
    Draw,
    Federation,
    Info,
    LocalWork,
    Problem,
)


class State(NamedTuple):
    """The model, and the running mean of the clients' changes."""

    w: Tensor  # [d]
    m: Tensor  # [d]


@dataclass(frozen=True)
class FedAvgM(LocalWork):
    r"""Federated averaging, the server stepping along a running sum of past changes.

        1  sample n distinct clients S; the server sends w to them; initially m = 0
        2  each j in S: u = w, then E times u <- u - lr grad f_j(u)
        3  each j in S sends w - u
        4  m <- momentum m + mean_j (w - u_j)
        5  w <- project(w - m)

    Parameters
    ----------
    lr : float
        Step size of the clients.
    local_steps : int
        E, the number of local steps in a round.
    participants : int
        n, the number of clients in a round.
    momentum : float
        The share of the last m that stays; 0 is plain averaging.
    batch_size : int or None
        Number of rows in a minibatch; None for all rows of a client.
    """

    lr: Positive
    local_steps: Count
    participants: Count
    momentum: Annotated[float, checks.between(0, 1, open_high=True)] = 0.9
    batch_size: Count | None = None

    def init(self, problem: Problem) -> State:
        w = super().init(problem).w
        return State(w, torch.zeros_like(w))

    def local_change(self, client: Client, w: Tensor) -> Tensor:
        """At the client: make E local steps, and send the change."""
        weights = client.objective_weights(w)
        return w - self.local_model(client, w, weights)  # 2, 3

    def round(
        self, fed: Federation, state: State, draw: Draw
    ) -> tuple[State, Info]:
        clients = fed.clients(draw)  # 1
        change = fed.ask(self.local_change, clients, state.w).mean(0)  # 2, 3
        m = self.momentum * state.m + change  # 4
        return State(fed.project(state.w - m), m), fed.info()  # 5
'''

# %% [markdown]
# Save the method as a file beside your notebook and import it; this page uses a temporary folder.

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
# Twenty clients have equal parts of the breast cancer data, and five of them take part in each round. The objective f
# is the logistic loss on benign tumours, and the figure compares three values of the momentum. The library runs a list
# of methods that differ only in numbers, and all seeds, as one computation.

# %%
from dataclasses import replace

import seaborn as sns
import torch

import fedlib as fl
from fedlib import data, problems
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.parameters import settle
from papers.kit.quantities import curves

settle(globals(), rounds=(60, 15), seeds=([0, 1, 2, 3, 4], [0, 1]))
table = data.breast_cancer()
problem = problems.neyman_pearson(table.X, table.y, clients=20, dtype=torch.float64)
grid = [replace(method, momentum=momentum) for momentum in (0.0, 0.5, 0.9)]
runs = fl.run(grid, problem, rounds=rounds, seeds=seeds, progress=False)
names = [f"momentum {a.momentum:g}" for a in grid]
traces = dict(zip(names, runs, strict=True))


# %%
plot.theme()
means = plot.over_seeds(curves(traces), {"f": "f"})
means["method"] = means["run"]
grid = sns.relplot(means, hue="method", **plot.LINES)
plot.finish(grid, log=True, size=(6.2, 3.2))
plot.show(
    grid,
    alt="The objective over the rounds on a logarithmic axis, for momentum "
    "0, 0.5 and 0.9: the larger the momentum, the faster it falls.",
    caption="The objective under federated averaging with momentum at the "
    "server: the larger the momentum, the faster f falls. Curves are means over the "
    "seeds, bands one standard deviation.",
)

# %% [markdown]
# The first check below runs the method in another engine, `Loop`, which must produce the same result from the same
# random draws. `Loop` encodes every message and runs one client after another in plain Python, so you can `print` in
# `local_change`. The second check is that the method without momentum equals the library's federated averaging:

# %% tags=["nbval-check-output"]
short = {"rounds": 3, "seeds": seeds, "progress": False}
fast = fl.run(method, problem, engine=fl.Vectorized, **short)
slow = fl.run(method, problem, engine=fl.Loop, **short)
without_momentum = fl.run(replace(method, momentum=0.0), problem, **short)
plain = fl.run(fl.FedAvg(0.05, 2, 5, batch_size=8), problem, **short)


def apart(a, b):
    return abs(a.metrics["f"] - b.metrics["f"]).max()


check("both engines agree to 1e-12", apart(fast, slow) < 1e-12)
check("momentum 0 is FedAvg to 1e-12", apart(without_momentum, plain) < 1e-12)
bits = 5 * problem.dim * 32
right = [(fast.info[k] == bits).all() for k in ("bits_up", "bits_down")]
check("five models of 32-bit numbers go each way", all(right))

# %% [markdown]
# ## The test that every method must pass
#
# `fl.check_algorithm(method, problem)` runs a list of checks, prints nothing, and raises an error that names those that fail; `findings`
# returns the result of each check. The checks apply to any method. They test, for example, how a round behaves if its
# draw is repeated, if rows are hidden from the server, or if every client exists twice.

# %% tags=["nbval-check-output"]
from textwrap import fill

from fedlib.testing.contract import CHECKS, findings

fl.check_algorithm(method, problem)
for name, function in CHECKS.items():
    print(fill(f"{name}: {function.__doc__}", 78, subsequent_indent="    "))


# %% [markdown]
# ## Six mistakes
#
# Each cell below changes one part of the file above.

# %%
def mistaken(name, old, new):
    assert SOURCE.count(old) == 1
    wrong = from_file(name, SOURCE.replace(old, new))
    report = findings(wrong(0.05, 2, 5, batch_size=8), problem)
    for title, finding in report.items():
        if finding:
            print(fill(f"{title}: {finding}", 78))


# %% [markdown]
# **The method branches on a tensor.** The library records a round once and uses the record for all seeds, so Python
# cannot branch on a tensor's value:

# %% tags=["nbval-check-output"]
mistaken(
    "branching",
    "m = self.momentum * state.m + change",
    "m = change if change.norm() < 0.01 else self.momentum * state.m + change",
)

# %% [markdown]
# **The method draws random numbers inside a round,** here noise on the momentum. The run then cannot be repeated, and a
# GPU draws other numbers:

# %% tags=["nbval-check-output"]
mistaken(
    "noisy",
    "m = self.momentum * state.m + change",
    "m = self.momentum * state.m + change + torch.randn(30) / 99",
)

# %% [markdown]
# **The method sends something that is not counted.** `fed.clients(draw, model=w)` is for models that the clients
# *already have*, because the previous round sent them with `fed.broadcast`. Here no round has sent the model:

# %% tags=["nbval-check-output"]
mistaken(
    "uncounted",
    """clients = fed.clients(draw)  # 1
        change = fed.ask(self.local_change, clients, state.w)""",
    """clients = fed.clients(draw, model=state.w)  # 1
        change = fed.ask(lambda c: self.local_change(c, c.model), clients)""",
)

# %% [markdown]
# **The server reads the clients' data,** which the server of a real federation cannot do:

# %% tags=["nbval-check-output"]
mistaken(
    "reading",
    "m = self.momentum * state.m + change",
    "m = change * fed.problem.mean_losses(state.w)[0]",
)

# %% [markdown]
# **The method uses a sum instead of a mean.** The effective step size then grows with the number of participants: a
# step size tuned for five participants is too large for fifty:

# %% tags=["nbval-check-output"]
mistaken("summing", "state.w).mean(0)", "state.w).sum(0)")

# %% [markdown]
# **The method overwrites the state.** The run loop still needs the old state, for instance to repeat a round that
# diverged:

# %% tags=["nbval-check-output"]
mistaken(
    "writing",
    "m = self.momentum * state.m + change",
    "m = state.m.mul_(self.momentum).add_(change)",
)

# %% [markdown]
# ## Into the library
#
# To add the method to the library:
#
# 1. Move the file to `fedlib/algorithms/`, with the citation at its top. If the method departs from its paper, say so
#    in the docstring under *Differs*.
# 2. Add one line with the method and its settings to `fedlib/testing/examples.py`. Every `make test` then runs the
#    checks above.
# 3. Write a test of what the method should do, with numbers worked out by hand, an independent implementation, or a
#    solution in closed form.
#
# The [next tutorial](tutorial_scaffold.ipynb) treats clients that keep a memory between rounds (`Reply`,
# `fed.store_memory`). For compression, see [`fedlib/algorithms/fedsgm.py`](../book/api.md).
