# %% [markdown]
# # Constrained cartpole
#
# **The book's result.** With soft switching and no compression, {result}`cartpole/soft.success:.0%` of the seeds
# end near the paper's reward of 200. The mean cost of all seeds is {result}`cartpole/soft.cost:.0f` costly steps
# an episode, below the mean budget of 30. A seed either succeeds or keeps a low reward for hundreds of rounds. The
# reward depends on the switching rule, on the sharpness $\beta$, and on two numbers that the paper does not print: the
# damping of the Fisher matrix and the number of states over which this matrix is averaged. Our rewards under the
# compressors of Table 1 differ no more than they scatter over the seeds.
#
# A pole must be balanced on a cart for 200 steps while the cart avoids five costly stretches of its track. This
# constrained Markov decision process {cite}`schulman2015trpo` is the reinforcement-learning example of the full paper
# {cite}`fedsgm2025`. Each of ten clients has its own environments and its own budget of costly steps, between 25 and 35
# per episode.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": the paper's setting, ten seeds; "quick": a few rounds of three clients
seeds = None  # seeds of the main rows; each fixes the policy's start and all simulations: full 0 to 9; quick 0, 1
sweep_seeds = None  # seeds of the sweeps: full 0 to 4; quick 0
fresh = None  # seeds that judge claim C18 alone: full 100 to 133; quick 100
rounds = None  # communication rounds T: full 500; quick 2
free_rounds = None  # rounds of the run without constraint: full 60; quick 2
clients = None  # clients N, with budgets evenly spaced on [25, 35]: full 10; quick 3
participants = None  # participants n of the main rows (the paper's m): full 7; quick 2
sweep_participants = None  # participants of the sweep of Figure 4: full 3, 5, 10; quick 1, 3
environments = None  # parallel environments of a client, each with 200 samples per round: full 5; quick 2
tolerance = 0.0  # switching threshold epsilon, in units of cost
beta = 0.2  # sharpness of soft switching
betas = None  # sharpnesses of the sweep: full 0.1, 0.5, 1; quick 1
damping = 0.1  # damping of the Fisher matrix
dampings = [1.0]  # the damping of the sweep
calibration = None  # dampings of the full runs that try to meet the uncompressed row of Table 1: full 0.03, 0.01; quick 0.03
calibrated = None  # damping at which the Top-K rows are run, too: full 0.01; quick 0.03
formats = None  # bits of the number formats of Table 1: full 16, 8, 4; quick 4
fractions = None  # K/d of Table 1: full 0.5, 0.25; quick 0.5
cg_steps = None  # iterations of conjugate gradient: full 10; quick 3
evaluate_every = None  # rounds between two evaluations: full 10; quick 2
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
from dataclasses import replace
from functools import partial

import seaborn as sns

from fedlib import Hard, Soft, TopK
from papers import STUDIES
from papers.fedsgm.cartpole import quantities
from papers.fedsgm.cartpole.claims import TABLE_1
from papers.fedsgm.cartpole.method import PolicyFedSGM
from papers.fedsgm.cartpole.quantities import BUDGET
from papers.fedsgm.cartpole.runs import STATES, defaults
from papers.fedsgm.cartpole.simulator import cartpole
from papers.kit import plot, report
from papers.kit.claims import check
from papers.kit.quantities import name_of

plot.theme()
page = STUDIES["cartpole"].page(globals())

# %% [markdown]
# ## The experiment
#
# If you change this cell, the results below change.

# %%
problem = partial(cartpole, clients=page.clients, environments=page.environments)
soft = PolicyFedSGM(
    participants=page.participants,
    tolerance=page.tolerance,
    switch=Soft(page.beta),
    damping=page.damping,
    cg_steps=page.cg_steps,
)
half = replace(soft, uplink=TopK(0.5), downlink=TopK(0.5))
runs = {"soft": soft, "soft_fraction0.5": half, "hard_fraction0.5": replace(half, switch=Hard())}
traces = page.run(problem, **runs)
numbers = page.numbers

# %% [markdown]
# ## Figure 3: soft against hard, federated against centralized
#
# In the federated runs seven of ten clients take part in a round, and Top-K keeps half of the entries in both
# directions. The bands show a fifth of a standard deviation, as in the paper.

