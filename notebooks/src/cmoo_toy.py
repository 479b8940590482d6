# %% [markdown]
# # FedCMOO where the Pareto front is known
#
# **The book's result.** With ten local steps both FedCMOO and FSMGDA stop short of the Pareto front. The least norm of
# a convex combination of the objectives' gradients, zero on the front, is
# {result}`cmoo_toy/drift_spread1_E10.gain:.1f` times as large at the end of FSMGDA as at the end of
# FedCMOO. With more rounds FedCMOO's mean squared gradient falls as fast as the paper's Corollary 1.1 says, but so does
# that of gradient descent with equal weights, so these runs do not test the corollary. The imbalance of the losses
# falls along FedCMOO-Pref's balancing direction.
#
# On pictures nobody can say how far from the Pareto front a method ends. With quadratic objectives the front is known:
# the Pareto optimal models minimize weighted sums, and these minimizers have a closed form. This page runs the methods
# of {cite}`askin2025fedcmoo` on such problems. The paper has no such runs; it claims the rate of Corollary 1.1
# ({claim}`fedcmoo/C15`) and the balancing direction of FedCMOO-Pref ({claim}`fedcmoo/C16`).
#
# :::{admonition} The problems
# :class: note
# Client $j$ of 20 has the objectives $f_{jk}(x)=\frac12\lVert x-c_{jk}\rVert^2_{A_{jk}}$ in $\mathbb R^{10}$. The
# matrices $A_{jk}$ are diagonal with random entries between $\frac14$ and 1, so that $L=1$. The clients' centres
# $c_{jk}$ are equal or spread. Each seed draws one instance: the centres, the $A_{jk}$ and the start.
# :::

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": ten instances, long sweeps; "quick": two instances, short ones
seeds = None  # seeds; each fixes the instance, participants and batches: full 0 to 9; quick 0, 1
lr = 0.1  # client step size, except in the runs on the rate
rounds = None  # rounds of the sweep over local steps: full 400; quick 20
edge_rounds = None  # rounds of the sweeps over tolerance and scale: full 150; quick 20
local_steps_grid = None  # local steps E of the sweep: full 1, 5, 10, 20, 50; quick 1, 10
spreads = None  # root mean square distances of the clients' optima from the common ones: full 0, 1; quick 0
horizons = None  # rounds T of the runs on the rate: full 50, 100, 200, 400, 800, 1600; quick 20, 40
rate_local_steps = 5  # local steps E of the runs on the rate
rate_participants = 10  # clients a round, of 20, of the runs on the rate; also for each of the two Gram factors
tolerances = None  # FedCMOO-Pref's epsilon: full 0.1, 0.01, 0.001, 0.0001; quick 0.1, 0.01
objectives = None  # M of the sweep over tolerances and of the direction: full 2, 5; quick 2
scale = 20.0  # factor of objective 1 in the scale mismatch
points = None  # random models and preferences a seed, for the direction: full 100; quick 10
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
import torch

from fedlib import FSMGDA, Exact, FedCMOO, OneWay
from fedlib.compress import LowRank, Masked
from fedlib.weights import MinNorm
from papers import STUDIES
from papers.fedcmoo.common import METHODS
from papers.fedcmoo.problems.federation import federation
from papers.fedcmoo.theory import bounds, sketches
from papers.kit import plot, report
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.quantities import labels_of

plot.theme()
page = STUDIES["cmoo_toy"].page(globals())

# %% [markdown]
# ## The experiment
#
# Changing this cell changes the results below; stored runs are loaded.

# %%
steps = page.local_steps_grid[-1]
spread = page.spreads[-1]
fedcmoo = FedCMOO(
    page.lr,
    local_steps=steps,
    participants=20,
    gram=OneWay(Exact()),
    weights=MinNorm(),
)
fsmgda = FSMGDA(page.lr, local_steps=steps, participants=20)
setting = f"spread{spread:g}_E{steps}"
traces = page.run(
    partial(federation, spread=spread),
    **{f"drift_fedcmoo_{setting}": fedcmoo, f"drift_fsmgda_{setting}": fsmgda},
)
numbers = page.numbers

# %% [markdown]
# ## Local steps
#
# We measure how far from the front a run ends by the *least norm*
# $\min_{w\in\mathcal S_M}\lVert\nabla\mathbf F\,w\rVert$ over the simplex $\mathcal S_M$ of weights. All clients take
# part, and gradients and weights are exact, so only the bias of local steps remains at the end. In both methods,
# clients drift towards *their own* optima. In FSMGDA, a client's models for different objectives also drift apart; a
# FedCMOO client trains one model on the weighted sum.

