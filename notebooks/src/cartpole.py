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
# # Constrained cartpole
#
# **Result.** Costs stay at the budget, and with soft switching and no compression
# {result}`cartpole/soft_none.success:.0%` of the seeds end at the paper's reward of 200, at a cost of
# {result}`cartpole/soft_none.cost:.0f`. A seed either succeeds or rests for hundreds of rounds on a plateau,
# which a mean over five seeds hides. What matters is soft against hard switching, the sharpness $\beta$, and two
# numbers that the paper does not print: the damping of the Fisher matrix and the number of states it is averaged
# over. The compressors of Table 1 make no difference larger than the scatter over seeds.
#
# A pole is to be balanced on a cart for 200 steps, and the cart is to keep away from five stretches
# of its track. The full paper {cite}`fedsgm2025` uses this constrained Markov decision process
# {cite}`schulman2015trpo` as its reinforcement-learning example (its Figures 3 and 4 and Table 1). Ten clients run
# their own environments; each has its own budget of costly steps, between 25 and 35 an episode; the
# server switches between reward and cost by the mean of what the sampled clients report.
#
# Balancing at the centre, where a cart starts, costs 1 a step, so the constraint becomes active long before
# anything is learned. With the damping of these runs even the row without compression is slower than the paper's, so
# what Table 1 says of Top-K is not judged on them.

# %% tags=["parameters"]
profile = "full"  # "full": the paper's setting, ten seeds; "quick": a few rounds of three clients
seeds = None  # seeds of the main rows; each fixes the policy's start and all simulations: full 0 to 9; quick 0, 1
sweep_seeds = None  # seeds of the sweeps: full 0 to 4; quick 0
fresh = None  # seeds that C18 alone is judged by: full 100 to 133; quick 100
rounds = None  # communication rounds T: full 500; quick 2
free_rounds = None  # rounds of the run without constraint: full 60; quick 2
clients = None  # clients N, with budgets evenly spaced on [25, 35]: full 10; quick 3
participants = None  # participants n of the main rows (the paper's m): full 7; quick 2
sweep_participants = None  # participants of the sweep of Figure 4: full 3, 5, 10; quick 1, 3
environments = None  # parallel environments a client; 200 samples each a round: full 5; quick 2
tolerance = 0.0  # switching threshold epsilon, in units of cost
beta = 0.2  # sharpness of soft switching
betas = None  # sharpnesses of the sweep: full 0.1, 0.5, 1; quick 1
damping = 0.1  # damping of the Fisher matrix
dampings = None  # the damping of the sweep: full 1
calibration = None  # dampings of the full runs that try to meet the uncompressed row of Table 1: full 0.03, 0.01; quick 0.03
calibrated = None  # that at which the Top-K rows are run too: full 0.01; quick 0.03
formats = None  # bits of the number formats of Table 1: full 16, 8, 4; quick 4
fractions = None  # K/d of Table 1: full 0.5, 0.25; quick 0.5
cg_steps = None  # iterations of conjugate gradient: full 10; quick 3
evaluate_every = None  # rounds between two evaluations: full 10; quick 2
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
from dataclasses import replace
from functools import partial

from fedlib import Hard, Soft, TopK
from papers import STUDIES
from papers.fedsgm.cartpole import PolicyFedSGM
from papers.fedsgm.cartpole.simulator import cartpole
from papers.kit import plot, report
from papers.kit.claims import check