# %%
usual = defaults(page.params)
both = {"reward": "episodic reward", "cost": "episodic cost"}
shown = page.curves(["training", "switch", "fraction", "states"], usual)
finest = shown["states"] == shown["training"].map(shown.groupby("training")["states"].max())
half = (shown["training"] == "central") | (shown["fraction"] == 0.5)
means = plot.over_seeds(shown[finest & half].sort_values("switch"), both, around=0.2)
grid = sns.relplot(means, hue="switch", style="training", col="metric", **plot.LINES)
grid.axes_dict["episodic reward"].set_ylim(0, 208)
plot.levels([grid.axes_dict["episodic cost"]], BUDGET, "budget")
plot.finish(grid, size=(8.6, 3.6))
plot.show(
    grid,
    "figure_3",
    alt="Mean reward and cost of four runs over the rounds. The federated run "
    "with soft switching ends at 190, the other three between 125 and 160. Hard switching has "
    "a cost around 30, soft switching a cost two to three lower.",
    caption="Soft switching earns more reward than hard switching, at costs near the budget. Whether federated earns more "
    "than centralized training is open. Curves are means over the seeds, bands a fifth of a standard deviation, as in "
    "the paper; each point has 50 evaluation episodes.",
)

# %% [markdown]
# ### Seeds that succeed
#
# A seed *succeeds* if it ends with a reward of at least 190 and a cost of at most 30.

# %% tags=["hide-input"]
fine = f"states{STATES * page.clients}"
names = {"federated, soft": "soft_fraction0.5", "federated, hard": "hard_fraction0.5"}
names |= {"centralized, soft": f"central_soft_{fine}", "centralized, hard": f"central_hard_{fine}"}
names |= {"centralized, soft, Fisher matrix from 100 states": "central_soft"}
names |= {"centralized, hard, Fisher matrix from 100 states": "central_hard"}
names |= {"federated, soft, no compression": "soft"}
measures = {"reward": "reward", "cost": "cost", "success": "share that succeeds"}
measures |= {"first": "first success", "violating": "share violating, second half"}
report.runs_table(page, names, measures)

# %% [markdown]
# Each client averages its Fisher matrix over 100 states. If centralized runs do the same, they hardly learn: under soft
# switching their reward is {result}`cartpole/central_soft.reward:.0f`, and
# {result}`cartpole/central_soft_states1000.reward:.0f` with 1,000 states. A federation averages the natural gradients of its
# participants, so the errors of their Fisher matrices partly cancel. This explains part of the apparent advantage of
# federated training.
#
# *Violating* is the share of rounds in the second half in which the server's estimate of the cost exceeds the budget.
# Under hard switching it must be about one half, because the rule lets the cost rise while it is below the budget and
# lowers it while it is above. Under soft switching, reward and cost should balance at $\sigma\approx\frac12$, because
# both advantages have unit variance. Soft switching sets this weight at a cost of $30+\epsilon-\frac1{2\beta}=$
# {result}`cartpole/soft_level.predicted:.1f`; without compression we measure {result}`cartpole/soft.cost:.1f`. In
# the paper's Table 1, the cost without compression, 27.6, is close to this prediction; the centralized cost, 33.2, is
# not.

# %% [markdown]
# ## The method here
#
# A local step of FedSGM is here one step of trust-region policy optimization (TRPO) {cite}`schulman2015trpo`. The
# client normalizes the advantages $A_r$ of the reward and $A_c$ of the cost and combines them with the switching weight
# $\sigma$ as $A=(1-\sigma)A_r-\sigma A_c$. It then moves the policy along the natural gradient of $\mathbb
# E[\log\pi\,A]$ until the Kullback-Leibler (KL) divergence reaches its limit. With $E=1$ and step size 1, the client
# sends the difference $\Delta_j=w_t-u_j$ between the common and its own policy, compressed with error feedback. The
# policy is a Gaussian, whose mean and logarithmic standard deviation come from a network 4-128-128-2 with the paper's
# $d=17\,410$ parameters.
#
# The paper says only "TRPO"; these settings are ours:
#
# | Open in the paper | Our choice | Reason |
# | --- | --- | --- |
# | $\epsilon$ and $\beta$ | $\epsilon=0$, $\beta=0.2$ | Costs then settle below the budget, as in Table 1. |
# | Fisher damping, KL limit | 0.1, 0.01 | *What the paper leaves open* shows other dampings. |
# | conjugate gradient | 10 iterations on 100 of a client's 1,000 states | These are usual values. |
# | line search | on the divergence alone | The switched direction ascends no single objective. |
# | generalized advantages | $\lambda=0.97$, $\gamma=1$ | The paper prints this $\gamma$. |
# | critics | ridge regression on 100 random cosine features of state and time, averaged over the participants | They are as good as networks on this task, and faster. |
# | estimate of the cost | first episode of each of 5 environments | It is unbiased. Of the later episodes, only short ones end within the 200 samples of a round, and their cost is too low. |
# | budgets | evenly spaced on $[25,35]$ | The line in the paper's figures is at their mean, 30. |
# | centralized runs | one client with all 10,000 samples, budget 30, Fisher matrix from 1,000 states | A round uses as much data as all clients together. |
# | number formats of 16, 8 and 4 bits | 10, 3 and 1 bits of mantissa and an unrestricted exponent | The paper names only the number of bits. |
# | participants in Table 1 | 7 of 10 | Figure 3 has 7; Table 1 names no number. |
# | compressed directions in Table 1 | uplink and downlink, with error feedback | Algorithm 1 compresses both. |
# | observations, start of the policy | five times the angle; last layer scaled by 0.01; logarithm of the standard deviation from $-0.5$ on, from the state | The first actions are small and random. |

