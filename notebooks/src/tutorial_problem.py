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
# # Bring your own problem
#
# You have a table whose rows belong to different owners, a network, and something that the trained network must not exceed. This page turns the three into a constrained federated model: about thirty lines, then two methods on it, their curves, and what the library says when a line is wrong.
#
# The example: eight hospitals hold the Breast Cancer Wisconsin data {cite}`wolberg1995breast`. The network is to be good on benign tumours, *while* its loss on malignant ones stays below a level. Scikit-learn ships the data, nothing is downloaded.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer rounds and seeds
rounds = None  # communication rounds; None: 150 in the full profile, 30 in the quick one
seeds = None  # list of seeds; None: five in the full profile, two in the quick one
level = 0.1  # what the constraint must stay below

# %% [markdown]
# ## A table with a client column
#
# One row a sample, numbers only, features scaled as a network likes them. Which hospital a row belongs to is a column like any other; here the tumour's radius decides with some chance, so that hospitals differ in size and in kind. If you have a table of your own, this cell is the one to replace.

# %%
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer

table = load_breast_cancer(as_frame=True)
features = table.data
frame = (features - features.mean()) / features.std()
frame["malignant"] = 1.0 - table.target
noise = np.random.default_rng(0).normal(size=len(frame))
borders = [-1.5, -1, -0.5, 0, 0.5, 1, 1.5]
frame["hospital"] = np.digitize(frame["mean radius"] + noise, borders)

# %% tags=["nbval-check-output"]
hospitals = frame.groupby("hospital").malignant
print(hospitals.agg(["size", "sum"]).astype(int))

# %% [markdown]
# ## A network, and two plain functions
#
# Any `nn.Module` serves, with dropout or without; frozen parameters stay as they are, and batch norm is taken in eval mode (its running statistics would be a state beside the parameters). (`models.mlp` is an `nn.Sequential` whose start is drawn from a generator of its own, so that the numbers of this page repeat.) What is minimized and what is constrained are functions of `rows`, the rows of one client:
#
# * `rows.output` is what the network makes of them, `rows.target` what it should have been, `rows.columns[name]` a further column;
# * `rows.mean(values)` averages one number a row, `rows.mean(values, where=condition)` over some rows only. It knows which rows are padding (hospitals have different numbers of them), which `values.mean()` would not.
#
# Each function returns *one* number. The methods need gradients, so the constraint is a loss here and not a rate of errors; the rate is a *measure*, which is reported and nothing else.

# %%
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

import fedlib as fl
from fedlib import models, problems
from papers.compare import compare
from papers.kit import plot


def losses(rows):
    logits = rows.output.squeeze(-1)
    return cross_entropy(logits, rows.target, reduction="none")


def benign(rows):
    return rows.mean(losses(rows), where=rows.target == 0)


def malignant(rows):
    return rows.mean(losses(rows), where=rows.target == 1)


def missed(rows):
    return rows.mean(rows.output.squeeze(-1) < 0, where=rows.target == 1)


problem = problems.from_frame(
    frame,
    client="hospital",
    target="malignant",
    module=models.mlp((30, 8, 1)),
    objective=benign,
    constraint=malignant,
    measures={"missed": missed},
    name="hospitals",
)

# %% [markdown]
# `problems.from_frame` has tried all of it out: the network on the first hospital's rows, each function and its gradient on every hospital's. Pictures, sequences and whatever else is no table go through `problems.from_clients`: see [the page before](tutorial_own.ipynb).

# %% tags=["nbval-check-output"]
print(f"{problem.num_clients} clients with {problem.sizes} rows")
print(f"{problem.dim} parameters, {problem.num_constraints} constraint")

# %% [markdown]
# ## Two methods
#
# FedSGM {cite}`fedsgm2025` switches to the constraint in rounds that find it violated; averaging {cite}`mcmahan2017fedavg` looks at the objective alone and shows what the constraint costs. Four of eight hospitals take part in a round and make five local steps. All seeds run together as one computation.

# %%
level = float(level)  # a text where it came from YAML, as 1e-1
rounds = rounds or {"quick": 30, "full": 150}[profile]
seeds = seeds or {"quick": [0, 1], "full": [0, 1, 2, 3, 4]}[profile]
common = {"lr": 0.3, "local_steps": 5, "participants": 4}
switching = fl.FedSGM(tolerance=level, switch=fl.Soft(2 / level), **common)
often = {"rounds": rounds, "seeds": seeds, "progress": False}
traces = {
    "FedSGM": fl.run(switching, problem, **often),
    "FedAvg": fl.run(fl.FedAvg(**common), problem, **often),
}

# %% [markdown]
# A run leaves a `Trace`: exact values at the start of every round, what the rounds reported, the final models. `to_frame()` makes one tidy table of it, one row a seed and round.

# %%
traces["FedSGM"].to_frame().tail(3).round(3)


# %%
def draw(fig):
    metrics = ["f", "g", "missed"]
    for ax, metric in zip(fig.subplots(1, 3), metrics, strict=True):
        plot.bands(ax, traces, metric, log=metric == "g")
        ax.set_ylabel(metric)
        if metric == "g":
            plot.level(ax, level, "level")
            ax.legend()


