# %% [markdown]
# # Neyman-Pearson classification, full paper
#
# **The book's result.** With half of the clients per round, hard switching misses the constraint on
# {result}`np_unified/hard.infeasible:.0%` of the splits and soft switching on {result}`np_unified/soft.infeasible:.0%`.
# Compression with error feedback slows the descent in the first 50 rounds and hardly changes the late objective. The
# paper's three seeds are few if each has a split of its own, because splits differ much: if we average the constraint
# over three of our splits, {result}`np_unified/hard.of_three:.0%` of the possible choices are feasible under hard
# switching and {result}`np_unified/soft.of_three:.0%` under soft switching.
#
# All runs but those of Figure 6 have step size 0.3. The paper tunes it and plots the best; [another
# study](np_protocol) judges twelve of the claims again at the step that this picks, 1, on splits that were drawn after
# the rules were fixed.
#
# The full paper {cite}`fedsgm2025` tests the method of the [workshop paper](np_workshop) under harder conditions. Only
# 10 of 20 clients take part in a round, and Top-K keeps one coordinate in ten in *both directions*, with error feedback
# on the uplink {cite}`seide2014onebit` and primal EF21 on the downlink {cite}`richtarik2021ef21`.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": the paper's setting on thirty splits; "quick": three splits, short sweeps
seeds = None  # seeds; each fixes test split, partition and participants: full 8000 to 8029; quick 0, 1, 2
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
fresh = None  # splits that judge claim C26 alone: full 9200 to 9519; quick 100, 101
many = None  # whether the settings that the paper leaves open are run: full True; quick False
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
from dataclasses import replace

import seaborn as sns

from fedlib import FedSGM, Hard, Soft, TopK
from papers import STUDIES
from papers.fedsgm.np_unified.quantities import at_best_steps
from papers.fedsgm.np_unified.runs import CLIENTS, LIMIT, MODES, defaults, name, problem
from papers.kit import plot, report
from papers.kit.claims import check
from papers.kit.quantities import Query, curves, labels_of, late_values, name_of

plot.theme()
page = STUDIES["np_unified"].page(globals())

# %% [markdown]
# ## The experiment

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
numbers = page.numbers
usual = defaults(page.params)
half_of_clients = f"{page.participants} of {CLIENTS}"
everyone = "all"
both = {"f": "objective f", "g": "constraint g"}

# %% [markdown]
# ## Figure 1: both modes, and what participation does
#
# The centralized runs take $E$ steps per round on the pooled training data and evaluate $g$ for the switching at every
# step.

# %%
shown = page.curves(["method", "switch", "participants"], usual)
shown["clients"] = shown["participants"].map(
    {page.participants: half_of_clients, CLIENTS: everyone}
)
shown.loc[shown["method"] == "SGM", "clients"] = "centralized"
main = shown.dropna(subset="clients")
grid = sns.relplot(
    plot.over_seeds(main, both), hue="switch", style="clients", col="metric", **plot.LINES
)
plot.levels([grid.axes_dict["constraint g"]], page.tolerance, "level")
plot.finish(grid, log=True, size=(8.6, 3.4))
plot.show(
    grid,
    "figure_1",
    alt=f"Objective and constraint over the rounds for hard and soft switching with {half_of_clients} "
    "clients, with all clients, and centralized. All objectives fall. The constraint reaches the level "
    f"with all clients and stays above it for hard switching with {half_of_clients} clients.",
    caption=f"With all clients the constraint reaches its level; with {half_of_clients} clients hard switching stays "
    "above it. The curves are means over the seeds, the bands one standard deviation.",
)

# %% tags=["hide-input"]
p = page.params
shown = {f"{mode}, {half_of_clients}": name(p, switch=mode) for mode in MODES}
shown |= {f"{mode}, all": name(p, switch=mode, participants=CLIENTS) for mode in MODES}
shown |= {f"{mode}, centralized": name(p, method="SGM", switch=mode) for mode in MODES}
measures = {"f": "late f", "g": "late g", "violations": "violating rounds"}
measures |= {"infeasible": "infeasible", "oscillation": "oscillation of g"}
report.runs_table(page, shown, measures)

