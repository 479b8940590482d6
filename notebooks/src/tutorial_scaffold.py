# %% [markdown]
# # Clients that remember: SCAFFOLD
#
# In federated averaging, every client makes several local steps before it answers. If clients hold different data, each
# moves towards its own solution, and the mean of their models is not the common solution: the clients *drift*. SCAFFOLD
# {cite}`karimireddy2020scaffold` corrects the gradient of every local step: it subtracts the client's stored estimate
# of its own gradient and adds the server's estimate of the mean gradient. This page implements SCAFFOLD and tests it on
# a problem with a known solution.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer rounds and seeds
rounds = None  # communication rounds; None: 100 in the full profile, 30 in the quick one
seeds = None  # list of seeds; None: five in the full profile, two in the quick one
local_steps = 10  # steps that a client makes between two messages
participants = 4  # clients of eight that take part in a round

# %% [markdown]
# ## The method
#
# Compared with the [previous tutorial](tutorial_algorithm.ipynb), four things are new:
#
# * The state has a field `memory` with one row for each client. The class lists in `client_state` the fields that the
#   clients hold. If clients are [separate processes](../book/federation.md), the server does not have these fields.
# * `fed.clients(draw, memory=state.memory)` gives each participant its row as `client.memory`.
# * A client's function returns `Reply(upload, memory)`: what the client sends, and what it keeps for its next round.
#   `fed.ask` returns both. `fed.store_memory` then updates the participants' rows and keeps all others.
# * In each round, a participant j receives `w` and `c`, and returns the changes of its model and of its $c_j$. The
#   library counts the bits of all four vectors.

# %%
SOURCE = '''"""SCAFFOLD: local steps corrected by control variates."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from fedlib.checks import Count, Positive
from fedlib.protocols import (
    Client,
    Draw,
    Federation,
    Info,
    LocalWork,
    Problem,
    Reply,
)


class State(NamedTuple):
    """The model, the server's control variate, those of the clients."""

    w: Tensor  # [d]
    c: Tensor  # [d]
    memory: Tensor  # [N, d]: c_j, row j at client j


@dataclass(frozen=True)
class Scaffold(LocalWork):
    r"""Averaging whose local steps are corrected by control variates.

        1  sample n distinct clients S; the server sends w and c to them
        2  each j in S: y = w, then E times y <- y - lr (grad f_j(y) - c_j + c)
        3  each j in S: c_j' = c_j - c + (w - y) / (E lr)
        4  each j in S sends y - w and c_j' - c_j, and keeps c_j <- c_j'
        5  w <- w + mean_j (y_j - w)
        6  c <- c + n/N mean_j (c_j' - c_j)

    Initially c = c_j = 0, so that the first round is one of averaging.

    Parameters
    ----------
    lr : float
        Step size of the clients; the server's is 1.
    local_steps : int
        E, the number of local steps, each with all of a client's rows.
    participants : int
        n, the number of clients in a round.
    """

    client_state: ClassVar[tuple[str, ...]] = ("memory",)

    lr: Positive
    local_steps: Count
    participants: Count

    def init(self, problem: Problem) -> State:
        w = super().init(problem).w
        memory = w.new_zeros(problem.num_clients, problem.dim)
        return State(w, torch.zeros_like(w), memory)

    def local_update(self, client: Client, w: Tensor, c: Tensor) -> Reply:
        c_j = client.memory
        weights = client.objective_weights(w)

        def corrected(y: Tensor, step: int) -> Tensor:
            g = client.gradient(y, client.batch(step), weights)
            return g - c_j + c

        y = self.local(w, corrected, self.local_steps, self.lr)  # 2
        c_next = c_j - c + (w - y) / (self.local_steps * self.lr)  # 3
        upload = torch.cat([y - w, c_next - c_j])
        return Reply(upload, memory=c_next)  # 4

    def round(
        self, fed: Federation, state: State, draw: Draw
    ) -> tuple[State, Info]:
        clients = fed.clients(draw, memory=state.memory)  # 1
        changes, new = fed.ask(self.local_update, clients, state.w, state.c)
        change_w, change_c = changes.mean(0).chunk(2)
        w = state.w + change_w  # 5
        share = self.participants / state.memory.shape[0]
        c = state.c + share * change_c  # 6
        memory = fed.store_memory(state.memory, draw, new)
        return State(w, c, memory), fed.info()
'''

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
    return importlib.import_module(name).Scaffold


