# %% [markdown]
# # The arena: one problem, every method that applies
#
# This page compares the federated methods of the library under one
# protocol, on three small problems of the form $\min_w f(w)$ subject to $g(w)\le c$, where $f$ and $g$ are means over
# the clients. A method uses $g$ as a constraint, as a second objective, or, if $g$ is a norm, as the definition of a
# feasible set.
#
# **The book's result.** No method is first on all problems. At equal numbers of gradients, Constrained SSCA is first on
# the problem *Neyman-Pearson*, FedCMOO-Pref on *Two tasks*, and projected FedAvg on *Sparse regression*. On each
# problem, ten seeds do not distinguish several other methods from the first.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": three problems, ten seeds; "quick": two problems, two methods, short runs
problems = None  # the problems: full np, pair, sparse; quick np, sparse
methods = None  # the methods; each problem leaves out those that do not apply: full hard, soft, topk, penalty, ssca, fedfw, plus, dr, fedavg, fedcmoo, pref, scalar; quick soft, fedfw
seeds = None  # seeds; each fixes the data or their split, and the batches: full 0 to 9; quick 0, 1, 2
passes = None  # gradients of every client in a run: the budget of every configuration: full 1200; quick 60
local_steps = None  # local steps E of the methods with local steps: full 5; quick 2
batch = 64  # largest batch of a client, on the problems with minibatches
grid = None  # configurations of every method: full 15; quick 4
stand_in = None  # 0: the files of Adult; else that many generated people in their place: full 0; quick 2000
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
from papers import STUDIES
from papers.arena import tables
from papers.arena.problems import NAMES
from papers.kit.claims import check
from papers.kit.display import show

page = STUDIES["arena"].page(globals())

# %% [markdown]
# ## The experiment
#
# If you change this cell, the results below change.

# %%
# The grids of rule 3; a keyword with the name of a run gives it another algorithm
traces = page.run()
numbers = page.numbers
health = page.health

# %% tags=["hide-input"]
for p in tables.problems(numbers):
    show(NAMES[p], tables.table(numbers, p, health))

