# %% [markdown]
# # Neyman-Pearson classification, tuned as in the paper
#
# **Question.** The full paper {cite}`fedsgm2025` tunes step sizes over powers of ten and plots the best. The
# [first study](np_unified) of its figures has one step size for all runs. Which of its verdicts change at the step that
# tuning picks, on splits that were drawn after the rules were fixed?
#
# On ten splits that judge nothing, tuning picks step 1, an end of the grid, for hard and for soft switching.
# Everything here runs at this step on splits that no run had before. Penalty-FedAvg sends messages that are compressed
# like those of FedSGM; in the first study it sends all entries. Its steps were tuned on the same ten splits.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": the splits that judge; "quick": two splits, short sweeps
seeds = None  # the splits that judge, which no run had before: full 7000 to 7099; quick 0, 1
tuning_seeds = None  # the splits on which the penalties' steps are tuned: full 0 to 9; quick 2, 3
rounds = None  # communication rounds T: full 500; quick 40
lr = 1.0  # step size of FedSGM, which tuning picks
lrs = None  # step sizes that are tuned over for the penalties: full 1, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001; quick 1, 0.1
tolerance = 0.05  # switching threshold and level of the constraint, epsilon
beta = 40.0  # sharpness of soft switching
betas = None  # sharpnesses of the sweep: full 20, 80, 120, 400, 4000; quick 20
end_betas = None  # sharpnesses with all clients: full 20, 4000; quick 20
participants = 10  # clients a round
participations = None  # clients a round in the sweep: full 2, 5, 15; quick 5
local_steps = 5  # local steps E
local_steps_sweep = None  # local steps in the sweep: full 1, 2, 10, 20; quick 1
fraction = 0.1  # K/d of Top-K, uplink and downlink
fractions = None  # K/d in the sweep: full 0.04, 0.25, 0.5, 1; quick 1
rhos = None  # penalties of Penalty-FedAvg: full 0.001, 0.5, 2, 20, 100; quick 0.5, 20
penalty_lrs = None  # the step of each penalty, which tuning picks: full 0.01, 1, 0.3, 0.3, 0.03; quick 1, 0.1
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %%
from dataclasses import replace

from fedlib import FedSGM, Hard, Soft, TopK
from papers import STUDIES
from papers.fedsgm.np_unified.runs import problem
from papers.kit import report
from papers.kit.claims import check
from papers.kit.rejudged import rejudged

page = STUDIES["np_protocol"].page(globals())

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

# %% [markdown]
# ## What changes
#
# The last column has the verdicts of the first study, at step 0.3 on thirty splits. A part *holds* if all of its interval does.

# %% tags=["hide-input"]
rejudged(page, STUDIES["np_unified"])

# %% [markdown]
# ## The runs behind it
#
# *Late* values are means over the last fifth of the rounds. A split is *infeasible* if its late $g$ exceeds
# $\epsilon$ by more than a twentieth. A penalty is *right* on a split if it is feasible there and its late $f$ exceeds
# that of soft FedSGM by at most a twentieth of the fall from the start; a sharpness likewise.

# %%
names = {"hard": "hard", "soft": "soft", "hard, all clients": "hard_participants20"}
names["soft, all clients"] = "soft_participants20"
measures = {"f": "late f", "g": "late g", "infeasible": "infeasible", "oscillation": "change of g"}
report.runs_table(page, names, measures)

# %%
names = {f"penalty {rho:g}": f"penalty_rho{rho:g}" for rho in page.rhos}
names |= {"sharpness 40": "soft"} | {
    f"sharpness {beta:g}": f"soft_beta{beta:g}" for beta in page.betas
}
report.runs_table(page, names, {"f": "late f", "g": "late g", "right": "right"})

# %% tags=["nbval-check-output"]
check(
    "soft switching has the lower late g with 10 of 20 clients",
    numbers["soft.g"].value < numbers["hard.g"].value,
)
for rho, step in zip(page.rhos, page.penalty_lrs, strict=True):
    if page.lrs == STUDIES["np_protocol"].resolve("full")["lrs"]:
        picked = numbers[f"penalty_rho{rho:g}_tuning.lr"].value
        check(f"tuning picks the step of penalty {rho:g}", picked == step, f"{step:g}")

# %% [markdown]
# ## Verdicts
#
# The [claims page](../book/claims.md) shows the rules and runs behind these verdicts.

# %%
report.claims_table(page)

# %% [markdown]
# ```{provenance} np_protocol
# ```
#
# ```{notebook-links} np_protocol
# ```
