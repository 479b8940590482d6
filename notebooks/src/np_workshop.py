# %% [markdown]
# # Neyman-Pearson classification, workshop paper
#
# **The book's result.** Hard and soft switching both bring the constraint to its level. The paper says that soft
# switching has about four times fewer violating rounds than hard switching, but prints no step size. At 0.3 this is so
# in {result}`np_workshop/about_four:.0%` of the settings that it leaves open, at 0.1 in
# {result}`np_workshop/lr0.1.about_four:.0%` and at 1 in {result}`np_workshop/lr1.about_four:.0%`. The paper also says
# that soft switching does not compromise the convergence. The objective over the last 20 rounds is higher than under
# hard switching, at $\beta=20$ by {result}`np_workshop/price:.1%` and at $\beta=60$ by
# {result}`np_workshop/beta60.price:.1%` of the fall from the start. As the level that remains is small, that is
# {result}`np_workshop/loss_ratio:.2f` and {result}`np_workshop/beta60.loss_ratio:.2f` times the level of hard switching.
# The paper prints no $\beta$ here; from 20, the theory's $2/\epsilon$, to three times that is the full paper's rule.
#
# The workshop paper {cite}`upadhyay2025switching` asks for a classifier that is good on the majority class *while* its
# loss on the minority class stays below a level. Ten clients hold equal parts of the Breast Cancer Wisconsin data
# {cite}`wolberg1995breast`. In every round each client takes five local steps and sends one in ten coordinates of the
# change of its model. **Hard** switching works on the constraint if it is violated, and otherwise on the objective.
# **Soft** switching works on a mixture. The weight of the constraint grows with the loss on the minority class, along a
# ramp that reaches 1 where this loss is at the level.
#
# The paper's Figure 1 averages over three seeds, ours over sixty. We draw a new split of the data with every seed; whether
# the paper does is not said.
#
# :::{admonition} The problem
# :class: note
# Let $\phi(w;x,y)=-y\,w^\top x+\log(1+e^{w^\top x})$ be the logistic loss and $D_j$ the rows of client $j$. The
# problem, with the classes 0 and 1, is
#
# $$
# \begin{aligned}
# \min_w\quad & f(w)=\frac1N\sum_{j=1}^N\mathop{\rm mean}_{i\in D_j,\,y_i=0}\phi(w;x_i,y_i)\\
# \text{subject to}\quad & g(w)=\frac1N\sum_{j=1}^N\mathop{\rm mean}_{i\in D_j,\,y_i=1}\phi(w;x_i,y_i)\le\epsilon .
# \end{aligned}
# $$
#
# Class 0 is benign (357 rows) and class 1 malignant (212 rows). The published text does not say which class is which,
# so {claim}`fedsgm/C3` is also judged with the two exchanged. Features are z-scored, and the model has no bias.
# Training starts at $w_0=0$. There $f=g=\log 2$ exceeds the level, so every run begins by working on the constraint.
# :::

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": the paper's setting on sixty splits; "quick": three splits, short sweeps
seeds = None  # seeds; each fixes partition and compressors: full 8100 to 8159; quick 0, 1, 2
rounds = 100  # communication rounds T
clients = 10  # clients n, all of which take part
lr = 0.3  # step size of the main curves
lrs = None  # step sizes of the sweep: full 0.01, 0.03, 0.1, 0.2, 0.5, 1; quick 0.1, 1
tolerance = 0.1  # switching threshold and level of the constraint, epsilon
beta = 20.0  # sharpness of soft switching
betas = None  # sharpnesses of the sweep: full 5, 10, 40, 60, 200; quick 5, 200
fraction = 0.1  # K/d of the Rand-K uplink
local_steps = 5  # local steps E
fresh = None  # seeds that judge claim C25 alone: full 1000 to 1399; quick 1000, 1001
drift_seeds = None  # seeds that judge claim C40 alone: full 8300 to 8329; quick 8300, 8301
drift_lrs = None  # step sizes at which the drift is measured: full 0.1, 0.3, 1; quick 0.3
settle_rounds = None  # rounds of the uncompressed runs for predictions P1 and P2: full 2000; quick 120
many = None  # whether the settings that the paper leaves open are run: full True; quick False
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
from dataclasses import replace

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from fedlib import FedSGM, data
from fedlib.compress import RandK
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from papers import STUDIES
from papers.fedsgm.np_workshop.runs import defaults
from papers.kit import plot, report
from papers.kit.claims import check
from papers.kit.quantities import name_of

plot.theme()
page = STUDIES["np_workshop"].page(globals())

# %% [markdown]
# ## The experiment


# %%
def problem(seed):
    """560 of the 569 patients, split equally over the clients anew for every seed."""
    table = data.breast_cancer("malignant")
    about = {"data": "breast_cancer", "positive": "malignant"}
    return neyman_pearson(table.X, table.y, clients=page.clients, seed=seed, config=about)