# %% [markdown]
# ### A check: without the constraint

# %% tags=["hide-input", "nbval-check-output"]
check("the policy has 17,410 parameters", cartpole(0).dim == 17_410)
if page.profile != "quick":
    reached = (traces["soft_no_constraint"].metrics["reward"].max(1) >= 195).all()
    check("without the constraint every seed reaches a reward of 195", reached)
    check(
        "without the constraint the mean cost is above 60",
        numbers["soft_no_constraint.cost"].low > 60,
    )
never = (traces["soft_no_constraint"].info["sigma"] == 0).all()
check("with an infinite threshold no round works on the cost", never)

# %% [markdown]
# ## Table 1: compression
#
# Our Top-K rows can be compared with the paper's only if our row without compression matches the paper's. With the
# damping of our main runs, 0.1, it does not: its reward around round 100 is {result}`cartpole/soft.reward100:.0f`,
# and 67.2 in the paper.
#
# We therefore ran this row with smaller dampings. Its reward at round 100 is
# {result}`cartpole/soft_damping0.03.reward100:.0f` with damping 0.03 and
# {result}`cartpole/soft_damping0.01.reward100:.0f` with 0.01. Only with 0.01 do our intervals contain both rewards that
# the paper prints, 67.2 at round 100 and 199.4 at round 500, so we ran Top-K with this damping. Top-K with a quarter of
# the entries learns with damping 0.01 and with 0.1; in the paper it does not learn.
#
# All other rows use damping 0.1, with which our row without compression does not match the paper's. Their verdicts
# ({claim}`fedsgm/C19`, {claim}`fedsgm/C21`, {claim}`fedsgm/C28`, {claim}`fedsgm/C39`) are about our rows alone.
#
# The paper writes that Top-K "is simulated by zeroing out the gradient vector", and names error feedback for quantization.
# We compress the messages, with error feedback. The sentence may as well mean the policy gradient, or messages without
# feedback; the verdict on {claim}`fedsgm/C20` is for our reading alone. [Table 1 as described](cartpole_table) has all
# three readings, on fresh seeds.

# %%
report.paper_table(page)

# %%
at = max(number for number in quantities.ROUNDS if number <= max(page.rounds, quantities.ROUNDS[0]))
final = {f"reward{at}": f"reward around round {at}", f"cost{at}": f"cost around round {at}"}
ends = numbers.by_seed(final, ["training", "fraction", "bits", "states"], switch="soft")
rows = {name_of(labels, usual): text for labels, text, *_ in TABLE_1}
ends = plot.worded(ends, run=rows).rename(columns={"run": "row"})
order = [*ends["row"].cat.categories]
grid = sns.catplot(
    ends,
    kind="swarm",
    x="value",
    y="row",
    hue="row",
    col="metric",
    sharex=False,
    size=3,
    legend=False,
)
line = {
    "errorbar": plot.interval,
    "marker": "|",
    "linestyle": "none",
    "color": "gray",
    "capsize": 0.25,
    "linewidth": 1.5,
}
grid.map_dataframe(sns.pointplot, x="value", y="row", order=order, **line)
for number, ax in enumerate(grid.axes[0]):
    printed = [row[4 + number] for row in TABLE_1 if row[1] in order]
    ax.plot(printed, order, "D", color="none", markeredgecolor=plot.LEVEL, markersize=7)
    ax.set(xlabel="", ylabel="")
plot.finish(grid, size=(8.6, 3.8))
plot.show(
    grid,
    "table_1",
    alt="Final reward and cost of every seed for seven rows of Table 1; the paper's values are "
    "red diamonds. In every row most rewards are 200 and a few below 120; costs are between 25 "
    "and 30. The diamonds of Top-K lie far to the left of most seeds.",
    caption="The differences between the compressors are within the scatter over the seeds; the paper's Top-K rows lie "
    "far below ours. Dots are seeds, bars 95 % intervals of the mean, and diamonds the paper's values.",
)

