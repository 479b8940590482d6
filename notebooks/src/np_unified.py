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
# # Neyman-Pearson classification, full paper
#
# **Result.** With half of the clients a round hard switching misses the constraint on
# {result}`np_unified/hard.infeasible:.0%` of the splits, soft switching on {result}`np_unified/soft.infeasible:.0%`.
# Compression with error feedback slows the first 50 rounds and costs nothing at the end. Splits differ so much
# that three are too few: of all means over three of the ten, {result}`np_unified/hard.of_three:.0%` are
# feasible under hard switching and {result}`np_unified/soft.of_three:.0%` under soft.
#
# The full paper {cite}`fedsgm2025` puts the method of the [workshop paper](np_workshop) under harder
# conditions: 20 clients of whom only 10 take part in a round, and Top-K compression to one
# coordinate in ten *both ways*, with error feedback on the uplink {cite}`seide2014onebit` and primal EF21 on
# the downlink {cite}`richtarik2021ef21`. Its Figures 1, 2, 5 and 6 are reproduced here on ten train/test splits
# in place of three, with every sweep that the figures show.
#
# A few clients have most of the constraint loss, and when they are not sampled, the round works on the objective.
# Every figure below rests on ten splits.

# %% tags=["parameters"]
profile = "full"  # "full": the paper's setting on ten splits; "quick": three splits, short sweeps
seeds = None  # seeds; each fixes test split, partition and participants: full 0 to 9; quick 0, 1, 2
rounds = None  # communication rounds T: full 500; quick 40
lr = 0.3  # step size of all runs that are not tuned
lrs = None  # step sizes that are tuned over for Figure 6: full 1, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001; quick 1, 0.1
tolerance = 0.05  # switching threshold and level of the constraint, epsilon
beta = 40.0  # sharpness of soft switching
betas = None  # sharpnesses of the sweep: full 20, 80, 120, 400, 4000; quick 20, 400
participants = 10  # clients a round
participations = None  # clients a round in the sweep: full 2, 5, 15; quick 5
local_steps = 5  # local steps E
local_steps_sweep = None  # local steps in the sweep: full 1, 2, 10, 20; quick 1
fraction = 0.1  # K/d of Top-K, uplink and downlink
fractions = None  # K/d in the sweep: full 0.04, 0.25, 0.5, 1; quick 1
rhos = None  # penalties of Penalty-FedAvg: full 0.001, 0.5, 2, 20, 100; quick 0.5, 20
fresh = None  # splits that C26 alone is judged by: full 100 to 419; quick 100, 101
many = None  # run the settings that the paper leaves open: full True; quick False
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
from dataclasses import replace

from fedlib import FedSGM, Hard, Soft, TopK
from papers import STUDIES
from papers.fedsgm.np_unified import problem
from papers.fedsgm.np_unified.figures import some_of
from papers.kit import plot, report
from papers.kit.claims import check

