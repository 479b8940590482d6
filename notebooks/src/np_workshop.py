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
# # Neyman-Pearson classification, workshop paper
#
# **Result.** Both rules bring the constraint to its level. Soft switching has about four times fewer violations
# at two of the seven step sizes that we tried; the paper prints no step size. It does compromise the convergence at the
# sharpnesses $\beta$ that the authors name, 20 to 60: the late objective is
# {result}`np_workshop/loss_ratio.main:.2f` to {result}`np_workshop/loss_ratio.beta60:.2f` times that of hard
# switching.
#
# The workshop paper {cite}`upadhyay2025switching` asks for a classifier that is good on the majority
# class *while* its loss on the minority class stays below a level. Ten clients hold equal parts of
# the Breast Cancer Wisconsin data {cite}`wolberg1995breast`; every round each of them takes five local
# steps and sends one in ten coordinates of the result. Two rules decide whether a round works on
# the objective or on the constraint: **hard** switching (all or nothing) and **soft** switching (a
# ramp that ends at the level).
#
# The paper's Figure 1 has three splits; here there are sixty. Two formulas below say why the
# runs come out as they do, and the runs follow them.
#
# :::{admonition} The problem
# :class: note
# With $\phi(w;x,y)=-y\,w^\top x+\log(1+e^{w^\top x})$ and client $j$'s rows of class 0 and 1,
#
# $$
# \begin{aligned}
# \min_w\quad & f(w)=\frac1N\sum_{j=1}^N\mathop{\rm mean}_{i\in D_j,\,y_i=0}\phi(w;x_i,y_i)\\
# \text{subject to}\quad & g(w)=\frac1N\sum_{j=1}^N\mathop{\rm mean}_{i\in D_j,\,y_i=1}\phi(w;x_i,y_i)\le\epsilon .
# \end{aligned}
# $$
#
# Class 0 is benign (357 rows), class 1 malignant (212 rows); the published text does not say so,
# and {claim}`fedsgm/C3` is judged with the roles swapped too. Features are z-scored, there is no
# bias, $w_0=0$, so that $f=g=\log 2$ and every run starts with a constraint phase.
# :::

# %% tags=["parameters"]
profile = "full"  # "full": the paper's setting on sixty splits; "quick": three splits, short sweeps
seeds = None  # seeds; each fixes partition and compressors: full 100 to 159; quick 0, 1, 2
rounds = 100  # communication rounds T
clients = 10  # clients n, all of which take part
lr = 0.3  # step size of the main curves
lrs = None  # step sizes of the sweep: full 0.01, 0.03, 0.1, 0.2, 0.5, 1; quick 0.1, 1
tolerance = 0.1  # switching threshold and level of the constraint, epsilon
beta = 20.0  # sharpness of soft switching
betas = None  # sharpnesses of the sweep: full 5, 10, 40, 60, 200; quick 5, 200
fraction = 0.1  # K/d of the Rand-K uplink
local_steps = 5  # local steps E
settle_rounds = None  # rounds of the uncompressed runs behind P1 and P2: full 2000; quick 120
fresh = None  # seeds that C25 alone is judged by: full 1000 to 1399; quick 1000 and 1001
many = None  # run the settings that the paper leaves open: full True; quick False
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
from dataclasses import replace

from fedlib import FedSGM, data
from fedlib.compress import RandK
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from papers import STUDIES
from papers.kit import plot, report
from papers.kit.claims import check

page = STUDIES["np_workshop"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and the figures below it change. What is stored under its configuration is
# loaded, anything else is computed; the sweeps repeat the two runs with other values.


# %%
def problem(seed):
    """560 of the 569 patients on equal clients, redrawn for every seed."""
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
numbers, health = page.numbers, page.health

# %% [markdown]
# [The last section](#what-the-paper-leaves-open) lists what the paper leaves open, and what we chose.

# %% [markdown]
# ## Figure 1: hard against soft
#
# Curves are means over the seeds, bands one standard deviation (left, middle) or the range over
# seeds (right). Values are exact: $f$ and $g$ over all clients' data at the start of each round.

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_1"](traces),
    alt="Three panels over the rounds. Left: the objective falls under both rules, under hard "
    "switching a little lower. Middle: hard switching rides on the level, soft settles below it. "
    "Right: violations keep growing under hard switching and stop early under soft.",
    caption="Hard switching rides on the level and keeps violating it; soft switching settles below it, "
    "at a larger objective. Objective, constraint and running count of violating rounds.",
    size=(8.6, 3.0),
)

# %% tags=["remove-input"]
report.runs_table(
    numbers,
    {"hard": "hard", "soft": "soft"},
    {
        "violations": "violating rounds",
        "after": "after the first feasible",
        "f": "late f",
        "g": "late g",
        "jitter": "std of late g",
    },
    health,
)

# %% [markdown]
# ## "About four times fewer violations" depends on the step size
#
# The count under soft switching is the length of the initial descent, which is shorter the larger
# the step. The count under hard switching has a second part that does not shrink: the late rounds
# in which the model is pushed back over the level again and again. So the ratio depends on the
# step size, which the paper does not report:

# %% tags=["remove-input"]
plot.show(
    page.figures["learning_rates"](traces),
    alt="Left: violating rounds against the step size; both fall at first, then hard stays level "
    "while soft keeps falling. Right: their ratio rises steadily and crosses the paper's 4 once.",
    caption="The ratio of violations rises with the step size and passes the paper's 4 only once. "
    "Violating rounds and their ratio; bars are 95 % intervals.",
    size=(8.5, 3.2),
)

# %% [markdown]
# The sharpness $\beta$, on the other hand, hardly changes the count. It decides how far below the
# level soft switching settles, and with it the price in the objective: late objectives of
# {result}`np_workshop/loss_ratio.main:.2f`, {result}`np_workshop/loss_ratio.beta60:.2f` and
# {result}`np_workshop/loss_ratio.beta200:.2f` times that of hard switching at 20, 60 and 200. All
# other figures of this page have $\beta=20$, so what they show of the objective is the price at
# the smallest sharpness, not the price of soft switching:

# %% tags=["remove-input"]
plot.show(
    page.figures["sharpness"](traces),
    alt="Three panels against beta: the late objective falls, the late constraint rises towards the "
    "level, the number of violating rounds is constant.",
    caption="Sharpness trades the objective against the distance from the level and leaves the number of "
    "violations as it is. Soft switching, late values and count.",
    size=(8.6, 3.0),
)

# %% [markdown]
# ## Two predictions
#
# At a stationary point of the switching dynamics the two pulls cancel,
#
# $$
# (1-\sigma)\nabla f(w)+\sigma\nabla g(w)=0
# \quad\Longleftrightarrow\quad
# \frac{\sigma}{1-\sigma}=\lambda=\frac{\lVert\nabla f(w)\rVert}{\lVert\nabla g(w)\rVert},
# $$
#
# where $\lambda$ is the multiplier of the constraint. Hard switching can only realise
# $\sigma=\lambda/(1+\lambda)$ as a *share of rounds*: in that share of the late rounds the constraint
# is violated, so the round works on it (**P1**). Soft switching realises it
# as a weight, $\sigma=1+\beta(g-\epsilon)$, hence settles at
#
# $$
# g=\epsilon-\frac1{\beta(1+\lambda)}<\epsilon ,
# $$
#
# strictly below the level (**P2**), and stops violating. The distance vanishes as $\beta$ grows, and
# the price in the objective with it. Both are checked on long uncompressed runs, with $\lambda$
# taken from the gradients at the final model alone.

# %% tags=["remove-input"]
report.runs_table(
    numbers,
    {"P1: share of constraint rounds, hard": "share", "P2: level of g, soft": "level"},
    {"predicted": "predicted", "measured": "measured", "gap": "mean difference"},
    health,
)

# %% tags=["remove-input", "nbval-check-output"]
check("soft switching has fewer violating rounds", numbers["ratio.main"].low > 1)
check("no violation after the first feasible round (soft)", numbers["soft.after"].value == 0)
check("hard switching does violate again", numbers["hard.after"].low > 0)
check("late g of soft below the level", numbers["soft.g"].high < page.tolerance)
check("late objective of soft at the main beta larger than hard's", numbers["loss_ratio.main"].low > 1)
check("P1: share predicted within 0.1", numbers["share.gap"].value <= 0.1)
check("P2: level predicted within epsilon/10", numbers["level.gap"].value <= 0.01)
if {0.1, 1.0} <= {*page.lrs}:
    fast, slow = numbers["soft_lr1.violations"], numbers["soft_lr0.1.violations"]
    check("fewer violations at step size 1 than at 0.1 (soft)", fast.high < slow.low)

# %% [markdown]
# ## The paper against ours
#
# The paper gives curves and one number. `agrees` means that the printed value is within the stated
# tolerance of ours, `undecided` that it is not and still lies in our 95 % interval over seeds.

# %% tags=["remove-input"]
report.paper_table(page.study, numbers)

# %% [markdown]
# ## Verdicts
#
# The rule of each claim, the runs behind it, and what the other sharpnesses give are on the
# [claims page](../book/claims.md).

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% [markdown]
# ## What the paper leaves open
#
# | open in the paper | chosen here | does it matter? |
# | --- | --- | --- |
# | which class is the majority | class 0 = benign (357 rows) | both are among the settings of {claim}`fedsgm/C3` |
# | step size | 0.3: the ratio is near the printed one | decides the ratio, see above |
# | sharpness $\beta$ | 20, the theory's $2/\epsilon$; 200 for the claim on the price | not for the count; decides the final level and the price |
# | $K/d$ of Rand-K | 0.1, as in the full paper | 0.1 and 1 are among the settings of {claim}`fedsgm/C3` |
# | bias | none | not varied here |
# | standardisation | z-score over the training rows | not varied here |
# | split | equal sizes and class counts, redrawn for every seed | 35 benign and 21 malignant rows a client |
#
# Averages over the last 20 rounds are called *late*; intervals are 95 % confidence
# intervals over the seeds.
#
# ```{provenance} np_workshop
# ```
#
# ```{notebook-links} np_workshop
# ```