hard = FedSGM(
    lr=page.lr,
    local_steps=page.local_steps,
    participants=page.clients,
    tolerance=page.tolerance,
    switch=Hard(),
    uplink=RandK(page.fraction),
    error_feedback=False,
)
traces = page.run(problem, hard=hard, soft=replace(hard, switch=Soft(page.beta)))
numbers = page.numbers
usual = defaults(page.params)

# %% [markdown]
# ## Figure 1: hard against soft
#
# Soft switching has $\beta=20$ unless stated otherwise. Curves are means over the seeds. Bands show one standard
# deviation (left, middle) or the range over the seeds (right). $f$ and $g$ are computed on all clients' data at the
# start of each round.

# %%
shown = page.curves(["switch"], usual)
shown["count"] = (shown["g"] > page.tolerance).groupby([shown["run"], shown["seed"]]).cumsum()
both = {"f": "objective f (majority class)", "g": "constraint g (minority class)"}
before_last = shown[shown["round"] < page.rounds]
count = plot.over_seeds(before_last, {"count": "violating rounds so far"}, around=None)
means = pd.concat([plot.over_seeds(shown, both), count], ignore_index=True)
grid = sns.relplot(means, hue="switch", col="metric", **plot.LINES)
for words in both.values():
    plot.plain_log(grid.axes_dict[words])
plot.levels([grid.axes_dict[both["g"]]], page.tolerance, "level")
plot.finish(grid, size=(9.6, 3.0))
plot.show(
    grid,
    "figure_1",
    alt="Three panels over the rounds. Left: the objective falls under both rules and ends lower under hard "
    "switching. Middle: the constraint stays near the level under hard switching and settles "
    "below it under soft. Right: violations keep growing under hard switching and stop early under soft.",
    caption="Hard switching stays near the level and keeps violating it; soft switching settles below it, "
    "at a larger objective than hard switching. "
    "Curves are means over the seeds. Bands are one standard deviation, at the right from the lowest to the highest seed.",
)

# %% tags=["hide-input"]
report.runs_table(
    page,
    {"hard": "hard", "soft": "soft"},
    {
        "violations": "violating rounds",
        "after": "violations after first feasible round",
        "f": "late f",
        "g": "late g",
        "jitter": "std of late g",
    },
)

# %% [markdown]
# *Late* values are means over the last 20 rounds. Intervals are 95 % confidence intervals over the seeds.
#
# ## "About four times fewer violations" depends on the step size
#
# The ratio of violating rounds, hard divided by soft, grows with the step size. Under soft switching only the rounds of
# the initial descent violate the constraint, and a larger step size shortens this descent. Under hard switching, late
# rounds violate it as well, because the objective pushes the model back over the level again and again. A larger step
# size does not reduce these late violations.

# %%
counts = numbers.by_seed({"violations": "violating rounds"}, ["switch", "lr"])
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
sns.lineplot(counts, x="lr", hue="switch", ax=left, **plot.DOTS)
ratios = numbers.rows("ratio", ["lr"]).sort_values("lr")
reach = [ratios["value"] - ratios["low"], ratios["high"] - ratios["value"]]
right.errorbar(ratios["lr"], ratios["value"], reach, marker="o", capsize=3, color=plot.COLORS[2])
plot.levels([right], 4.0, "the paper's 4")
left.set(xscale="log", xlabel="step size", title="violating rounds", ylabel="")
right.set(xscale="log", xlabel="step size", title="violations, hard divided by soft")
plot.show(
    figure,
    "learning_rates",
    data=counts,
    alt="Left: violating rounds against the step size. Both counts fall at first; then that of hard switching stays "
    "level while that of soft switching keeps falling. Right: their ratio rises and crosses the paper's 4 once.",
    caption="The ratio of violations rises with the step size and passes the paper's 4 only once. "
    "Bars are 95 % intervals.",
)

# %% [markdown]
# The sharpness $\beta$ hardly changes the violations of soft switching, but it changes where objective and constraint
# settle. At $\beta=200$ the late objective is {result}`np_workshop/beta200.loss_ratio:.2f` times that of hard
# switching.

# %%
late = {"f": "late objective f", "g": "late constraint g", "violations": "violating rounds"}
ends = numbers.by_seed(late, ["beta"], switch="soft")
grid = sns.relplot(
    ends,
    x="beta",
    col="metric",
    kind="line",
    color=plot.COLORS[1],
    facet_kws={"sharey": False},
    **plot.DOTS,
)
grid.set(xscale="log", xlabel="sharpness beta")
plot.levels([grid.axes_dict[late["g"]]], page.tolerance, "level")
grid.axes_dict[late["violations"]].set_ylim(0, None)
plot.finish(grid, size=(8.6, 3.0))
plot.show(
    grid,
    "sharpness",
    alt="Three panels against beta. The late objective falls, the late constraint rises to the "
    "level, and the number of violating rounds is constant.",
    caption="With a larger sharpness, soft switching has a lower late objective and a constraint closer to the "
    "level, but as many violations.",
)