page = STUDIES["np_unified"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and what stands below changes with it. What is stored under its configuration is
# loaded, anything else is computed; the study's other runs repeat it with other values.

# %%
soft = FedSGM(
    lr=page.lr,
    local_steps=page.local_steps,
    participants=page.participants,
    tolerance=page.tolerance,
    switch=Soft(page.beta),
    uplink=TopK(page.fraction),
    downlink=TopK(page.fraction),
)
traces = page.run(problem, soft=soft, hard=replace(soft, switch=Hard()))
numbers, health = page.numbers, page.health

# %% [markdown]
# ## Figure 1: both modes, and what participation does
#
# The centralized curve takes as many steps as the federated one (E a round) on all training data
# in one place, with the switching value refreshed at every step.

# %% tags=["remove-input"]
some = some_of(traces["hard"])
plot.show(
    page.figures["figure_1"](traces),
    alt=f"Objective and constraint over the rounds for hard and soft switching with {some} "
    "clients, all clients, and centralized. All objectives fall; the constraint reaches the level "
    "with all clients and stays above it for hard switching with some.",
    caption=f"With all clients the constraint reaches its level; with {some} hard switching stays "
    "above it. Mean over the seeds and one standard deviation.",
    size=(8.6, 3.6),
)

# %% tags=["remove-input"]
labels = {"hard": f"hard, {some}", "soft": f"soft, {some}", "hard_all": "hard, all"}
labels |= {"soft_all": "soft, all", "hard_central": "hard, centralized"}
labels |= {"soft_central": "soft, centralized"}
measures = {"f": "late f", "g": "late g", "violations": "violating rounds"}
measures |= {"infeasible": "infeasible", "oscillation": "oscillation of g"}
report.runs_table(numbers, {text: run for run, text in labels.items()}, measures, health)

# %% [markdown]
# *Late* is the mean over the last fifth of the rounds. A seed is called *infeasible* if its late
# $g$ exceeds $1.05\,\epsilon$; the table gives the share of such seeds.
#
# With all clients the federated runs match the centralized ones, which see the same training rows, in the constraint, and under soft switching also in the objective, within 10 %. Under hard switching the federated objective ends higher by more than that on average, as 320 further splits show ({claim}`fedsgm/C26`).
#
# Splits are infeasible with half of the clients, and not with all, because of the term
# $2\sigma\sqrt{\tfrac2n\log\tfrac{6T}{\delta}}$ in the theorems for partial participation: the switching value $\hat G$ of ten clients is a noisy estimate of
# $g$, because a few clients have most of the constraint loss: late in a run with all clients the largest $g_j$ is
# {result}`np_unified/hard_all.g_max:.2f`, against a mean of {result}`np_unified/hard_all.g:.2f`.
# Averaging over rounds does not remove that noise, because the rule uses only whether the estimate is above the threshold.
#
# ## Figure 2: local steps, participation, compression
#
# Rows of the paper's figure, hard left, soft right, at the paper's 10 of 20 clients. More local steps
# are faster, with diminishing gain, and the constraint oscillates more. With all clients it is the same.

# %% tags=["remove-input"]
plot.show(
    page.figures["local_steps"](traces),
    alt="Objective and constraint for several numbers of local steps; more steps fall faster with "
    "diminishing gain.",
    caption="More local steps converge faster, with diminishing gain. Objective and constraint, mean over"
    " the seeds.",
    size=(8.6, 4.8),
)

# %% tags=["remove-input"]
plot.show(
    page.figures["participation"](traces),
    alt="Objective and constraint for several numbers of participants; fewer participants give a "
    "lower objective early, and a noisier constraint.",
    caption="More participants make the constraint calmer and keep it nearer to the level. Objective and "
    "constraint by clients a round.",
    size=(8.6, 4.8),
)

# %% [markdown]
# Fewer clients look faster in the objective, because they violate the constraint. What falls with the
# number of clients is the mean excess of $g$ over $\epsilon$, and its oscillation ({claim}`fedsgm/C8`).

# %% tags=["remove-input"]
plot.show(
    page.figures["compression"](traces),
    alt="Objective and constraint for Top-K with several K/d, which lie on top of each "
    "other, and without error feedback, which is clearly worse.",
    caption="With error feedback compression changes little; without it the method is clearly"
    " worse. Objective and constraint for Top-K.",
    size=(8.6, 4.8),
)

# %% [markdown]
# Whether compression destabilizes the constraint depends on how instability is measured. From round to round
# hard switching changes $g$ *less* with $K/d=0.1$ than without compression, because it chatters
# anyway; the standard deviation of $g$ over the last fifth of the rounds grows with compression, clearly so under soft switching. Soft switching varies less by both measures ({claim}`fedsgm/C12`).

# %% [markdown]
# ## Figure 5: the sharpness of soft switching

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_5"](traces),
    alt="Objective and constraint under soft switching for several sharpnesses, and hard: larger "
    "beta gives a lower objective and a larger constraint, which for the largest ends above the level.",
    caption="A larger sharpness gives a lower objective and a larger constraint, in the end above the "
    f"level. Soft switching with {some} clients a round, and hard.",
    size=(8.6, 3.6),
)

# %% [markdown]
# That convergence is less stable at $\beta=20$ than at 40 holds in {result}`np_unified/C14.share:.0%` of the settings that
# the paper leaves open ({claim}`fedsgm/C14`).