# %%
measures = {"stationarity": "least norm at the end"}
ends = numbers.by_seed(measures, ["method", "spread", "E"], part="drift")
ends = plot.worded(ends, method=METHODS)
grid = sns.relplot(ends, x="E", hue="method", col="spread", kind="line", **plot.DOTS)
grid.set_xlabels("local steps E")
for ax in grid.axes.flat:
    plot.log_ticks(ax, sorted(ends["E"].unique()))
plot.finish(grid, size=(7.4, 3.2))
plot.show(
    grid,
    "drift",
    alt="The least norm at the end against the number of local steps, for equal and for spread client optima: zero for "
    "one step for both methods, and growing with more steps, most for FSMGDA.",
    caption="With one local step both methods reach the front. With more steps both stop short of it, and FSMGDA "
    "stops farther away than FedCMOO. The dots are means over the instances with 95 % intervals.",
)

# %% [markdown]
# With a single local step a client's update for an objective is that objective's gradient, so both methods end at the
# same norm:

# %% tags=["hide-input", "nbval-check-output"]
ends_by_spread = {}  # with one local step, those of both methods
for trace in traces.values():
    labels = labels_of(trace)
    if labels.get("E") == 1:
        ends_of_methods = ends_by_spread.setdefault(labels["spread"], [])
        ends_of_methods.append(trace.metrics["stationarity"][:, -1])
if ends_by_spread:
    largest = max(np.ptp(ends, axis=0).max() for ends in ends_by_spread.values())
    check("one local step: both methods end at the same norm, to 1e-5", largest < 1e-5)

# %% [markdown]
# ## The rate of Corollary 1.1
#
# These runs use [Algorithm 10](note_cmoo.ipynb#setting), the variant that Corollary 1.1 covers, with unbiased
# compression. The step sizes of {prf:ref}`cmoo-corollary` depend on the number $T$ of rounds, so every $T$ is a
# separate run. Here a client's objectives are means over four rows, with centres around $c_{jk}$, and a minibatch is
# one row. We measure the quantity that the corollary bounds, the mean over the rounds of
# $\lVert\nabla\mathbf F(x^{(t)})w^{(t)}\rVert^2$, with exact gradients.

# %%
measures = {"square": r"mean of $|\nabla F\,w|^2$"}
compression = {"exact": "none", "randk": "Rand-K, half of the entries"}
squares = numbers.by_seed(measures, ["method", "T"], part="rate")
squares = plot.worded(squares, method=compression).rename(columns={"method": "compression"})
grid = sns.relplot(squares, x="T", hue="compression", palette="Dark2", kind="line", **plot.DOTS)

horizons = np.unique(squares["T"])
is_start = (squares["compression"] == "none") & (squares["T"] == horizons[0])
start = squares[is_start]["value"].mean()
reference = 0.7 * start * (horizons / horizons[0]) ** -0.5
grid.ax.plot(horizons, reference, "--", color="gray")
grid.set_xlabels("rounds T")
plot.log_ticks(grid.ax, horizons)
plot.finish(grid, log=True, size=(6.2, 3.6))
plot.show(
    grid,
    "rate",
    alt="Mean squared norm against the number of rounds, both axes logarithmic: two nearly straight falling lines, "
    "uncompressed and Rand-K, above a dashed line of slope minus one half.",
    caption="The measured rate is that of Corollary 1.1, with and without compression. The dots are means of the "
    "squared norm over rounds and instances with 95 % intervals. The dashed line has slope minus one half.",
)

# %%
report.paper_table(page)


# %% [markdown]
# The measured rate mostly reflects the way to the front. A round moves the model by at most about $\frac1{L\sqrt T}$
# times the gradient, so the way takes about $\sqrt T$ rounds, a share of $\frac1{\sqrt T}$. The
# [note on the convergence theorem](note_cmoo.ipynb) compares the bound itself with runs whose gradients are bounded, as
# the theorem requires.
#
# The corollary needs $\tau T\ge4$ for $\tau$ local steps, because Lemma 7 requires
# $\eta_c=\frac1{L\tau\sqrt{\tau T}}\le\frac1{2L\tau}$:

# %% tags=["hide-input", "nbval-check-output"]
def over_limit(tau, T):
    """eta_c of the corollary over the limit of Lemma 7."""
    eta_c = 1 / (tau * np.sqrt(tau * T))
    limit = 1 / (2 * tau)
    return eta_c / limit