# %% [markdown]
# *Late* values are means over the last fifth of the rounds. A seed is *infeasible* if its late $g$ exceeds
# $1.05\,\epsilon$. The *oscillation* of $g$ is its mean change from round to round.
#
# We compare the centralized runs with the federated runs of all clients on 320 further splits ({claim}`fedsgm/C26`).
# They differ by less than 5 % of the fall from the start. By the level, late constraints agree within 5 %, late
# objectives within 10 % under soft switching, but not under hard switching, where the federated one is
# {result}`np_unified/hard_participants20_fresh.f:.3f` and the centralized one
# {result}`np_unified/SGM_hard_fresh.f:.3f`.
#
# Some splits are infeasible with half of the clients and feasible with all clients, because the mean $\hat G$ of ten
# clients' constraints, which decides the switching, is a noisy estimate of $g$. The theorems for partial participation
# contain this noise in the term $2\sigma\sqrt{\tfrac2n\log\tfrac{6T}{\delta}}$, where $\sigma$ measures the spread of
# the clients' $g_j$. In late rounds of hard switching with all clients, the largest $g_j$ is
# {result}`np_unified/hard_participants20.g_max:.2f` and the mean {result}`np_unified/hard_participants20.g:.2f`.
#
# ## Figure 2: local steps, participation, compression
#
# The next three figures repeat the rows of the paper's Figure 2, with 10 of 20 clients unless the number of clients is
# varied. With more local steps, the constraint also changes more from round to round.

# %%
shown = page.curves(["switch", "local_steps"], usual).sort_values(["switch", "local_steps"])
shown["local steps"] = shown["local_steps"].map("{:g}".format)


def by_switch(shown, hue, **style):
    """Objective above constraint over the rounds, a column for each rule of switching."""
    means = plot.over_seeds(shown, both)
    panels = {"row": "metric", "col": "switch"}
    grid = sns.relplot(means, hue=hue, palette=plot.SWEEP, **panels, **style, **plot.LINES)
    plot.levels(grid.axes[1], page.tolerance, "level")
    plot.finish(grid, log=True, size=(8.6, 4.8))
    return grid


grid = by_switch(shown, "local steps")
plot.show(
    grid,
    "local_steps",
    alt="Objective and constraint over the rounds for several numbers of local steps. With more steps the objective "
    "falls faster, with diminishing gain.",
    caption="With more local steps the objective falls faster, with diminishing gain. Curves are means "
    "over the seeds, bands one standard deviation.",
)

# %%
shown = page.curves(["switch", "participants"], usual).sort_values(["switch", "participants"])
shown["clients"] = shown["participants"].map("{:g}".format)
grid = by_switch(shown, "clients")
plot.show(
    grid,
    "participation",
    alt="Objective and constraint over the rounds for several numbers of participants. Fewer participants give a "
    "lower objective early, and a noisier constraint.",
    caption="With more participants the constraint is steadier. Under hard switching it also ends nearer to the level; "
    "under soft switching it ends above the level with few participants and below it with many. Curves are means over the seeds, bands one standard deviation.",
)

# %% [markdown]
# With fewer clients the objective falls faster, but only because the constraint is violated. So we measure speed by the
# mean of $f+4\max(0,g-\epsilon)$ over all rounds. From 2 to 5 and 10 clients it falls; from 10 to 15 and 20 it rises
# under soft switching. The mean change of $g$ from round to round falls throughout ({claim}`fedsgm/C8`).

# %%
shown = page.curves(["switch", "fraction", "feedback"], usual).sort_values(["switch", "fraction"])
shown["K/d"] = shown["fraction"].map("{:g}".format)
shown["feedback"] = shown["feedback"].map({True: "yes", False: "no"})
grid = by_switch(shown, "K/d", style="feedback")
plot.show(
    grid,
    "compression",
    alt="Objective and constraint over the rounds for Top-K. The curves for several K/d lie on top of each "
    "other; the curve without error feedback is clearly worse.",
    caption="With error feedback, all shares K/d of kept entries lead to similar curves; without it, the objective "
    "is clearly larger. Curves are means over the seeds, bands one standard deviation.",
)