plot.show(
    draw,
    alt="Three panels over the rounds. The objective of averaging falls to "
    "zero at once, that of FedSGM rises first and then falls, slowly. "
    "The constraint of FedSGM goes down below its level and stays there, that "
    "of averaging rises. FedSGM misses few tumours, averaging all of them.",
    caption="Objective, constraint and share of malignant tumours that are "
    "missed; bands are one standard deviation over seeds.",
    size=(8.6, 3.0),
)

# %% tags=["nbval-check-output"]
from papers.kit.claims import check

end = {name: trace.late("g").max() for name, trace in traces.items()}
bits = {name: trace.info["bits_up"] for name, trace in traces.items()}
more = bits["FedSGM"] - bits["FedAvg"]
check("FedSGM keeps the level, up to a tenth", end["FedSGM"] < 1.1 * level)
check("averaging, which ignores it, does not", end["FedAvg"] > 1.1 * level)
_ = check("a client sends one number more", bool((more == 4 * 32).all()))

# %% [markdown]
# ## Take the model back
#
# `load_into` puts the final model of a seed into a module like the one that the problem was made of; `state_dict` gives its numbers alone.

# %% tags=["nbval-check-output"]
network = traces["FedSGM"].load_into(models.mlp((30, 8, 1)), seed=seeds[0])
rows = torch.tensor(frame[features.columns].to_numpy(), dtype=torch.float32)
with torch.no_grad():
    found = network(rows).squeeze(-1) > 0
print(found.shape, found.dtype)

# %% [markdown]
# ## Save and compare
#
# A saved run is one file. `compare` takes two, or the names of runs that are stored with this book, and says what differs in their configuration and in their results; `python -m papers compare` is the same [at the command line](../book/rerun.md).

# %%
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
for name, trace in traces.items():
    trace.save(folder / f"{name}.json")
comparison = compare(folder / "FedSGM.json", folder / "FedAvg.json")

# %% tags=["nbval-check-output"]
print(comparison.differences)

# %%
comparison.finals

# %% [markdown]
# ## When a line is wrong
#
# Every check happens before the first round, and every error is one sentence: who complains, about what, what was given, what to do. Below is the call from above with one argument changed at a time.

# %%
from functools import partial
from textwrap import fill

make = partial(
    problems.from_frame,
    client="hospital",
    target="malignant",
    module=models.mlp((30, 8, 1)),
    objective=benign,
    constraint=malignant,
)


def caught(mistake):
    try:
        mistake()
    except (ValueError, TypeError) as error:
        print(fill(f"{type(error).__name__}: {error}", 78))
    else:
        raise AssertionError("no error")


# %% [markdown]
# **A column that is not there**, or was misspelt:

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, features=["mean area", "mean perimiter"]))

# %% [markdown]
# **Gaps in the data.** They are not filled in silently:

# %% tags=["nbval-check-output", "raises"]
gaps = frame.copy()
gaps.loc[gaps.index[:5], "mean area"] = np.nan
caught(lambda: make(gaps))

# %% [markdown]
# **A network of the wrong width:**

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, module=models.mlp((29, 8, 1))))

# %% [markdown]
# **Outputs of shape `[B, 1]`** against targets of shape `[B]`, which would broadcast to a matrix:

# %% tags=["nbval-check-output", "raises"]
def squares(rows):
    return rows.mean((rows.output - rows.target) ** 2)


caught(lambda: make(frame, objective=squares))

# %% [markdown]
# **A constraint that returns a vector:**

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, constraint=losses))

# %% [markdown]
# **A plain mean**, which would count padding:

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, constraint=lambda rows: losses(rows).mean()))


# %% [markdown]
# **An `if` on a tensor.** All hospitals are computed at once, and one branch cannot serve them all:

# %% tags=["nbval-check-output", "raises"]
def branching(rows):
    if rows.target.sum() > 0:
        return malignant(rows)
    return 0 * benign(rows)


caught(lambda: make(frame, constraint=branching))

# %% [markdown]
# **A hospital without rows**, which a filtered category leaves behind:

# %% tags=["nbval-check-output", "raises"]
category = frame.astype({"hospital": "category"})
caught(lambda: make(category[category.hospital != 3]))

# %% [markdown]
# **More participants than clients:**

# %% tags=["nbval-check-output", "raises"]
crowd = fl.FedAvg(lr=0.3, local_steps=5, participants=12)
caught(lambda: fl.run(crowd, problem, rounds=1))

# %% [markdown]
# **A step size that is too large** shows only in the run, which stops and says where:

# %% tags=["raises"]
hasty = fl.FedAvg(lr=1e40, local_steps=5, participants=4)
try:
    fl.run(hasty, problem, rounds=9, progress=False)
except fl.Diverged as error:
    print(fill(str(error), 78))

# %% [markdown]
# ## What to change next
#
# * **Another level or method**: the [parameters](../book/rerun.md) of this notebook, or any method of the [API page](../book/api.md) that takes one objective and one constraint. `fl.PenaltyFedAvg` is the next to try.
# * **Less to send**: `uplink=fl.TopK(0.1)` in `fl.FedSGM`; `trace.info["bits_up"]` counts what crosses the line.
# * **Several objectives**: `objective=[benign, malignant]` without a constraint, and `fl.FedCMOO`.
# * **Data that no client trains on**: `heldout=other_frame`; measures are then taken there.
# * **A GPU**: `fl.run(..., device="cuda")`.
# * **A method of your own**: the [next page](tutorial_algorithm.ipynb).
