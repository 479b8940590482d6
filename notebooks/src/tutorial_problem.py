# %% [markdown]
# # Bring your own problem
#
# In about thirty lines, this page adds a constraint to the training of a network. It starts from a table whose rows
# belong to different owners, and a second loss that must stay below a level.
#
# In the example, eight hospitals hold the Breast Cancer Wisconsin data {cite}`wolberg1995breast`. The network should
# have a small loss on benign tumours, *while* its loss on malignant tumours stays below a level.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer rounds and seeds
rounds = None  # communication rounds; None: 150 in the full profile, 30 in the quick one
seeds = None  # list of seeds; None: five in the full profile, two in the quick one
level = 0.1  # what the constraint must stay below

# %% [markdown]
# ## A table with a client column
#
# The table has one row for each sample. It contains only numbers, and the features are standardized. One column says to
# which hospital a row belongs. Here the hospital depends on the tumour's radius plus noise, so hospitals differ in size
# and in their patients. To use your own table, replace this cell.

# %%
import numpy as np
import seaborn as sns
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
# You can use any `nn.Module`, with or without dropout. Frozen parameters are not trained. Batch norm must be in eval
# mode, because its running statistics would be a state besides the parameters. This page uses `models.mlp`, an
# `nn.Sequential` with reproducible initial parameters. The objective, the constraint and the measures are functions of
# `rows`, the rows of one client:
#
# * `rows.output` is the output of the network for these rows, `rows.target` is the target, and `rows.columns[name]` is
#   any other column.
# * `rows.mean(values)` averages one number per row, and `rows.mean(values, where=condition)` averages over some rows
#   only. Do not use `values.mean()`: clients of different size are padded to equal length, and only `rows.mean` leaves
#   the padding out.
#
# Each objective, constraint and measure returns *one* number. Methods need the gradient of the constraint, so the
# constraint is a loss. The share of missed tumours has no useful gradient, so it is a *measure*, which is only
# reported.

# %%
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

import fedlib as fl
from fedlib import models, problems
from papers.compare import compare
from papers.kit import plot
from papers.kit.display import displayed
from papers.kit.parameters import settle
from papers.kit.quantities import curves


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
# `problems.from_frame` has already tested the network, each function and its gradient on the hospitals' rows. For data
# that are not a table, such as pictures, use `problems.from_clients`, as in [Bring your own data](tutorial_own.ipynb).

# %% tags=["nbval-check-output"]
print(f"{problem.num_clients} clients with {problem.sizes} rows")
print(f"{problem.dim} parameters, {problem.num_constraints} constraint")

# %% [markdown]
# ## Two methods
#
# The more the constraint is violated, the more weight FedSGM {cite}`fedsgm2025` gives to the constraint's gradient, and
# the less to the objective's. Federated averaging (FedAvg) {cite}`mcmahan2017fedavg` ignores the constraint, so the
# comparison shows how much the constraint raises the objective. Four of the eight hospitals take part in a round and
# make five local steps. All seeds run as one computation.

# %%
settle(globals(), level=0.1, rounds=(150, 30), seeds=([0, 1, 2, 3, 4], [0, 1]))
common = {"lr": 0.3, "local_steps": 5, "participants": 4}
switching = fl.FedSGM(tolerance=level, switch=fl.Soft(2 / level), **common)
often = {"rounds": rounds, "seeds": seeds, "progress": False}
traces = {
    "FedSGM": fl.run(switching, problem, **often),
    "FedAvg": fl.run(fl.FedAvg(**common), problem, **often),
}

# %% [markdown]
# A run returns a `Trace` with the exact values of all metrics at the start of every round, the values that the rounds
# reported, and the final models. `to_frame()` turns the trace into a table with a row for each seed and round.

# %%
displayed(traces["FedSGM"].to_frame().tail(3).round(3))


# %%
plot.theme()
means = plot.over_seeds(curves(traces), {"f": "f", "g": "g", "missed": "missed"})
means["method"] = means["run"]
grid = sns.relplot(means, hue="method", col="metric", **plot.LINES)
plot.plain_log(grid.axes_dict["g"])
plot.levels([grid.axes_dict["g"]], level, "level")
plot.finish(grid, size=(8.6, 3.0))
plot.show(
    grid,
    alt="Three panels over the rounds. FedAvg's objective falls to zero at "
    "once, FedSGM's rises first and then falls slowly. FedSGM's constraint "
    "stays below its level, FedAvg's rises. FedSGM misses few tumours, "
    "FedAvg all.",
    caption="FedSGM meets the constraint g, FedAvg does not. The third panel "
    "shows the share of malignant tumours that are missed. Bands are one "
    "standard deviation over seeds.",
)