times = over_limit(1, 3)
check(
    "tau T = 3: eta_c of the corollary exceeds the limit of Lemma 7",
    times > 1,
    f"{times:.2f} times",
)
try:
    bounds.corollary(bounds.Setting(b=1.0, tau=1, T=3))
except ValueError as error:
    print(error)
check("tau T = 4: it is at the limit", abs(over_limit(2, 2) - 1) < 1e-12)

# %% [markdown]
# ## Where preferences stop
#
# FedCMOO-Pref meets its preference only up to a tolerance $\varepsilon$. The imbalance $\mu$ of the weighted losses
# $r_kF_k$ is zero if they are equal. While $\mu$ exceeds $\varepsilon$, FedCMOO-Pref lowers $\mu$; below $\varepsilon$
# it lowers all losses. Nothing therefore brings it closer to $r_1F_1=\dots=r_MF_M$ than $\mu=\varepsilon$. The table
# shows values at the end of the runs, whose preferences $r=(1,\dots,2)$ have evenly spaced entries. A *fall-back* is a
# round in which the program for the weights has no solution and minimum-norm weights replace it.

# %% tags=["hide-input"]
runs = {}
for M in page.objectives:
    for eps in page.tolerances:
        runs[f"M = {M}, eps = {eps:g}"] = {"part": "edge", "M": M, "eps": eps}
measures = {
    "mu": "mu",
    "spread": "largest / smallest r_k F_k",
    "stationarity": "least norm",
    "fallback": "fall-backs per round",
}
report.runs_table(page, runs, measures)

# %% [markdown]
# For two objectives, solving $\mu=\varepsilon$ yields the largest ratio of the larger $r_kF_k$ to the smaller that
# $\varepsilon$ allows:

# %%
runs = {f"eps = {eps:g}": {"part": "edge", "M": 2, "eps": eps} for eps in page.tolerances}
report.runs_table(page, runs, {"allowed": "largest ratio that eps allows"})

# %% [markdown]
# A test of whether FedCMOO-Pref reaches $r_1F_1=r_2F_2$ must therefore use a small $\varepsilon$, or require only
# $\mu\le\varepsilon$. At the paper's $\varepsilon=0.01$, losses count as balanced even if one is a third larger than
# the other. A run may also reach the front while $\mu>\varepsilon$ and stay there.
#
# ## The balancing direction
#
# By {prf:ref}`pref-lemma-direction`, the gradient of the imbalance is $\nabla\mu=\nabla\mathbf Fa/\sum_kr_kF_k$, where
# $a$ is FedCMOO-Pref's balancing vector. Hence $\mu$ falls along $-\nabla\mathbf Fa$. We test this at random models
# with random preferences. The first column compares this formula with the central difference of $\mu$, the others show
# how often a step lowers $\mu$.

# %% tags=["hide-input"]
runs = {f"M = {M}": {"part": "probe", "M": M} for M in page.objectives}
measures = {
    "error": "largest relative error",
    "falls": "share that falls, step 1e-4",
    "falls_1": "step 0.01",
    "falls_2": "step 0.1",
    "falls_3": "step 1",
}
report.runs_table(page, runs, measures)

# %% [markdown]
# The lemma concerns small steps along $-\nabla\mathbf Fa$, but FedCMOO-Pref moves along $-\nabla\mathbf Fw$ with the
# weights $w$ of a linear program. With three or more objectives $-\nabla\mathbf Fw$ need not lower $\mu$, because $a$
# has negative entries and weights have none ({prf:ref}`pref-example-three`).
#
# ## An objective on another scale
#
# If one objective is on a larger scale, minimum-norm methods neglect it. Here objective 1 is multiplied by 20, and the
# table divides its loss by 20 again. The last column is its weight in the last round.

# %% tags=["hide-input"]
runs = {
    "Scalarized": {"part": "scale", "method": "scalarized"},
    "FedCMOO": {"part": "scale", "method": "fedcmoo"},
    "FSMGDA": {"part": "scale", "method": "fsmgda"},
    "Pref, r = (1, 1)": {"part": "scale", "method": "pref"},
}
measures = {"f_1": "F_1 / factor", "f_2": "F_2", "weight_1": "weight of objective 1"}
report.runs_table(page, runs, measures)


# %% [markdown]
# The objective with the larger gradients governs the scalarized sum. The *shorter* gradient governs the shortest convex
# combination of two gradients, so minimum-norm methods put nearly all weight on its objective. This explains the
# paper's Table 2, in which one of two tasks has another kind of loss, with smaller gradients: the scalarized sum hardly
# learns this task, and FSMGDA learns the other one much worse than the scalarized sum does.