# %% tags=["hide-input"]
rows = {
    "none (float32)": "soft",
    "float16": "soft_bits16",
    "float8": "soft_bits8",
    "float4": "soft_bits4",
}
rows |= {"Top-K 0.5": "soft_fraction0.5", "Top-K 0.25": "soft_fraction0.25"}
rows |= {f"none, damping {damping:g}": f"soft_damping{damping:g}" for damping in page.calibration}
least = f"damping{page.calibrated:g}"
rows |= {
    f"Top-K {k:g}, damping {page.calibrated:g}": f"soft_fraction{k:g}_{least}" for k in (0.5, 0.25)
}
early = {"reward100": "reward, round 100", "cost100": "cost, round 100"}
report.runs_table(page, rows, early | measures)

# %% [markdown]
# ## Figure 4: participation

# %%
shown = page.curves(["participants"], usual, switch="soft", fraction=0.5).sort_values(
    "participants"
)
shown["clients a round"] = shown["participants"].map("{:g}".format)
means = plot.over_seeds(shown, both, around=0.2)
grid = sns.relplot(means, hue="clients a round", col="metric", palette=plot.SWEEP, **plot.LINES)
grid.axes_dict["episodic reward"].set_ylim(0, 208)
plot.levels([grid.axes_dict["episodic cost"]], BUDGET, "budget")
plot.finish(grid, size=(8.6, 3.6))
plot.show(
    grid,
    "figure_4",
    alt="Mean reward and cost for several numbers of participants per round. With all clients the "
    "reward rises soonest, but the smallest number is not the slowest; the costs overlap below the budget.",
    caption="With all clients the policy learns soonest on average. Among the smaller numbers, more clients are not always "
    "faster: the seeds scatter widely. All runs use soft switching and Top-K with half of the entries in both directions. "
    "Curves are means over the seeds, bands a fifth of a standard deviation.",
)

# %% [markdown]
# With fewer clients per round, the policy learns more slowly and less steadily ({claim}`fedsgm/C18`). The figure shows
# five seeds; the following values are from thirty-four fresh seeds. The mean reward over the run is
# {result}`cartpole/soft_fraction0.5_participants3_fresh.area:.0f` with 3 clients and {result}`cartpole/soft_fraction0.5_participants10_fresh.area:.0f` with 10. In the second
# half, the cost changes from one evaluation to the next by {result}`cartpole/soft_fraction0.5_participants3_fresh.cost_scatter:.1f` with 3 clients
# and by {result}`cartpole/soft_fraction0.5_participants10_fresh.cost_scatter:.1f` with 10. The shares of violating rounds are
# {result}`cartpole/soft_fraction0.5_participants3_fresh.violating:.2f` and {result}`cartpole/soft_fraction0.5_participants10_fresh.violating:.2f`.

# %% [markdown]
# ## What the paper leaves open
#
# The damping of the Fisher matrix changes the reward more than any compressor does. A large damping turns the natural
# gradient into the plain gradient, and then little is learned. With the smallest sharpness $\beta$, the reward is
# highest and the cost furthest below the budget. The runs with damping 1 or a sharpness other than 0.2 have five seeds.

# %% tags=["hide-input"]
dampings = [*sorted(page.calibration), *page.dampings]
swept = {f"damping {damping:g}": f"soft_damping{damping:g}" for damping in dampings}
swept |= {f"damping {page.damping:g}, beta {page.beta:g}": "soft"}
swept |= {f"beta {beta:g}": f"soft_beta{beta:g}" for beta in page.betas}
report.runs_table(
    page, swept, {"reward": "reward", "cost": "cost", "success": "share that succeeds"}
)

# %% tags=["hide-input", "nbval-check-output"]
inside = all(0 <= t.info["sigma"].min() <= t.info["sigma"].max() <= 1 for t in traces.values())
check("switching weights lie in [0, 1]", inside)
hard = traces["hard_fraction0.5"].info
agree = ((hard["g_hat"] > page.tolerance) == (hard["sigma"] == 1)).all()
check("the weight of hard switching is 1 exactly when the estimate exceeds the threshold", agree)
long = all((t.metrics["reward"] <= 200).all() for t in traces.values())
check("no episode is longer than 200 steps", long)

# %% [markdown]
# ## Verdicts

# %%
report.claims_table(page)

# %% [markdown]
# ```{provenance} cartpole
# ```
#
# ```{notebook-links} cartpole
# ```