# %% tags=["nbval-check-output"]
from papers.kit.claims import check

end = {name: trace.late("g").max() for name, trace in traces.items()}
bits = {name: trace.info["bits_up"] for name, trace in traces.items()}
extra_bits = bits["FedSGM"] - bits["FedAvg"]
check("FedSGM keeps the level, up to a tenth", end["FedSGM"] < 1.1 * level)
check("averaging, which ignores it, does not", end["FedAvg"] > 1.1 * level)
check("a client sends one number more", bool((extra_bits == 4 * 32).all()))

# %% [markdown]
# ## Take the model back
#
# `load_into` copies the final model of one seed into a module of the same architecture; `state_dict` returns only the
# parameters.

# %% tags=["nbval-check-output"]
network = traces["FedSGM"].load_into(models.mlp((30, 8, 1)), seed=seeds[0])
rows = torch.tensor(frame[features.columns].to_numpy(), dtype=torch.float32)
with torch.no_grad():
    predictions = network(rows).squeeze(-1) > 0
print(predictions.shape, predictions.dtype)

# %% [markdown]
# ## Save and compare
#
# A saved run is one file. `compare` takes two such files, or names of runs stored with this book, and shows how their
# configurations and results differ; so does `python -m papers compare` on the [command line](../book/rerun.md).

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
displayed(comparison.finals)

# %% [markdown]
# ## When a line is wrong
#
# The library checks its arguments before the first round. Each cell below has one wrong argument, of
# `problems.from_frame` or, in the last two cells, of `fl.FedAvg`.

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
# **A column is missing**, or its name is misspelled:

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, features=["mean area", "mean perimiter"]))

# %% [markdown]
# **The data have missing values.** The library does not fill them in silently:

# %% tags=["nbval-check-output", "raises"]
gaps = frame.copy()
gaps.loc[gaps.index[:5], "mean area"] = np.nan
caught(lambda: make(gaps))

# %% [markdown]
# **The network has the wrong input width:**

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, module=models.mlp((29, 8, 1))))

# %% [markdown]
# **The outputs have the shape `[B, 1]`** and the targets the shape `[B]`, so their difference would broadcast to a
# matrix:

# %% tags=["nbval-check-output", "raises"]
def squares(rows):
    return rows.mean((rows.output - rows.target) ** 2)


caught(lambda: make(frame, objective=squares))

# %% [markdown]
# **The constraint returns a vector:**

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, constraint=losses))

# %% [markdown]
# **The constraint uses a plain mean**, which would count padding:

# %% tags=["nbval-check-output", "raises"]
caught(lambda: make(frame, constraint=lambda rows: losses(rows).mean()))


# %% [markdown]
# **The constraint branches on a tensor.** All hospitals are computed at once, so Python cannot take different branches
# for different hospitals:

# %% tags=["nbval-check-output", "raises"]
def branching(rows):
    if rows.target.sum() > 0:
        return malignant(rows)
    return 0 * benign(rows)


caught(lambda: make(frame, constraint=branching))

# %% [markdown]
# **A hospital has no rows,** for example after filtering a table by a categorical column:

# %% tags=["nbval-check-output", "raises"]
category = frame.astype({"hospital": "category"})
caught(lambda: make(category[category.hospital != 3]))

# %% [markdown]
# **The method asks for more participants than there are clients:**

# %% tags=["nbval-check-output", "raises"]
crowd = fl.FedAvg(lr=0.3, local_steps=5, participants=12)
caught(lambda: fl.run(crowd, problem, rounds=1))

# %% [markdown]
# **The step size is too large.** Only the run can detect this error. The run stops and names the round in which it
# diverged:

# %% tags=["raises"]
hasty = fl.FedAvg(lr=1e40, local_steps=5, participants=4)
try:
    fl.run(hasty, problem, rounds=9, progress=False)
except fl.Diverged as error:
    print(fill(str(error), 78))

# %% [markdown]
# ## What to change next
#
# * To try another level, change this notebook's [parameters](../book/rerun.md).
# * For another method, see the [API page](../book/api.md), for example `fl.PenaltyFedAvg`.
# * To send less, set `uplink=fl.TopK(0.1)` in `fl.FedSGM`. `trace.info["bits_up"]` counts the bits sent to the server.
# * For several objectives, pass `objective=[benign, malignant]` without a constraint, and use `fl.FedCMOO`.
# * To compute measures on data that no client trains on, pass `heldout=other_frame`.
# * To use a GPU, call `fl.run(..., device="cuda")`.
# * To write your own method, continue with the [next tutorial](tutorial_algorithm.ipynb).
