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
# # The arena: one problem, every method that applies
#
# The papers of this book never meet: each has problems, budgets and baselines of its own. Here are four
# small problems of the same shape,
#
# $$
# \min_w f(w)\quad\text{subject to}\quad g(w)\le c,\qquad
# f=\frac1N\sum_j f_j,\quad g=\frac1N\sum_j g_j,
# $$
#
# and every method of the library that can take part, under one protocol that is written down below. No
# method was changed for it: a problem hands out the same two losses as a constraint, as a second
# objective, as a set where $g$ is a norm, or with all rows in one place.

# %% tags=["parameters"]
profile = "full"  # "full": four problems, ten seeds; "quick": two problems, two methods, short runs
seeds = None  # list of seeds, None: the profile's
passes = None  # gradients of every client in a run, None: the profile's
local_steps = None  # local steps E, None: the profile's
grid = None  # values of each parameter in a grid, None: the profile's
stand_in = None  # that many generated people in place of Adult, None: the profile's
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
from IPython.display import Markdown, display

from papers import STUDIES
from papers.arena import report as arena_report
from papers.arena.problems import LEVELS, NAMES
from papers.kit import plot, report
from papers.kit.claims import check

study = STUDIES["arena"]
changes = {"seeds": seeds, "passes": passes, "local_steps": local_steps, "grid": grid}
changes |= {"stand_in": stand_in}
params = study.resolve(profile, **changes)
traces = study.compute(profile, device=device, recompute=recompute, **changes)
numbers = study.numbers(traces, profile, **changes)
health = study.health(traces)
Markdown(arena_report.in_short(numbers))

# %% [markdown]
# ## Four problems
#
# All models are linear, $w\in\mathbb R^d$, and start at 0. The three logistic ones have a ridge
# $\frac{0.03}2\lVert w\rVert^2$ in $f$, so that the optimum is finite and unique.
#
# | | $f$ | $g\le c$ | clients |
# | --- | --- | --- | --- |
# | **Neyman-Pearson**, breast cancer {cite}`wolberg1995breast`, $d=31$ | logistic loss of the benign rows | that of the malignant rows, $c=0.2$ | 8, alike; full gradients |
# | **Fairness**, 6,000 people of Adult {cite}`becker1996adult` drawn anew by every seed, $d=88$ | logistic loss of all rows | mean output of men minus that of women, $c=0.05$ | 10, unequal in sex and income; batches of 64 |
# | **Sparse regression**, generated, $d=100$, ten entries $\pm1$ | half the mean squared error | $\lVert w\rVert_1$ over that of the truth, $c=1$ | 8, with feature scales of their own; full gradients |
# | **Two tasks**, scikit-learn's digits, $d=65$ | logistic loss for "even" (one score for both labels) | that for "five or more", $c=0.6$ | 10, unequal in digits; batches of 32 |
#
# The gap of two groups is one-sided here, and its counts are those of all clients together: so it is a
# mean over clients, which every method can take, where [Fair classification](fairness.ipynb) pools
# statistics. It is not convex; the other three problems are. The optimum on the training rows comes from
# SLSQP with exact gradients and in float64 (Sparse: accelerated projected gradients). Its *residual* is
# $\lVert\nabla f+\lambda\nabla g\rVert$ over $\lVert\nabla f(0)\rVert$, on Sparse the Frank-Wolfe gap over
# $f$; on Fairness it says no more than that the point is stationary. The optimum of the training rows may
# well violate on test rows, and no method that aims at it can do better:

# %% tags=["hide-input"]
arena_report.optima(numbers)

# %% [markdown]
# ## Who takes part, and how
#
# Everybody takes part in every round. *FedAvg* ignores the constraint unless it is a set. The norm of Sparse is not differentiable: methods that want a function get a
# subgradient there, which is outside the theory of SSCA.

# %% tags=["hide-input"]
arena_report.entries()