# %% [markdown]
# ## The drift of the clients
#
# The paper says that hard switching amplifies the drift of the clients. The table has the root mean square distance of
# the local models, after their local steps, from their mean, without compression ({claim}`fedsgm/C40`).

# %%
runs = {}
for mode in ("hard", "soft"):
    for lr in page.drift_lrs:
        labels = {"switch": mode, "lr": float(lr), "fraction": 1.0, "splits": "drift"}
        runs[f"{mode}, step size {lr:g}"] = name_of(labels, usual)
report.runs_table(page, runs, {"drift": "over the run", "late_drift": "second half"})

# %% [markdown]
# ## Two predictions
#
# Two formulas predict how often hard switching violates the constraint and where soft switching settles. Let $\sigma$
# be the weight of the constraint in a step. At a stationary point, the steps along the objective and along the
# constraint cancel:
#
# $$
# (1-\sigma)\nabla f(w)+\sigma\nabla g(w)=0
# \quad\Longleftrightarrow\quad
# \frac{\sigma}{1-\sigma}=\lambda=\frac{\lVert\nabla f(w)\rVert}{\lVert\nabla g(w)\rVert}.
# $$
#
# Here $\lambda$ is the multiplier of the constraint. Under hard switching $\sigma$ is 0 or 1, so only its mean over
# late rounds can be $\lambda/(1+\lambda)$. This mean is the share of violating rounds (prediction **P1**). Under soft
# switching $\sigma$ itself is $\lambda/(1+\lambda)$. Solving its ramp $\sigma=1+\beta(g-\epsilon)$ for $g$ shows that
# the constraint settles at
#
# $$
# g=\epsilon-\frac1{\beta(1+\lambda)}<\epsilon ,
# $$
#
# so violations stop (prediction **P2**). Long runs without compression agree with both
# predictions; for the table, $\lambda$ is computed from the gradients at the final model.

# %% tags=["hide-input"]
report.runs_table(
    page,
    {"P1: share of constraint rounds, hard": "share", "P2: level of g, soft": "level"},
    {"predicted": "predicted", "measured": "measured", "gap": "mean difference"},
)

# %% tags=["hide-input", "nbval-check-output"]
check("soft switching has fewer violating rounds", numbers["ratio"].low > 1)
check(
    "soft switching has no violation after its first feasible round",
    numbers["soft.after"].value == 0,
)
check("hard switching violates again after its first feasible round", numbers["hard.after"].low > 0)
check("the late g of soft switching is below the level", numbers["soft.g"].high < page.tolerance)
check(
    "at the main beta the late objective of soft switching is larger", numbers["loss_ratio"].low > 1
)
check(
    "P1: the predicted share is within 0.1 of the measured one", numbers["share.gap"].value <= 0.1
)
check(
    "P2: the predicted level is within epsilon/10 of the measured one",
    numbers["level.gap"].value <= 0.01,
)
if {0.1, 1.0} <= {*page.lrs}:
    fast = numbers["soft_lr1.violations"]
    slow = numbers["soft_lr0.1.violations"]
    check("soft switching has fewer violations at step size 1 than at 0.1", fast.high < slow.low)

# %% [markdown]
# ## The paper against ours
#
# `agrees` means that the printed value is within a tolerance of ours; `open` means that it is outside this
# tolerance but inside our 95 % interval.

# %%
report.paper_table(page)

# %% [markdown]
# ## Verdicts
#
# The [claims page](../book/claims.md) shows the rules behind these verdicts.

# %%
report.claims_table(page)

# %% [markdown]
# ## What the paper leaves open
#
# | Open in the paper | Our choice | Remark |
# | --- | --- | --- |
# | step size | 0.3, where the ratio of violating rounds is near the printed one | The ratio depends on it. |
# | sharpness $\beta$ | 20, the theory's $2/\epsilon$; 20, 40 and 60 in the open settings, by the rule of the full paper; 200 in one verdict on {claim}`fedsgm/C4` | The late objective and constraint depend on it. |
# | share $K/d$ of coordinates that Rand-K sends | 0.1, as in the full paper | {claim}`fedsgm/C3` is judged with 0.1 and 1. |
# | margins | 5 % of the fall from the start in the first verdict on {claim}`fedsgm/C4`, 5 % of the level in the second | "Without compromising" names no size. |
# | split | equal sizes and class counts, redrawn for every seed | Each client has 35 benign and 21 malignant rows. |
#
# ```{provenance} np_workshop
# ```
#
# ```{notebook-links} np_workshop
# ```