Scaffold = from_file("scaffold", SOURCE)

# %% [markdown]
# ## A problem with a known solution
#
# Eight clinics use least squares to predict the progression of diabetes from five measurements, with data from
# scikit-learn. The patients of one clinic have a similar body-mass index, up to noise, so the clinics' own solutions
# differ. A few steps of L-BFGS on all data find the minimum to the last digit.

# %%
import numpy as np
import torch
from sklearn.datasets import load_diabetes

import fedlib as fl
from fedlib import models, problems

table = load_diabetes(as_frame=True)
frame = table.data[["age", "sex", "bmi", "bp", "s5"]]
frame = (frame - frame.mean()) / frame.std()
noise = np.random.default_rng(0).normal(scale=0.5, size=len(frame))
borders = [-1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.2]
frame["clinic"] = np.digitize(frame["bmi"] + noise, borders)
target = table.target
frame["disease"] = (target - target.mean()) / target.std()


def squared_error(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


problem = problems.from_frame(
    frame,
    client="clinic",
    target="disease",
    module=models.mlp((5, 1)).double(),
    objective=squared_error,
    name="clinics",
)

solution = problem.w0.clone().requires_grad_()
solver = torch.optim.LBFGS(
    [solution],
    max_iter=100,
    tolerance_grad=1e-12,
    tolerance_change=0.0,
    line_search_fn="strong_wolfe",
)


def closure():
    solver.zero_grad()
    loss = problem.mean_losses(solution).sum()
    loss.backward()
    return loss


solver.step(closure)
least = float(problem.mean_losses(solution.detach()))

# %% [markdown]
# ## Drift, and its end
#
# Federated averaging and SCAFFOLD are compared with the same step size, number of local steps and draws of clients. In
# one pair of runs a sample of the clients takes part in each round, in the other all clients do.

# %%
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.parameters import settle

declared = {"rounds": (100, 30), "seeds": ([0, 1, 2, 3, 4], [0, 1])}
settle(globals(), local_steps=10, participants=4, **declared)
often = {"rounds": rounds, "seeds": seeds, "progress": False}
everyone = problem.num_clients
traces = {}
for taking in dict.fromkeys((participants, everyone)):
    common = {
        "lr": 0.05,
        "local_steps": local_steps,
        "participants": taking
    }
    methods = {"averaging": fl.FedAvg, "SCAFFOLD": Scaffold}
    for name, method in methods.items():
        trace = fl.run(method(**common), problem, **often)
        traces[f"{name}, {taking} of {everyone}"] = trace


# %%
fig = plot.figure((5.2, 3.4))
ax = fig.subplots()
for name, trace in traces.items():
    above = trace.metrics["f"].mean(0) - least
    shown = np.where(above > 1e-14, above, np.nan)
    style = "-" if name.startswith("SCAFFOLD") else "--"
    ax.plot(trace.rounds, shown, style, label=name)
ax.set_yscale("log")
ax.set_xlabel("round")
ax.set_ylabel("f above its minimum")
ax.legend()
plot.show(
    fig,
    alt="The distance of the objective from its minimum over the rounds, "
    "on a logarithmic axis. Both lines of averaging become level, the one "
    "with four clients higher. Both lines of SCAFFOLD fall to rounding.",
    caption="The mean over seeds of f above its minimum. Averaging stops "
    "where its clients' drifts balance. SCAFFOLD falls to the rounding of "
    "float64. Values below 1e-14 are not drawn.",
)

# %% tags=["nbval-check-output"]
end = {k: t.metrics["f"][:, -1] - least for k, t in traces.items()}
drifted = [e.min() for k, e in end.items() if k.startswith("averaging")]
arrived = [e.max() for k, e in end.items() if k.startswith("SCAFFOLD")]
check("averaging stops above 1e-4, in every seed", min(drifted) > 1e-4)
check("SCAFFOLD comes to 1e-6, in every seed", max(arrived) < 1e-6)
scaffold = traces[f"SCAFFOLD, {participants} of {everyone}"]
models_sent = participants * problem.dim * 32
ways = ("bits_up", "bits_down")
right = [(scaffold.info[direction] == 2 * models_sent).all() for direction in ways]
check("two models of 32-bit numbers go each way", all(right))

# %% [markdown]
# ## Is it right?
#
# The first test consists of the library's checks for *every* method, and of a run in the engine `Loop`, which runs one
# client after another and sends real messages:

# %% tags=["nbval-check-output"]
method = Scaffold(lr=0.05, local_steps=local_steps, participants=participants)
fl.check_algorithm(method, problem)
short = {"rounds": 5, "seeds": seeds, "progress": False}
fast = fl.run(method, problem, engine=fl.Vectorized, **short)
slow = fl.run(method, problem, engine=fl.Loop, **short)
away = abs(fast.state.w - slow.state.w).max()
check("both engines agree to 1e-12", float(away) < 1e-12)

# %% [markdown]
# These checks cannot know whether the method *is* SCAFFOLD. The second test therefore compares it with an independent
# numpy implementation of the six lines of pseudocode. If all clients take part, nothing is random, and both
# implementations must compute the same model.

# %% tags=["nbval-check-output"]
columns = ["age", "sex", "bmi", "bp", "s5"]
clinics = [part for _, part in frame.groupby("clinic")]
X = [np.c_[part[columns], np.ones(len(part))] for part in clinics]
t = [part["disease"].to_numpy() for part in clinics]
w = problem.w0.numpy().copy()
c = np.zeros_like(w)
memory = np.zeros((len(clinics), len(w)))
for _ in range(5):
    to_w = []
    to_c = []
    for j in range(len(clinics)):
        y = w.copy()
        for _ in range(local_steps):
            g = 2 * X[j].T @ (X[j] @ y - t[j]) / len(t[j])
            y -= 0.05 * (g - memory[j] + c)
        new = memory[j] - c + (w - y) / (local_steps * 0.05)
        to_w.append(y - w)
        to_c.append(new - memory[j])
        memory[j] = new
    w = w + np.mean(to_w, axis=0)
    c = c + np.mean(to_c, axis=0)

full = Scaffold(lr=0.05, local_steps=local_steps, participants=everyone)
ours = fl.run(full, problem, **short).state.w[0].numpy()
check("the plain twin agrees to 1e-12", abs(ours - w).max() < 1e-12)


# %% [markdown]
# ## Two mistakes
#
# **The round does not store the new memories.** The result is a valid method, so the checks find nothing, but it drifts
# like federated averaging. Only the numpy implementation, or a figure like the one above, reveals the mistake:

# %% tags=["nbval-check-output"]
from fedlib.testing.contract import findings


def mistaken(name, old, new):
    assert SOURCE.count(old) == 1
    wrong = from_file(name, SOURCE.replace(old, new))
    wrong = wrong(0.05, local_steps, participants)
    for title, finding in findings(wrong, problem).items():
        if finding:
            print(f"{title}: {finding}")
    return wrong


forgetful = mistaken("forgetful", "fed.store_memory(state.memory, draw, new)", "state.memory")
trace = fl.run(forgetful, problem, **often)
left = trace.metrics["f"][:, -1] - least
check("it does not come to 1e-6 in any seed", left.min() > 1e-6)

# %% [markdown]
# **The server reads the clients' memories.** In a simulation the server could compute their mean, which line 6 of the
# pseudocode tracks. In a real federation the server never sees the memories:

# %% tags=["nbval-check-output"]
_ = mistaken(
    "peeking",
    "c = state.c + share * change_c",
    "c = fed.store_memory(state.memory, draw, new).mean(0)",
)

# %% [markdown]
# ## Try
#
# 1. Set `local_steps` to 1. First predict how much drift is left. At which distance from the minimum does federated
#    averaging with all clients stop now?
# 2. In line 3 of the pseudocode, let the new control variate be the client's gradient at $w$ (option I in the paper).
#    How many gradients does each client then compute in a round?
#
# :::{dropdown} Solutions
# 1. Federated averaging reaches the minimum. A mean of single gradient steps is a gradient step on the mean, so with
#    all clients federated averaging and SCAFFOLD are the same method. With four of the eight clients, federated
#    averaging still stops away from the minimum, because the mean over the participants changes from round to round.
# 2. Line 3 becomes `new = client.gradient(w, client.batch(0), client.objective_weights(w))`. Each client computes one
#    gradient more than the $E$ gradients of its local steps. To avoid this gradient, keep the gradient of the first
#    local step, which is also taken at $w$.
# :::