# %% [markdown]
# Compression with $K/d=0.1$ destabilizes the constraint, as the paper says ({claim}`fedsgm/C12`): the standard deviation
# of $g$ over the last fifth of the rounds is larger with compression than without. The change of $g$ from round to round
# is *smaller* with compression but under soft switching with all clients; messages are smaller then, too. By both
# measures, $g$ varies less under soft than under hard switching.

# %% [markdown]
# ## Figure 5: the sharpness of soft switching

# %%
shown = page.curves(["switch", "beta"], usual).sort_values("beta")
shown = shown[~(shown["beta"] > 400)]
shown["beta"] = shown["beta"].map("{:g}".format).where(shown["switch"] == "soft", "hard")
grid = sns.relplot(
    plot.over_seeds(shown, both),
    hue="beta",
    col="metric",
    palette=plot.SWEEP,
    **plot.LINES,
)
plot.levels([grid.axes_dict["constraint g"]], page.tolerance, "level")
plot.finish(grid, log=True, size=(8.6, 3.4))
plot.show(
    grid,
    "figure_5",
    alt="Objective and constraint under soft switching for several sharpnesses, and under hard switching. A larger "
    "beta gives a lower objective and a larger constraint, which ends above the level for the largest beta.",
    caption="A larger sharpness lowers the objective and raises the constraint; with the largest sharpness the "
    f"constraint ends above the level. The runs use soft switching with {half_of_clients} clients per round; hard switching is shown for comparison. "
    "Curves are means over the seeds, bands one standard deviation.",
)

# %% [markdown]
# The paper also says that convergence is less stable at $\beta=20$ than at 40, and names no measure. In the settings that
# it leaves open, this holds in {result}`np_unified/less_stable_f_change:.0%` by the change of $f$ from round to round, in
# {result}`np_unified/less_stable_f_band:.0%` by the distance of $f$ from the median of the seeds, in
# {result}`np_unified/less_stable_g_change:.0%` by the change of $g$, and in none if the first two are divided by the
# late $f$ ({claim}`fedsgm/C14`).

# %% [markdown]
# ## Figure 6: against a fixed penalty
#
# Penalty-FedAvg minimizes $f+\rho\,[g-\epsilon]_+$ with a fixed penalty $\rho$, which is harder to tune than the
# sharpness of FedSGM. Here it sends all entries, seven times the bits of FedSGM; in [the study at tuned
# steps](np_protocol) its messages are compressed like those of FedSGM. Exact-penalty theory predicts that a run ends feasible exactly if $\rho$ exceeds the multiplier
# $\lambda$ of the split (prediction **P3**), and $\lambda$ differs from split to split.
#
# For each method we choose a step size by the training curves: of the step sizes with mean late
# $g\le1.05\,\epsilon$, the one with the smallest mean late $f$; if there is none, the one with the smallest late $g$.

# %%
tuned_runs = at_best_steps(traces, usual, page.tolerance).values()
by_name = {name_of(labels_of(trace), usual): trace for trace in tuned_runs}
best = late_values(curves(by_name), "f", "g")
best["run of"] = ("penalty " + best["rho"].map("{:g}".format)).where(
    best["rho"].notna(), "FedSGM " + best["switch"]
)
grid = sns.relplot(best, x="f", y="g", hue="run of", style="method")
grid.set(xscale="log", xlabel="late objective f", ylabel="late constraint g")
plot.levels([grid.ax], page.tolerance, "level")
plot.finish(grid, size=(8.5, 4.0))
plot.show(
    grid,
    "figure_6",
    alt="Late constraint against late objective, one point per split. Small penalties lie "
    "far above the level, large ones below it at a larger objective. FedSGM and the penalties 2 "
    "and 20 lie around the level.",
    caption="Small penalties violate the constraint, large ones raise the objective; FedSGM ends near the "
    "level without a penalty to tune. Each point is one split; each method runs at its tuned step size.",
)

# %% tags=["hide-input"]
tuned = {f"FedSGM {mode}": name(p, switch=mode, setting="tuned") for mode in MODES}
for rho in page.rhos:
    penalty = {"method": "Penalty-FedAvg", "rho": float(rho), "setting": "tuned"}
    tuned[f"penalty {rho:g}"] = name(p, **penalty)
columns = {"lr": "step size", "f": "late f", "g": "late g", "infeasible": "infeasible"}
report.runs_table(page, tuned, columns)