# %% tags=["hide-input", "nbval-check-output"]
def in_other_units(method, measure):
    """A measure of the run in which objective 1 is scaled."""
    return numbers[f"scale_{method}.{measure}"].value


f_1 = {method: in_other_units(method, "f_1") for method in ("scalarized", "fedcmoo", "fsmgda")}
f_2 = {method: in_other_units(method, "f_2") for method in ("scalarized", "fedcmoo", "fsmgda")}
weight_1 = [in_other_units(method, "weight_1") for method in ("fedcmoo", "fsmgda")]
check(
    "Scalarized has a lower F_1 than FedCMOO and FSMGDA",
    f_1["scalarized"] < min(f_1["fedcmoo"], f_1["fsmgda"]),
)
check("    and a higher F_2", f_2["scalarized"] > max(f_2["fedcmoo"], f_2["fsmgda"]))
check("FedCMOO's and FSMGDA's weight of objective 1 is below 0.1", max(weight_1) < 0.1)

# %% [markdown]
# ## Where the paper and its code differ
#
# Three small computations support the [list of differences](../book/errata.md#fedcmoo).
#
# **The sketch is biased.** The convergence theorem requires $\mathbb E\,\mathcal Q(x)=x$ of the compressor $\mathcal
# Q$. The mean of many randomized SVDs of one Jacobian does not approach this Jacobian; the mean of scaled random masks
# does.

# %% tags=["hide-input", "nbval-check-output"]
rng = torch.Generator().manual_seed(0)
jacobian = sketches.related_jacobians(rng)[0]
low_rank_10 = sketches.mean_error(LowRank(), jacobian, 10, rng)
masked_10 = sketches.mean_error(Masked(), jacobian, 10, rng)
low_rank_90 = sketches.mean_error(LowRank(), jacobian, 90, rng)
masked_90 = sketches.mean_error(Masked(), jacobian, 90, rng)
check(
    "randomized SVD: ninety draws are no better than ten, within 10 %",
    abs(low_rank_90 / low_rank_10 - 1) < 0.1,
)
check(
    "scaled masks: nine times the draws, a third of the error, within 10 %",
    abs(3 * masked_90 / masked_10 - 1) < 0.1,
)

# %% [markdown]
# **The second term of the two-way estimate.** In FedCMOO's
# [estimate of the Gram matrix](note_cmoo.ipynb#the-two-way-estimate), this term consists of the products of different
# clients' messages. Algorithm 6 computes it from the sum of all messages, which the server has; the code computes it
# from a compressed form of this sum. For six clients whose Jacobians agree in part and have decaying singular values,
# the table shows the relative error of the estimated Gram matrix of the mean Jacobian.

# %% tags=["hide-input"]
errors = pd.DataFrame(
    {
        "M = 2": sketches.gram_errors(sketches.related_jacobians(rng, tasks=2), rng),
        "M = 11": sketches.gram_errors(sketches.related_jacobians(rng, tasks=11), rng),
    }
)
displayed(errors.round(3))

# %% tags=["hide-input", "nbval-check-output"]
one_way, two_way, authors_code, local_gram = errors.to_numpy()
check("two-way is better than one-way", (two_way < one_way).all())
check("the code's second term is worse than Algorithm 6's", (authors_code > two_way).all())
check("the clients' own Gram matrices alone are worst", (local_gram > one_way).all())

# %% [markdown]
# **The weights are not those of the minimum norm.** To minimize $w^\top Gw$ with the normalised Gram matrix $G$, the
# code takes a thousand gradient steps of size $10^{-3}$ in a round, in the first round from uniform weights. The check
# shows which share of the largest possible reduction the first round reaches, as the median over random matrices of
# very unequal gradients.

# %% tags=["hide-input", "nbval-check-output"]
for M in (2, 5, 11):
    rng = np.random.default_rng(0)
    share = np.median(sketches.gap_closed(M, instances=20, rng=rng))
    check(f"M = {M}: between 80 % and 99 % of the gain", 0.8 < share < 0.99)

# %% [markdown]
# ## Verdicts
#
# The rules and runs behind these verdicts are on the [claims page](../book/claims.md).

# %%
report.claims_table(page)

# %% [markdown]
# ```{provenance} cmoo_toy
# ```
#
# ```{notebook-links} cmoo_toy
# ```