# %% [markdown]
# ## One protocol
#
# 1. **Rows.** A test set is put aside (a quarter of the rows; for Adult 5,000 of the official test rows;
#    for Sparse 25 rows of every client). A fifth of every client's other rows are for validation. Ten
#    seeds; a seed fixes split or data, and batches.
# 2. **Gradients.** A *pass* is one gradient on one batch of every client, of one loss or of a weighted sum
#    of losses: $E$ local steps are $E$ passes, the Jacobian of two losses is two. Loss values, which are
#    cheaper, are not counted; FedSGM, Penalty-FedAvg and FedCMOO-Pref ask for them on all of a client's
#    rows. Every configuration of every method has the same number of passes.
# 3. **Bits.** The second comparison stops every run when it has sent what FedAvg sends in 40 % of its
#    rounds, or has used up its passes. IPP ConEx is centralized and sends nothing; it is charged both
#    gradients and a value of every client in every step.
# 4. **Tuning.** Every method has the same number of configurations: three step sizes ($1$, $0.3$ and
#    $0.1$ times $1/L$; ten times that for SSCA, whose steps shrink with the rounds) by three values of
#    one more parameter, or nine values of its only one. For each of
#    the two budgets the configuration is taken that has the smallest mean $f$ on the validation rows among
#    those not *shown to violate* there; if all are, the one with the smallest mean $g$. Shown to violate
#    means: the whole 95 % bootstrap interval of the mean over the seeds of $g/c-1$ lies above 5 %.
# 5. **Winner.** The smallest mean $f$ on the test rows among the methods that are not shown to violate
#    there. Differences to the winner are paired by seed; a method whose interval reaches 0 is *as good*.
# 6. **Distance.** Rule 5 lets a method pass whose violation differs much from seed to seed, with an
#    objective below the optimum's. So the distance to the optimum of the training rows stands beside it:
#    the larger of how far $f$ is above $f^\star$, in % of it, and how far $g$ is above its level, in % of
#    the level. No violation makes it smaller, and of a convex problem it is 0 at the optimum alone.
#
# Levels, ridge and grids were set after a look at the optima and at the training values of two seeds, the
# rules 1 to 5 before any run, rule 6 after a look at them. Two grids were moved later: SSCA's steps up, after a look at its results on
# Neyman-Pearson, where the largest step was the best (they fall as $t^{-0.35}$, and are not much longer than the others' on average); and the dual steps of IPP ConEx down, the largest of
# which diverged on Fairness.

# %% tags=["hide-input"]
report.parameter_table(study, params)

# %% tags=["hide-input"]
report.health_table(study, traces)

# %% [markdown]
# ## Objective against violation

# %% tags=["hide-input"]
plot.show(
    study.figures["tradeoff"](traces),
    alt="A panel for each problem: test violation across, gap of the test objective up, a point with "
    "intervals for every method, coloured by how it takes the constraint, its name beside the panel. On "
    "Neyman-Pearson and Fairness the methods that take it as a function lie close together, near the "
    "optimum's objective, two that take it as an objective far to the left and higher, FedAvg to the right "
    "of the line. On Sparse regression no point is right of the line. On Two tasks the objective falls as "
    "the violation grows, from compressed FedSGM at the left to FedAvg at the right.",
    caption="Tuned methods at equal gradients on the test rows, with 95 % intervals over the seeds. Right "
    "of the dotted line a violation counts, if its whole interval lies there. Both axes are linear near 0.",
    size=(9.4, 7.0),
)

# %% [markdown]
# ## Who wins, and by how much
#
# Problem by problem under both budgets, and a table at equal gradients: how far the test objective is behind
# the first method's and above the optimum's (in thousandths); violations on test and training rows; *off*, the
# distance of rule 6.
# *Off the front*, on Two tasks alone, is the norm of the shortest convex combination of the two gradients: 0
# wherever neither task can gain without the other losing. It is what the methods for several objectives are
# after, who are told nothing of a level (FedCMOO-Pref: of a ratio).

# %% tags=["hide-input"]
for p in arena_report.problems(numbers):
    display(Markdown(f"**{NAMES[p]}**\n\n{arena_report.verdicts(numbers, p)}"))
    display(arena_report.standings(numbers, p, "grads"))