# %% [markdown]
# A penalty is *right* on a split if it is feasible there with a late $f$ of at most 1.25 times that of soft FedSGM. On
# average over the splits, {result}`np_unified/Penalty-FedAvg_tuned.right:.0%` of the five penalties are right. The penalty 20 is
# right on {result}`np_unified/Penalty-FedAvg_rho20_tuned.right:.0%` of the splits, its neighbours 2 and 100 on
# {result}`np_unified/Penalty-FedAvg_rho2_tuned.right:.0%` and {result}`np_unified/Penalty-FedAvg_rho100_tuned.right:.0%` ({claim}`fedsgm/C10`).
#
# As $\beta$ grows by a factor of 200 (from 20 to 4000), the late $g$ of a split varies by
# {result}`np_unified/beta.spread_g:.3f` and its late $f$ by {result}`np_unified/beta.spread_f:.3f`. As $\rho$ grows by
# the same factor (from 0.5 to 100) at the same step size, they vary more, by {result}`np_unified/rho.spread_g:.3f` and
# {result}`np_unified/rho.spread_f:.2f` ({claim}`fedsgm/C27`).

# %% tags=["hide-input", "nbval-check-output"]
def measured(measure, **labels):
    """A quantity of the run with these labels; those that are not named are the page's."""
    return numbers[Query.of(measure, **labels)]


everyone = {"participants": CLIENTS}
soft_g = measured("g", switch="soft")
hard_g = measured("g", switch="hard")
check(
    "the late g of soft switching is below that of hard switching (10 of 20)",
    soft_g.value < hard_g.value,
)
without = measured("f", switch="hard", feedback=False)
check(
    "without error feedback the late f is clearly larger",
    without.value > 1.1 * measured("f", switch="hard").value,
)
gap = measured("gap", switch="soft", beta=LIMIT)
check("soft switching at beta = 1e9 equals hard switching", max(gap.per_seed) <= 1e-3)
bound = measured("bound_to_difference", switch="hard")
check("the bound on the skewness holds", min(bound.per_seed) >= 1)
if page.profile != "quick":
    soft_count, hard_count = (
        measured("violations", switch=mode, **everyone) for mode in ("soft", "hard")
    )
    check("soft switching has fewer violations (all clients)", soft_count.high < hard_count.low)
if page.profile != "quick" and 1 in page.local_steps_sweep:
    one_step = measured("f", switch="hard", local_steps=1, **everyone)
    check(
        "more local steps have a lower late f than one",
        one_step.low > measured("f", switch="hard", **everyone).value,
    )
if page.profile != "quick" and {0.5, 20.0} <= {*page.rhos}:
    small, large = (
        measured("g", method="Penalty-FedAvg", rho=rho, setting="tuned") for rho in (0.5, 20.0)
    )
    check("the late g of penalty 0.5 is above that of penalty 20", small.low > large.high)

# %% [markdown]
# ## The paper against ours
#
# The paper's values are upper bounds; `agrees` means that our mean is at most 5 % above the bound.

# %%
report.paper_table(page)

# %% [markdown]
# ## Verdicts
#
# The [claims page](../book/claims.md) shows the rules and runs behind these verdicts.

# %%
report.claims_table(page)

# %% [markdown]
# ## What the paper leaves open
#
# | Open in the paper | Our choice |
# | --- | --- |
# | which class is the majority | class 0: benign rows for the objective, malignant rows for the constraint |
# | split | 80/20 stratified, then 14 benign and 8 malignant rows per client; redrawn for every seed |
# | learning rate | 0.3, and for Figure 6 tuned on a grid from 1 to 1e-4 |
# | legends of Figure 2 | E = 1, 2, 5, 10, 20; n = 2, 5, 10, 15, 20; K/d = 0.04, 0.1, 0.25, 0.5, 1 |
# | legend of Figure 5 | beta = 20, 40, 80, 120, 400, and hard switching |
# | directions that are compressed | both, as in Algorithm 1; none for Penalty-FedAvg |
# | what a seed fixes | split, partition and participants; the paper says "three random seeds" |
#
# ```{provenance} np_unified
# ```
#
# ```{notebook-links} np_unified
# ```
