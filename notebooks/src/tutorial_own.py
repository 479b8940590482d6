# %% [markdown]
# # Bring your own data
#
# In each of five situations, at most fifteen lines of code lead from the data to a plot of the training curve. Choose the situation closest
# to yours and replace its data by your own. Two further tutorials explain [a problem with a
# constraint](tutorial_problem.ipynb) and [a method of your own](tutorial_algorithm.ipynb) in detail.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer rounds and seeds
rounds = None  # communication rounds; None: 100 in the full profile, 20 in the quick one
seeds = None  # list of seeds; None: three in the full profile, two in the quick one

# %%
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as two_classes
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import fedlib as fl
from fedlib import models, problems
from papers.kit import plot
from papers.kit.parameters import settle
from papers.kit.quantities import curves

plot.theme()
settle(globals(), rounds=(100, 20), seeds=([0, 1, 2], [0, 1]))
often = {"rounds": rounds, "seeds": seeds, "progress": False}


def show(traces, metric):
    means = plot.over_seeds(curves(traces), {metric: metric})
    means["method"] = means["run"]
    colors = plot.COLORS[1:] if "FedCMOO" in traces else plot.COLORS  # its own in all figures
    grid = sns.relplot(means, hue="method", palette=colors[: len(traces)], **plot.LINES)
    plot.finish(grid, size=(5.6, 2.8))
    names = " and ".join(traces)
    ends = [trace.metrics[metric][:, -1].mean() for trace in traces.values()]
    values = " and ".join(f"{end:.2f}" for end in ends)
    plot.show(
        grid,
        alt=f"{metric} of {names} over the rounds, at the end {values}.",
        caption=f"{metric} of {names}: means over {len(seeds)} seeds, "
        "bands one standard deviation.",
    )


# %% [markdown]
# ## What is minimized, and what is measured
#
# Objectives and measures are functions of `rows`, the rows of one client. `rows.output` is the output of the module for
# these rows, `rows.target` is the target, and `rows.mean` averages one number per row. A *measure* is only reported; no
# method minimizes it.


# %%
def two_class_loss(rows):
    values = two_classes(rows.output.squeeze(-1), rows.target, reduction="none")
    return rows.mean(values)


def many_class_loss(rows):
    values = cross_entropy(rows.output, rows.target, reduction="none")
    return rows.mean(values)


def right(rows):
    predicted = rows.output.squeeze(-1) > 0
    return rows.mean(predicted == (rows.target == 1))


def right_digit(rows):
    predicted = rows.output.argmax(1)
    return rows.mean(predicted == rows.target)


# %% [markdown]
# ## A table with a client column
#
# The table has one row for each sample, and one column names the client. All columns must be numeric;
# `pandas.get_dummies` turns a text column into columns of numbers.

# %%
table = load_breast_cancer(as_frame=True)
frame = (table.data - table.data.mean()) / table.data.std()
frame["malignant"] = 1.0 - table.target
frame["hospital"] = np.digitize(frame["mean radius"], [-1, -0.5, 0, 0.5, 1])

# %% tags=["situation"]
problem = problems.from_frame(
    frame,
    client="hospital",
    target="malignant",
    module=models.linear(30, 1),
    objective=two_class_loss,
    measures={"accuracy": right},
)
method = fl.FedAvg(lr=0.1, local_steps=5, participants=3)
show({"FedAvg": fl.run(method, problem, **often)}, "accuracy")

# %% [markdown]
# ## A list of DataLoaders, and a module
#
# `from_clients` takes one entry for each client. An entry is a DataLoader or a Dataset (read once, with its
# `collate_fn`), for example of a folder of images, a pair of tensors or arrays, or a dict of inputs and labels. The module can be any `nn.Module`.
# Measures are computed without dropout.

# %%
x, y = load_digits(return_X_y=True)
pictures = torch.tensor(x / 16).float().view(-1, 1, 8, 8)
labels = torch.tensor(y)
parity = torch.arange(len(labels)) % 2
order = (labels + 10 * parity).argsort()
rows_of_clients = order.chunk(10)  # two digits each
loaders = []
for rows in rows_of_clients:
    dataset = TensorDataset(pictures[rows], labels[rows])
    loaders.append(DataLoader(dataset, batch_size=16))

first_layer = models.mlp((64, 32))
last_layer = models.mlp((32, 10))
module = nn.Sequential(nn.Flatten(), first_layer, nn.ReLU(), nn.Dropout(0.2), last_layer)

# %% tags=["situation"]
problem = problems.from_clients(
    loaders,
    module=module,
    objective=many_class_loss,
    measures={"accuracy": right_digit},
)
method = fl.FedAvg(lr=0.3, local_steps=5, participants=5, batch_size=16)
trace = fl.run(method, problem, **often)
show({"FedAvg": trace}, "accuracy")

# %% [markdown]
# `load_into` copies the trained parameters into your own module.

# %% tags=["nbval-check-output"]
trace.load_into(module, seed=seeds[0]).eval()
with torch.no_grad():
    predicted = module(pictures).argmax(1)
accuracy = (predicted == labels).double().mean().item()
print(abs(accuracy - trace.metrics["accuracy"][0, -1]) < 0.01)