# %% [markdown]
# ## Figure 6: against a fixed penalty
#
# Penalty-FedAvg minimises $f+\rho\,[g-\epsilon]_+$. By exact-penalty theory it can only end
# feasible if $\rho$ exceeds the multiplier $\lambda$ of the split (prediction **P3**), and
# $\lambda$ differs from split to split. Step sizes are tuned on the training curves: the smallest
# mean late $f$ among those with mean late $g\le1.05\,\epsilon$, and if there is none the smallest
# late $g$.

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_6"](traces),
    alt="Scatter of late constraint against late objective, a point a split. Small penalties lie "
    "far above the level, large ones below it at a larger objective; FedSGM and the penalties 2 "
    "and 20 lie around the level.",
    caption="Small penalties violate the constraint, large ones cost objective; FedSGM lies near the "
    "level without a penalty to tune. One point a split, each method at its tuned step size.",
    size=(8.5, 4.0),
)

# %% tags=["remove-input"]
tuned = {"FedSGM hard": "hard_tuned", "FedSGM soft": "soft_tuned"}
tuned |= {f"penalty {r:g}": f"penalty_rho{r:g}" for r in page.rhos}
columns = {"lr": "step size", "f": "late f", "g": "late g", "infeasible": "infeasible"}
report.runs_table(numbers, tuned, columns, health)

# %% [markdown]
# A penalty is *right* on a split if it is feasible there at a late $f$ of at most 1.25 times that of soft
# FedSGM. On a split {result}`np_unified/penalty.right:.0%` of the five are right: 20 on
# {result}`np_unified/penalty_rho20.right:.0%` of the splits, its neighbours 2 and 100 on
# {result}`np_unified/penalty_rho2.right:.0%` and {result}`np_unified/penalty_rho100.right:.0%`. So one
# of the five is comparable with FedSGM, and a factor of five or ten from it is not ({claim}`fedsgm/C10`). The sharpness is the easier knob: over a
# factor of 200 in $\beta$ late $g$ of a split moves by {result}`np_unified/spread.beta_g:.3f` and late $f$ by
# {result}`np_unified/spread.beta_f:.3f`, over a factor of 200 in $\rho$ (0.5 to 100, same step size) by
# {result}`np_unified/spread.rho_g:.3f` and {result}`np_unified/spread.rho_f:.2f`.

# %% tags=["remove-input", "nbval-check-output"]
check("soft settles lower than hard (10 of 20)", numbers["soft.g"].value < numbers["hard.g"].value)
check("soft has fewer violations (all clients)", numbers["soft_all.violations"].high < numbers["hard_all.violations"].low)
check("error feedback matters", numbers["hard_nofeedback.f"].value > 1.1 * numbers["hard.f"].value)
if 1 in page.local_steps_sweep:
    check("more local steps, lower f", numbers["hard_all_E1.f"].low > numbers["hard_all.f"].value)
check("soft at beta = 1e9 is hard", max(numbers["limit.gap"].per_seed) <= 1e-3)
check("bound of the skewness holds", min(numbers["skewness.bound_to_difference"].per_seed) >= 1)
if {0.5, 20.0} <= {*page.rhos}:
    check("penalty 0.5 ends above penalty 20", numbers["penalty_rho0.5.g"].low > numbers["penalty_rho20.g"].high)

# %% [markdown]
# ## The paper against ours
#
# For a bound, `agrees` means that our mean does not exceed it by more than 5 %.

# %% tags=["remove-input"]
report.paper_table(page.study, numbers)

# %% [markdown]
# ## Verdicts
#
# The rule of each claim and the runs behind it are on the [claims page](../book/claims.md).

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% [markdown]
# ## What the paper leaves open
#
# | open in the paper | chosen here |
# | --- | --- |
# | which class is the majority | class 0 = benign is the objective, malignant the constraint |
# | split | 80/20 stratified, then 14 benign and 8 malignant rows a client; redrawn for every seed |
# | learning rate | 0.3; for Figure 6 tuned on a grid from 1 to 1e-4 |
# | legends of Figure 2 | E = 1, 2, 5, 10, 20; n = 2, 5, 10, 15, 20; K/d = 0.04, 0.1, 0.25, 0.5, 1 |
# | axes | logarithmic for f and g |
# | legend of Figure 5 | beta = 20, 40, 80, 120, 400, and hard |
# | which side compression acts on | both, as in Algorithm 1 |
#
# ```{provenance} np_unified
# ```
#
# ```{notebook-links} np_unified
# ```