page = STUDIES["cartpole"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and what stands below changes with it. What is stored under its configuration is
# loaded, anything else is computed; the study's other runs repeat it with other values.

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
runs = {"soft_none": soft, "soft_top0.5": half, "hard_top0.5": replace(half, switch=Hard())}
traces = page.run(problem, **runs)
numbers, health = page.numbers, page.health

# %% [markdown]
# ## The method here
#
# The local step is one step of trust-region policy optimization {cite}`schulman2015trpo`: advantages of reward and of
# cost, each normalized, are combined as $A=(1-\sigma)A_r-\sigma A_c$, and the policy moves along the natural gradient of
# $\mathbb E[\log\pi\,A]$ until the Kullback-Leibler divergence reaches its limit. FedSGM does the rest as always, with
# $E=1$ and step size 1: what a client sends is $\Delta_j=w_t-u_j$, compressed with error feedback. Policy: a
# Gaussian whose mean and log deviation come from a network 4-128-128-2, which has exactly the paper's
# $d=17\,410$ parameters.
#
# The paper says only "TRPO". What had to be chosen:
#
# | left open | our choice | why |
# | --- | --- | --- |
# | $\epsilon$ and $\beta$ | $\epsilon=0$, $\beta=0.2$ | Table 1's costs lie below the budget; $\beta$ swept below |
# | Fisher damping, KL limit | 0.1, 0.01 | damping matters most of all; sweep below |
# | conjugate gradient | 10 iterations on 100 of a client's 1,000 states | usual values |
# | line search | on the divergence alone | the switched direction ascends no single objective |
# | advantages | $\lambda=0.97$, $\gamma=1$ | the paper's $\gamma$ |
# | critics | ridge regression on 100 random cosine features of state and time, averaged over participants | as good as networks here, and fast |
# | estimate of the cost | first episode of each of 5 environments | unbiased; completed episodes alone are too short and look too cheap |
# | budgets | evenly spaced on $[25,35]$ | the drawn line is their mean, 30 |
# | centralized | one client with all 10,000 samples, budget 30, curvature on 1,000 states | the same data a round as all clients together |
# | number formats of 16, 8 and 4 bits | 10, 3 and 1 bits of mantissa, the exponent is free | the paper names the bits alone |
# | participants of Table 1 | 7 of 10 | as in Figure 3; the table names none |
# | Table 1's direction | compressed both ways | Algorithm 1 |

# %% [markdown]
# ### A check before anything else: without the constraint
#
# Policy optimization that cannot balance an unconstrained pole says nothing about constraints.

# %% tags=["remove-input", "nbval-check-output"]
_ = check("the policy has 17,410 parameters", cartpole(0).dim == 17_410)
reward = traces["free"].metrics["reward"]
reached = (reward.max(1) >= 195).all()
_ = check("without constraint every seed reaches a reward of 195", reached)
_ = check("and pays more than 60 for it", numbers["free.cost"].low > 60)
never = (traces["free"].info["sigma"] == 0).all()
_ = check("an infinite threshold never switches", never)

# %% [markdown]
# ## Figure 3: soft against hard, federated against centralized
#
# As in the paper, the bands are a fifth of a standard deviation. Seven of ten clients a round,
# Top-K with half of the entries both ways.

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_3"](traces),
    alt="Mean reward and cost of four runs over the rounds. Rewards rise slowly; the federated run "
    "with soft switching ends at 190, the other three between 125 and 160. Hard switching runs at "
    "a cost around 30, soft switching two to three below.",
    caption="Soft switching earns more reward than hard, federated more than centralized, at costs near "
    "the budget. Mean over seeds, band of 0.2 standard deviations; 50 evaluation episodes a "
    "point.",
    size=(8.6, 3.6),
)

# %% [markdown]
# ### Seeds that succeed
#
# Each mean above mixes seeds that learned to balance with seeds that got stuck. A seed *succeeds* if it ends with a reward of
# at least 190 at a cost of at most 30.

# %% tags=["remove-input"]
labels = {"federated, soft": "soft_top0.5", "federated, hard": "hard_top0.5"}
labels |= {"centralized, soft": "central_fine_soft", "centralized, hard": "central_fine_hard"}
labels |= {"centralized, soft, curvature on 100 states": "central_soft"}
labels |= {"centralized, hard, curvature on 100 states": "central_hard"}
labels |= {"federated, soft, no compression": "soft_none"}
measures = {"reward": "reward", "cost": "cost", "success": "share that succeeds"}
measures |= {"first": "first success", "violating": "violating, second half"}
report.runs_table(numbers, labels, measures, health)

# %% [markdown]
# The centralized rows hold a surprise. With the Fisher matrix averaged over 100 of the 10,000 states, as
# every single client does it, the centralized runs hardly learn (reward
# {result}`cartpole/central_soft.reward:.0f` soft); with 1,000 they do ({result}`cartpole/central_fine_soft.reward:.0f`). A
# federation averages the natural gradients of its participants, and with them the errors of their
# Fisher matrices. This explains part of what looks like an advantage of federated training.
#
# *Violating* is the share of rounds of the second half in which the server's estimate exceeds the budget.
# Under hard switching that must be about one half: the rule pushes up below the line and
# down above it. Soft switching balances at $\sigma\approx\frac12$, because both advantages have unit variance, hence at a cost
# of about $30+\epsilon-\frac1{2\beta}=$ {result}`cartpole/soft_level.predicted:.1f`; measured
# {result}`cartpole/soft_none.cost:.1f`. The paper's 27.6 without compression is close to that, its 33.2 centralized is not, so
# Table 1 does not say what its $\epsilon-\frac1{2\beta}$ was.