# %% [markdown]
# ## Clients of very unequal size
#
# Clients may hold very different amounts of data. To compute clients together, the library pads their data to equal length, but only within groups of clients of similar
# size. Minibatches are drawn with replacement, even from a client with fewer rows than a minibatch. With
# `replace(problem, whole_batches=True)`, such a client uses each row once. By default, as in the papers, all clients
# have equal weights. `weights="rows"` weighs all *rows* equally, as in the original FedAvg
# {cite}`mcmahan2017fedavg`. A list of numbers sets arbitrary weights.

# %%
sizes = [800, 500, 200, 100, 80, 40, 20, 10, 5, 2, 40]
x_of_clients = pictures.flatten(1).split(sizes)
y_of_clients = labels.split(sizes)
*uneven, heldout = zip(x_of_clients, y_of_clients, strict=True)

# %% tags=["situation"]
make = partial(
    problems.from_clients,
    uneven,
    module=models.mlp((64, 10)),
    objective=many_class_loss,
    measures={"accuracy": right_digit},
    heldout=heldout,
)
method = fl.FedAvg(lr=0.3, local_steps=5, participants=5, batch_size=32)
equal_clients = fl.run(method, make(), **often)
equal_rows = fl.run(method, make(weights="rows"), **often)
show({"equal clients": equal_clients, "equal rows": equal_rows}, "accuracy")

# %% [markdown]
# ## A fairness constraint
#
# The gap between two groups is the absolute difference between their mean predicted probabilities over the rows of all
# clients. It is not the mean of the clients' own gaps, because a client with only one group has no gap. With
# `GroupGap`, every client therefore sends sums and counts of both groups. The gap over all rows measures demographic
# parity; the gap over the rows with target 1 (`given=1`), equal opportunity. FedSGM {cite}`fedsgm2025` keeps the gap
# below a tolerance. Any other constraint is a function like the objective; from a list of such functions, FedSGM takes
# the largest value.

# %%
rng = np.random.default_rng(0)
n = 2000
people = pd.DataFrame({"job": rng.choice(["clerk", "nurse", "driver"], n)})
people["woman"] = rng.integers(0, 2, n)
people["bank"] = rng.integers(0, 8, n)
people["income"] = rng.normal(size=n) - 0.8 * people.woman
people["repaid"] = (people.income + rng.normal(size=n) > 0).astype(float)

# %% tags=["situation"]
problem = problems.from_frame(
    pd.get_dummies(people, columns=["job"], dtype=float),
    client="bank",
    target="repaid",
    module=models.linear(4, 1),
    objective=two_class_loss,
    constraint=problems.GroupGap("woman"),
)
work = {"lr": 0.3, "local_steps": 5, "participants": 4}
fair = fl.FedSGM(**work, tolerance=0.05, switch=fl.Soft(40))
traces = {"FedSGM": fl.run(fair, problem, **often)}
traces["FedAvg"] = fl.run(fl.FedAvg(**work), problem, **often)
show(traces, "g")

# %% [markdown]
# ## Several objectives
#
# If `objective` is a list, FedCMOO {cite}`askin2025fedcmoo` moves in a direction in which all objectives decrease. It
# favors objectives with short gradients, so it would neglect a loss of much larger scale, such as `large` below.
# `problem.scaled()` therefore divides each loss by its value at the start. To fix the weights of the objectives
# instead, use `FedCMOO(..., weights=(3, 1))`.

# %%
is_odd = labels % 2
is_large = labels // 5
targets = torch.stack([is_odd, is_large], 1).float()
clients = [(pictures[rows].flatten(1), targets[rows]) for rows in rows_of_clients]


# %% tags=["situation"]
def odd(rows):
    values = two_classes(rows.output[:, 0], rows.target[:, 0], reduction="none")
    return rows.mean(values)


def large(rows):
    values = two_classes(rows.output[:, 1], rows.target[:, 1], reduction="none")
    return 50 * rows.mean(values)


module = models.mlp((64, 32, 2))
problem = problems.from_clients(clients, module=module, objective=[odd, large])
method = fl.FedCMOO(lr=0.3, local_steps=5, participants=5, batch_size=16)
trace = fl.run(method, problem.scaled(), **often)
show({"FedCMOO": trace}, "f_2")

# %% [markdown]
# ## Go on, stop early, keep the best
#
# To continue a finished run, pass `start=trace`; the result equals that of one longer run. With `checkpoint="run.pt"`,
# a later process can continue the run. A `callback` sees every evaluation and can stop the run or keep a copy of the
# best model. If the model becomes infinite or NaN, the run stops with `fl.Diverged`, which names the round and holds the
# last finite state: take a smaller step size. `schedules` multiplies a field of the method by a function of the round.

# %%
best = {}


def keep_best(round_, metrics, state):
    f = metrics["f"][0, 0].item()
    if f < best.get("f", np.inf):
        best.update(f=f, round=round_, w=state.w[0, 0].clone())
    return f < 0.1  # stop there


halved = {"lr": lambda t: 0.5 ** (t // 50)}
method = fl.FedAvg(lr=0.3, local_steps=5, participants=4)
once = {"seeds": [0], "progress": False, "schedules": halved}
half = fl.run(method, problem, rounds=10, **once)
finished = fl.run(method, problem, rounds=20, start=half, callback=keep_best, **once)

# %% tags=["nbval-check-output"]
print(finished.rounds[-1], sorted(best))