# %% [markdown]
# The tables at equal bits:

# %% tags=["hide-input"]
for p in arena_report.problems(numbers):
    display(Markdown(f"**{NAMES[p]}**"), arena_report.standings(numbers, p, "bits"))

# %% [markdown]
# ## Curves
#
# The distance of rule 6 against what was spent.

# %% tags=["hide-input"]
plot.show(
    study.figures["curves"](traces),
    alt="Two panels for each problem, distance to the optimum in percent on logarithmic axes: left against "
    "gradients, right against kilobytes sent. On Neyman-Pearson and Sparse regression curves fall by up to "
    "four decades, on Fairness and Two tasks, with minibatches, most are ragged and flat. FedAvg without "
    "constraint and most methods that take it as an objective level off early. Against bits the compressed "
    "FedSGM and the Frank-Wolfe methods lie far to the left.",
    caption="Mean over the seeds of the tuned methods, those of the left column tuned at equal gradients, of "
    "the right column at equal bits.",
    size=(9.8, 11.5),
)

# %% [markdown]
# ## What tuning costs
#
# All methods spend the same on it: the number of configurations times the passes of a run. They differ in
# what a careless choice costs. A cell gives the share of configurations that are not shown to violate, and
# of those among them whose validation loss is within 10 % of the tuned one's (in %); then how far off the
# optimum the best and the worst configuration end on the validation rows (in %).

# %% tags=["hide-input"]
plot.show(
    study.figures["grids"](traces),
    alt="A panel for each problem, a row for each method, a point for each configuration: how far off the "
    "optimum it ends on the validation rows, logarithmic. Hollow points violate, the large point is the "
    "tuned one. Rows are one to three decades wide.",
    caption="All configurations at equal gradients. Hollow: shown to violate. Large: the tuned one.",
    size=(9.4, 6.6),
)

# %% tags=["hide-input"]
arena_report.tuning(numbers, params["grid"])

# %% [markdown]
# ## Checks
#
# For a convex problem with multiplier $\lambda$, every $w$ has $f(w)+\lambda(g(w)-c)\ge f^\star$: no run can be
# below the optimum but by violating. And all methods start from the same model.

# %% tags=["nbval-check-output"]
found = arena_report.problems(numbers)
runs = {p: [t for n, t in traces.items() if n.startswith(f"{p}_") and not n.endswith("reference")] for p in found}
best = {p: {k: v[:, -1:] for k, v in traces[f"{p}_reference"].metrics.items()} for p in found}
lagrangian = {p: [t.metrics["f"] + best[p]["multiplier"] * (t.metrics["g"] - LEVELS[p]) for t in runs[p]] for p in found}
above = [(x > best[p]["f"] - 1e-4).all() for p in found if p != "fair" for x in lagrangian[p]]
starts = [abs(t.metrics["f"][:, 0] - runs[p][0].metrics["f"][:, 0]).max() < 1e-5 for p in found for t in runs[p]]
check("every residual of an optimum is below 1e-5", all(numbers[f"{p}_reference.residual"].value < 1e-5 for p in found))
check("no run is below the optimum's Lagrangian on the convex problems", all(above))
check("all runs of a problem start at the same model", all(starts))
_ = check("every problem has one winner", all(sum(numbers[k].value for k in numbers if k.startswith(f"{p}_") and k.endswith("_grads.wins")) == 1 for p in found))

# %% [markdown]
# ## What this is not
#
# Four small linear models are no benchmark of networks, and nine configurations are no search. Methods with
# a second strength are not asked for it here: partial participation, the privacy of SSCA's messages, the
# oracles of large sets (see [the low-rank case](fw_lowrank.ipynb)), many objectives at once. FedSGM's
# theorems are about the averaged iterate; here, as for all others, the last one counts.
#
# ```{provenance} arena
# ```
#
# The stored runs lie in `results/arena/full`. To compute them anew:
#
# ```bash
# make reproduce NAME=arena PROFILE=full
# ```