# %% [markdown]
# ## Table 1: compression
#
# The first row to look at is the one without compression: around round 100 its reward is
# {result}`cartpole/soft_none.reward100:.0f` where the paper has 67.2. The damping decides that, and the paper
# names none. Until our row without compression matches the paper's, our Top-K rows say nothing about
# theirs. So this row alone was run again with smaller dampings, and the Top-K rows then with the largest damping whose intervals contain both printed rewards of this row, 67.2 at
# round 100 and 199.4 at round 500. That is 0.01: with 0.03 the reward at round 100 is
# {result}`cartpole/none_damping0.03.reward100:.0f`, with 0.01 {result}`cartpole/none_damping0.01.reward100:.0f`, both over ten
# seeds. Top-K with a quarter of the entries learns there as it does here.
# All other rows have 0.1. Quantization does no visible harm there; its claims ({claim}`fedsgm/C19`,
# {claim}`fedsgm/C28`) are not judged, because the row without compression is missed.

# %% tags=["remove-input"]
report.paper_table(page.study, numbers)

# %% tags=["remove-input"]
plot.show(
    page.figures["table_1"](traces),
    alt="Final reward and cost of every seed for seven rows of Table 1, with the paper's values as "
    "red diamonds. In every row most seeds stand at 200 and a few below 120; costs lie between 25 "
    "and 30. The diamonds of Top-K 0.5 and 0.25 lie far to the left of all but a few seeds.",
    caption="No compressor stands out of the scatter over seeds; the paper's Top-K rows lie far below "
    "ours. Dots: seeds. Bars: 95 % interval of the mean. Diamonds: the paper.",
    size=(8.6, 3.8),
)

# %% tags=["remove-input"]
rows = {"none (float32)": "soft_none", "float16": "soft_float16", "float8": "soft_float8"}
rows |= {"float4": "soft_float4", "Top-K 0.5": "soft_top0.5", "Top-K 0.25": "soft_top0.25"}
rows |= {f"none, damping {x:g}": f"none_damping{x:g}" for x in page.calibration}
least = page.calibrated
rows |= {f"Top-K {k:g}, damping {least:g}": f"top{k:g}_damping{least:g}" for k in (0.5, 0.25)}
early = {"reward100": "reward, round 100", "cost100": "cost, round 100"}
report.runs_table(numbers, rows, early | measures, health)

# %% [markdown]
# ## Figure 4: participation

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_4"](traces),
    alt="Mean reward and cost for several numbers of participants a round; with all clients the "
    "reward rises soonest; costs overlap below the budget.",
    caption="More clients a round learn sooner and more steadily on average; the seeds scatter widely. "
    "Soft switching, Top-K with half of the entries both ways.",
    size=(8.6, 3.6),
)

# %% [markdown]
# The means are in the paper's order: the mean reward over the run is {result}`cartpole/half_n3.area:.0f` with 3 clients and
# {result}`cartpole/half_n10.area:.0f` with 10. But five seeds do not decide whether 3 clients are slower ({claim}`fedsgm/C18`).
# They do violate in more of the late rounds: {result}`cartpole/half_n3.violating:.2f` against
# {result}`cartpole/half_n10.violating:.2f`.

# %% [markdown]
# ## What the paper leaves open
#
# The damping of the Fisher matrix is in no paper's table of settings, and changes the result more than any compressor
# does: a large one turns the natural gradient into a plain one, and then little is learned. A
# wide soft band (small $\beta$) learns best of all, at a cost further below the budget. The damping of 1 and the
# sharpnesses other than 0.2 have five seeds.

# %% tags=["remove-input"]
swept = {f"damping {x:g}": f"none_damping{x:g}" for x in sorted(page.calibration)}
swept |= {f"damping {page.damping:g}, beta {page.beta:g}": "soft_none"}
swept |= {f"damping {x:g}": f"damping{x:g}" for x in page.dampings}
swept |= {f"beta {x:g}": f"beta{x:g}" for x in page.betas}
report.runs_table(numbers, swept, {"reward": "reward", "cost": "cost", "success": "share that succeeds"}, health)

# %% tags=["remove-input", "nbval-check-output"]
inside = all(0 <= t.info["sigma"].min() <= t.info["sigma"].max() <= 1 for t in traces.values())
_ = check("switching weights lie in [0, 1]", inside)
hard = traces["hard_top0.5"].info
agree = ((hard["g_hat"] > page.tolerance) == (hard["sigma"] == 1)).all()
_ = check("hard switching is 1 exactly where the estimate exceeds the threshold", agree)
long = all((t.metrics["reward"] <= 200).all() for t in traces.values())
_ = check("no episode is longer than 200 steps", long)

# %% [markdown]
# ## Verdicts

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)
