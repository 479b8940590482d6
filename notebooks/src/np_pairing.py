# %% [markdown]
# # Which constraint a client has
#
# **Question.** The full paper's Remark 1 {cite}`fedsgm2025` says that the skewness $K_{\rm loc}$ of the clients'
# gradients makes their models drift, even where that of the mean gradients vanishes. Does it?
#
# We exchange the constraints among the clients: each keeps its benign rows, the objective, and gets the malignant rows,
# the constraint, of another client. This changes $K_{\rm loc}$, but neither $f$ nor $g$ nor $K_{\rm glob}$.
# A difference between two runs is then an effect of the pairing alone. Under hard switching with all clients and no
# compression there can be none: all clients of a round step on their $f_j$, or all on their $g_j$, and the next model
# averages over all of them.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": the splits that judge; "quick": two splits, two pairings
seeds = None  # the splits that judge, which no run had before: full 7200 to 7229; quick 0, 1
rounds = None  # communication rounds T: full 300; quick 40
shifts = None  # pairings: client j gets the constraint of client j - shift: full 0, 1, 7, 13; quick 0, 1
lr = 1.0  # step size, the one that tuning picks
tolerance = 0.05  # switching threshold and level of the constraint, epsilon
betas = None  # sharpnesses of soft switching: full 20, 40, 400; quick 40
beta = 40.0  # sharpness with sampled clients or compression
participants = 10  # clients a round where they are sampled
local_steps = 5  # local steps with sampled clients or compression
local_steps_sweep = None  # local steps with all clients: full 1, 5, 20; quick 1, 5
fraction = 0.1  # K/d of Top-K, uplink and downlink, where there is compression
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %%
from functools import partial

from fedlib import Hard
from papers import STUDIES
from papers.fedsgm.np_pairing.runs import DEFAULTS, TurningFedSGM, paired, settings
from papers.kit import report
from papers.kit.claims import check
from papers.kit.quantities import Query, name_of

page = STUDIES["np_pairing"].page(globals())

# %% [markdown]
# ## The experiment
#
# `TurningFedSGM` is FedSGM and reports the angle between the changes of the model in two rounds.

# %%
hard = TurningFedSGM(
    lr=page.lr, local_steps=5, participants=20, tolerance=page.tolerance, switch=Hard()
)
traces = page.run(partial(paired, shift=0), hard=hard)
numbers = page.numbers

# %% [markdown]
# ## How far the pairing moves the model
#
# *Moved* is the largest distance of a final model from that of the data's own pairing, as a share of its length;
# *skewness* is the largest $\lVert K_{\rm loc}\rVert$ of a pairing divided by the smallest; *mixing* is the mean of
# $\sigma(1-\sigma)$; *turn* is the angle between the changes of two rounds; *turn, more* is by how much it is larger
# with the pairing of largest $\lVert K_{\rm loc}\rVert$ than with that of smallest.

# %%
names = {
    str(Query.of("run", **labels)): name_of(labels, DEFAULTS) for labels in settings(page.params)
}
measures = {
    "moved": "moved",
    "skewness": "skewness",
    "mixing": "mixing",
    "turn": "turn",
    "turn_more": "turn, more",
}
report.runs_table(page, names, measures)

# %% tags=["nbval-check-output"]
check(
    "hard, all clients, no compression: no model moves", max(numbers["hard.moved"].per_seed) <= 1e-5
)
check(
    "soft, one local step: no model moves", max(numbers["soft_local_steps1.moved"].per_seed) <= 1e-5
)
if page.profile != "quick":
    check("soft, five local steps: every model moves", min(numbers["soft.moved"].per_seed) > 1e-5)

# %% [markdown]
# Sampled clients and compressed messages make the pairing matter under hard switching too, for reasons of their own:
# the sample decides which constraints count, and a client's memory keeps what it did not send of both. These runs do
# not tell how much of that is $K_{\rm loc}$.
#
# ## Verdicts
#
# The [claims page](../book/claims.md) shows the rules and runs behind these verdicts. The control of the rule on
# turning, pairings that are chosen without looking at $K_{\rm loc}$, passes barely in two of its cells, so the three
# cells that hold say little.

# %%
report.claims_table(page)

# %% [markdown]
# ```{provenance} np_pairing
# ```
#
# ```{notebook-links} np_pairing
# ```