# %% [markdown]
# The columns *equal gradients* and *equal bits* rank the methods under two budgets by [rule 4](#one-protocol); the
# columns with percentages are for equal gradients. The *optimum* is the best model for the training rows. *Behind, %*
# is a method's test objective minus that of the first method, *above optimum, %* is its test objective minus that of
# the optimum. Both are in percent of the optimum's test objective. *Violation, %* is $g-c$ on test rows in percent of
# $c$.
#
# ## Three problems
#
# | problem | $f$ | $g\le c$ | clients |
# | --- | --- | --- | --- |
# | **Neyman-Pearson**: 4,000 people of Adult {cite}`becker1996adult`, drawn anew by every seed, $d=88$ | logistic loss of the people with low income | logistic loss of the people with high income, $c=0.5$ | 8 similar clients; full gradients |
# | **Two tasks**: scikit-learn's digits, $d=65$ | logistic loss for the label "even" (both labels share one score) | logistic loss for the label "five or more", $c=0.6$ | 10 clients with different shares of the digits; batches of 32 |
# | **Sparse regression**: generated data, $d=100$, true model with ten entries $\pm1$ | half the mean squared error | $\lVert w\rVert_1$ divided by the norm of the true model, $c=1$ | 8 clients, each with its own feature scales; full gradients |
#
# All models are linear and start at 0. The logistic losses $f$ include a ridge $\frac{0.03}2\lVert w\rVert^2$, and all
# problems are convex. The optimum on the training rows is computed by standard solvers (SLSQP, and accelerated
# projected gradients for sparse regression); a check below says how
# nearly it satisfies the optimality conditions.
# FedFW, FedFW+ and FedDR need a set with a projection or a linear oracle, so they run only on sparse regression.
#
# ## One protocol
#
# 1. **Rows.** The test rows are a quarter of the rows (two tasks), 25 rows of every client (sparse regression), or all
#    people not used otherwise (Neyman-Pearson). The validation rows are a fifth of every client's remaining rows, or
#    10,000 people who are at no client (Neyman-Pearson). Each of the ten seeds fixes the split or the data, and the
#    batches. All clients take part in every round.
# 2. **Budget.** In a *pass*, every client computes one gradient on one batch, of one loss or of a weighted sum of
#    losses. So $E$ local steps are $E$ passes, and the Jacobian of two losses is two passes. On a problem, all
#    configurations have the same number of passes; Neyman-Pearson has half as many as the other problems. At *equal
#    bits*, a run stops when it has sent and received as many bits as FedAvg does in 40 % of its rounds.
# 3. **Tuning.** Every method has fifteen configurations, with step sizes from $0.1/L$ to $10/L$, where $L$ is the
#    smoothness constant. We choose the configuration with the smallest mean $f$ on the validation rows among those
#    whose mean violation there is at most 2.5 % of the level $c$; if there is none, that with the smallest violation.
#    FedCMOO and Scalarized do not know $c$ and have a weight for $g$ instead. A run that diverges keeps its last model
#    before the divergence.
# 4. **Winner.** A method *keeps* the constraint if the 95 % interval of its mean violation on test rows lies entirely
#    at or below 5 % of the level, and *violates* it if the interval lies entirely above; otherwise the *violation* is
#    *not decided*. Of the methods that keep the constraint, the *first* has the smallest mean test $f$. Another of them
#    is *behind* if a paired $t$ test over the seeds, with Holm's correction {cite}`holm1979simple` at 5 %, shows a
#    difference from the first; otherwise its order is *not decided*. The first method is the *winner* if all others
#    that keep the constraint are behind.
#
# **What the tables do not tell.** Rule 4 compares $f$ alone, so the 5 % that it tolerates can be spent. On *Two tasks*
# FedCMOO-Pref is first with a test objective {result}`arena/pair_pref_grads.test_gap:+.1f` % from the optimum and a
# violation of {result}`arena/pair_pref_grads.test_excess:.1f` %; Constrained SSCA has
# {result}`arena/pair_ssca_grads.test_gap:+.1f` % and {result}`arena/pair_ssca_grads.test_excess:.1f` %. Most of the
# chosen configurations lie on an edge of their grid (see the checks), so another grid may give another order: on
# *Neyman-Pearson*, Scalarized, whose weights are a factor 3 apart, ends
# {result}`arena/np_scalar_grads.test_gap:.0f` % above the optimum and {result}`arena/np_scalar_grads.test_excess:.0f` %
# from the level. FedCMOO and Scalarized do not solve $\min f$ subject to $g\le c$; *behind* says how they do in a task
# that is not theirs.
#
# A first version of these rules counted uploads only and ranked every method that was not shown to violate the
# constraint. The present version was written when we knew the results of the first. Small linear models do not predict
# results for networks. Partial participation, the privacy of SSCA's messages and many objectives are not covered. At
# the end of this page, *not healthy* counts the configurations that end no better than their start.

# %% [markdown]
# ## Checks

# %% tags=["nbval-check-output", "hide-input"]
ranked_problems = tables.problems(numbers)
check(
    "every residual of an optimum is below 1e-5",
    all(abs(numbers[f"{p}_reference.residual"].value) < 1e-5 for p in ranked_problems),
)
if page.profile == "full":
    chosen, edges, corners = tables.on_edges(numbers, page.grid)
    check(
        "most chosen configurations with two parameters lie on an edge",
        2 * edges > chosen,
        f"{edges} of {chosen}, {corners} in a corner",
    )
check(
    "no problem has two methods that are first",
    all(
        sum(
            tables.standing(numbers, p, m) in ("winner", "first") for m in tables.ranked(numbers, p)
        )
        <= 1
        for p in ranked_problems
    ),
)

# %% [markdown]
# ```{provenance} arena
# ```
#
# ```{notebook-links} arena
# ```
