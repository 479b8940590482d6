# %% [markdown]
# # Unbiased compression, without error feedback
#
# In FedSGM's workshop paper {cite}`upadhyay2025switching` (W below), clients compress the sum of their steps by a
# random, unbiased compressor, without error feedback: they keep no memory of what a message left out. This note proves Lemmas 3 to 5 of W and corrects Theorems 1 and 2
# on hard and soft switching (6 and 7 in W's appendix). The compressor's relative variance $q_u$ adds one term to the
# constant $\Gamma$ of the threshold.
#
# W's proofs bound the *mean* regret over the compressor's draws, but W claims that in every run the averaged iterate
# exists and is an $\epsilon$-solution. In {prf:ref}`unb-example` with $d=10$ this claim fails in one run out of four.
# {prf:ref}`unb-theorem` states what holds.
#
# The notation is that of the [note on hard switching](note_hard_switching.ipynb).

# %% [markdown]
# ## Setting
#
# Round $t$ is as in {eq}`eq-hard-update`, except that client $j$ sends $C_j(X_j)$ in place of
# $X_j=\sum_{\tau<E}\nu_{j,\tau}$:
#
# $$
# w_{t+1}=w_t-\frac\eta N\sum_{j=1}^NC_j(X_j) .
# $$ (eq-unb-update)
#
# ```{prf:assumption} W-A2
# :label: unb-assumption
#
# For all $x$, $\mathbb E[C_j(x)]=x$ and $\mathbb E\lVert C_j(x)-x\rVert^2\le q_u\lVert x\rVert^2$ with $q_u\ge0$. The
# $C_j$ are independent over clients, and over rounds.
# ```
#
# ```{prf:lemma} Rand-K
# :label: unb-lemma-randk
#
# If $C_j$ keeps $K$ of $d$ entries, chosen uniformly, and multiplies them by $d/K$, then {prf:ref}`unb-assumption`
# holds with $q_u=\frac dK-1$, and its inequality is an equality for every $x$.
# ```
#
# ```{prf:proof}
# Entry $i$ of $x$ is kept with probability $p=\frac Kd$. So the mean of entry $i$ of $C_j(x)$ is
# $p\cdot\frac{x_i}p=x_i$, and the variance is $p\big(\frac{x_i}p\big)^2-x_i^2=\big(\frac1p-1\big)x_i^2$. Sum the
# variances over $i$.
# ```
#
# W Lemma 5, on the drift of the local steps, is proved in the note on hard switching ({prf:ref}`hard-lemma-2`). For W
# Lemmas 3 and 4, let $\mathbb E_t$ be the expectation over the compressors of round $t$, given $w_t$.
#
# ```{prf:lemma} W Lemma 3
# :label: unb-lemma-square
#
# $\mathbb E_t\big\lVert\frac1N\sum_jC_j(X_j)\big\rVert^2\le E^2G^2\big(1+\frac{q_u}N\big)$.
# ```
#
# ```{prf:proof}
# Write $C_j(X_j)=X_j+\zeta_j$. Given $w_t$, $X_j$ is fixed, and $\mathbb E_t\zeta_j=0$.
#
# 1. Expand the square. The products $\langle X_i,\zeta_j\rangle$ have mean zero, and by independence so do
#    $\langle\zeta_i,\zeta_j\rangle$ for $i\ne j$.
# 2. The terms $\lVert\frac1N\sum X_j\rVert^2+\frac1{N^2}\sum_j\mathbb E_t\lVert\zeta_j\rVert^2$ remain. Since every
#    $\lVert X_j\rVert\le EG$, the first term is at most $E^2G^2$. By {prf:ref}`unb-assumption`, the second term is at
#    most $\frac1{N^2}\cdot N\cdot q_uE^2G^2$.
# ```
#
# With Rand-K the lemma is an equality if all $X_j$ are the same vector of length $EG$.
#
# ```{prf:lemma} W Lemma 4
# :label: unb-lemma-cross
#
# For every $\alpha>0$, $-2\eta\,\mathbb E_t\big\langle w_t-w^*,\frac1N\sum_jC_j(X_j)\big\rangle$ is at most the right
# side of {eq}`eq-hard-lemma1`.
# ```
#
# ```{prf:proof}
# The inner product is linear in $C_j(X_j)$, and $w_t-w^*$ is fixed given $w_t$. So $\mathbb E_t$ replaces $C_j(X_j)$ by
# $X_j$. The result is the left side of {eq}`eq-hard-lemma1`.
# ```

# %% [markdown]
# ## The expected regret
#
# ```{prf:lemma} Regret in expectation
# :label: unb-lemma-regret
#
# Let $\sigma_t$ be the constraint's weight: $0$ or $1$ for hard switching, {eq}`eq-soft-weight` for soft switching. Let
#
# $$
# R=\frac1T\sum_{t<T}\Big[(1-\sigma_t)\big(f(w_t)-f(w^*)\big)+\sigma_t\big(g(w_t)-g(w^*)\big)\Big].
# $$ (eq-unb-r)
#
# Then $\mathbb E R\le\frac{D^2}{2\eta ET}+\eta G^2\Gamma$, where
#
# $$
# \Gamma=2E^2+\frac{E\,q_u}{2N},\qquad\text{or even}\qquad\Gamma_{\rm direct}=\frac{3E}2-1+\frac{E\,q_u}{2N} ,
# $$ (eq-unb-gamma)
#
# and $\mathbb ER\le B(\Gamma)$ if $\eta=\eta(\Gamma)$.
# ```
#
# ```{prf:proof}
# Insert {eq}`eq-unb-update` and expand $\mathbb E_t\lVert w_{t+1}-w^*\rVert^2$.
#
# 1. By {prf:ref}`unb-lemma-cross`, the cross term has the same bound as without compression, because $\sigma_t$ is
#    fixed given $w_t$.
# 2. By {prf:ref}`unb-lemma-square`, the square term is at most $\eta^2E^2G^2+\eta^2E^2G^2\frac{q_u}N$. Only the second
#    summand is new. Divided by $2\eta^2EG^2$, it is $\frac{Eq_u}{2N}$. The terms without compression, divided likewise,
#    add up to $\Gamma_0\le2E^2$ or to $\frac{3E}2-1$ ({eq}`eq-hard-gammas`).
# 3. Take the expectation over all rounds. The expected distances telescope as in {prf:ref}`hard-lemma-regret`.
# ```
#
# W concludes, as in the proof of {prf:ref}`hard-theorem`, that the set $\mathcal A$ of good rounds is not empty. But
# $\mathbb ER\le\epsilon$ does not bound $R$ on every path (outcome of the draws).

# %% [markdown]
# ## A path without a good round
#
# ```{prf:example} One client, one coordinate
# :label: unb-example
#
# Let $N=E=G=D=1$ in dimension $d\ge2$. Switch hard, and compress by Rand-K with $K=1$. Let $g(w)=\lVert w\rVert-c$ and
# $f(w)=\lVert w-a\rVert$ with $a=(c+3,0,\dots,0)$, so the solution is $w^*=(c,0,\dots,0)$. The run starts at
# $w_0=(c+1,0,\dots,0)$, where $g(w_0)=1$.
#
# 1. We have $q_u=d-1$, $\Gamma=\frac{d+3}2$ and $\epsilon=B(\Gamma)=\sqrt{\frac{d+3}T}$. With $T=d+4$ rounds,
#    $\epsilon<1$.
# 2. At $w_0$ only the first entry of $\nabla g$ is not zero. Until the compressor first keeps the first entry, the
#    model does not move, and $g(w_t)=1>\epsilon$.
# 3. The points $w_0,\dots,w_{T-1}$ depend on $T-1=d+3$ draws. With probability $\big(1-\frac1d\big)^{d+3}$, no draw
#    keeps the first entry. Then $\mathcal A=\emptyset$, $R=1>\epsilon$, and $\bar w$ is not defined.
#
# This probability is 0.25 for $d=10$ and tends to $\frac1e=0.37$ as $d$ grows.
# ```
#
# So W Theorem 1 is false as a statement about (almost) every path, even for large $T=d+4$. Soft switching with
# $\epsilon=2B$ fails in the same way. With $T=4(d+3)+1$ rounds, the model stays at $w_0$ with the probability
# $\big(1-\frac1d\big)^{4(d+3)}$. This is 0.0042 for $d=10$, and at most $e^{-4}=0.018$.
#
# Theorems 6 and 8 of the full paper {cite}`fedsgm2025` (F below) also fail on some paths. They allow error feedback
# with random *contractive* compressors. One of these, Rand-K without the factor $\frac dK$, also leaves some runs at
# $w_0$.

# %% [markdown]
# ## What holds
#
# ```{prf:theorem} W Theorems 1 and 6, as they can be proved
# :label: unb-theorem
#
# Let {prf:ref}`hard-assumption` and {prf:ref}`unb-assumption` hold. Switch hard, with $\eta=\eta(\Gamma)$ and
# $\epsilon\ge B(\Gamma)$, for either $\Gamma$ of {eq}`eq-unb-gamma`. Then
#
# $$
# \mathbb E\Big[\lvert\mathcal A\rvert\,\big(f(\bar w)-f(w^*)-\epsilon\big)\Big]\le T\,(B(\Gamma)-\epsilon)\le0 ,
# $$ (eq-unb-claim)
#
# where the bracket is 0 if $\mathcal A=\emptyset$, and $g(\bar w)\le\epsilon$ on every path with
# $\mathcal A\ne\emptyset$. If $\lambda\ge0$ is a multiplier, that is $f(w)+\lambda g(w)\ge f(w^*)$ for all $w$, then
#
# $$
# \mathbb P(\mathcal A\ne\emptyset)\ge\frac{\mathbb E\lvert\mathcal A\rvert}T\ge\frac{1-B(\Gamma)/\epsilon}{1+\lambda} .
# $$ (eq-unb-probability)
# ```
#
# ```{prf:proof}
# For $t\in\mathcal B$, $g(w_t)-g(w^*)\ge\epsilon$ because $g(w^*)\le0$. So by {eq}`eq-unb-r`, on every path,
# $TR\ge\sum_{\mathcal A}(f(w_t)-f(w^*))+(T-\lvert\mathcal A\rvert)\epsilon=T\epsilon+\sum_{\mathcal A}(f(w_t)-f(w^*)-\epsilon)$.
#
# 1. By Jensen's inequality on each path, the last sum is at least $\lvert\mathcal A\rvert(f(\bar w)-f(w^*)-\epsilon)$.
#    Take expectations and use {prf:ref}`unb-lemma-regret` to obtain {eq}`eq-unb-claim`. Jensen's inequality for $g$
#    yields $g(\bar w)\le\epsilon$.
# 2. For $t\in\mathcal A$, the multiplier yields $f(w_t)-f(w^*)\ge-\lambda g(w_t)\ge-\lambda\epsilon$. So the last sum
#    above is also at least $-\lvert\mathcal A\rvert(1+\lambda)\epsilon$. With $B=B(\Gamma)$,
#    $T\,B\ge\mathbb E[TR]\ge T\epsilon-(1+\lambda)\epsilon\,\mathbb E\lvert\mathcal A\rvert$. Solving for
#    $\mathbb E\lvert\mathcal A\rvert$ yields the second inequality of {eq}`eq-unb-probability`.
# 3. Since $\lvert\mathcal A\rvert\le T$, $\mathbb E\lvert\mathcal A\rvert\le T\,\mathbb P(\mathcal A\ne\emptyset)$.
#    This is the first inequality of {eq}`eq-unb-probability`.
# ```
#
# By {eq}`eq-unb-claim`, the mean objective gap over the runs, each weighted by its $\lvert\mathcal A\rvert$, is at most
# $\epsilon$. With $\epsilon=2B(\Gamma)$, a run has a good round with probability at least $\frac1{2(1+\lambda)}$. With
# W's $\epsilon=B(\Gamma)$ for $\Gamma=2E^2+\frac{Eq_u}{2N}$, {eq}`eq-unb-probability` yields only 0. But the
# probability is positive: by {prf:ref}`unb-lemma-regret` with $\Gamma_{\rm direct}$, $\mathbb ER<\epsilon$, while
# $R>\epsilon$ on every path without a good round.
#
# ```{prf:theorem} W Theorems 2 and 7, as they can be proved
# :label: unb-theorem-soft
#
# Under the assumptions of {prf:ref}`unb-theorem`, switch softly, with $\eta=\eta(\Gamma)$, $\epsilon>B(\Gamma)$ and
# $\beta\ge\frac1{4(\epsilon-B(\Gamma))}$; W's $\epsilon=2B(\Gamma)$, $\beta=\frac2\epsilon$ satisfy this. With
# $S=\sum_t(1-\sigma_t)$ and $\bar w$ of {eq}`eq-soft-mean`, $\mathbb E\big[S\,(f(\bar w)-f(w^*)-\epsilon)\big]\le0$,
# and $g(\bar w)\le\epsilon$ on every path with $S>0$.
# ```
#
# ```{prf:proof}
# By {prf:ref}`soft-lemma-ramp`,
# $TR\ge\sum(1-\sigma_t)(f(w_t)-f(w^*))+(T-S)\epsilon-\frac1\beta\sum\sigma_t(1-\sigma_t)$ on every path. The last sum
# is at most $\frac T4$. By Jensen's inequality for $f$ and {prf:ref}`unb-lemma-regret`, with $B=B(\Gamma)$,
# $\mathbb E[S(f(\bar w)-f(w^*)-\epsilon)]\le T\big(B-\epsilon+\frac1{4\beta}\big)\le0$.
# ```
#
# ```{prf:corollary} No constraint: FedCOM
# :label: unb-corollary
#
# If $g\equiv0$, every round is good, $\bar w$ is the plain average, and $\mathbb Ef(\bar w)-f(w^*)\le B(\Gamma)$. For
# $E=1$ the bound $B(\Gamma)$ is
#
# $$
# \begin{aligned}
# &DG\sqrt{\frac{4+q_u/N}T}&&\text{with }\Gamma=2+\frac{q_u}{2N},\\
# &DG\sqrt{\frac{1+q_u/N}T}&&\text{with }\Gamma_{\rm direct}=\frac12+\frac{q_u}{2N} .
# \end{aligned}
# $$ (eq-unb-fedcom)
# ```
#
# The second bound has the rate that W states for this case (FedCOM), with the constant 1.
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **Random compressors.** The proofs of W Theorems 1 and 2, and of F Theorems 6 and 8, treat the random set
#   $\mathcal A$ as fixed ({prf:ref}`unb-example`).
# * **W Theorem 7** prints $\frac{Eq}{2n}$ instead of $\frac{Eq_u}{2n}$, where W's $n$ is our $N$.
# * **Missing formulas.** The available text of W lacks most displayed formulas. $\Gamma$ of {eq}`eq-unb-gamma` and
#   $\epsilon=2B(\Gamma)$ for soft switching are reconstructed from its proofs.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the first instance
instances = None  # number of random instances; None: 12 in the full profile, 3 in the quick one
seeds = None  # compressor seeds an instance; None: 100 in the full profile, 50 in the quick one
rounds = None  # T of the theorems; None: 100 in the full profile, 40 in the quick one

# %% tags=["hide-input"]
from functools import cache
from itertools import combinations, product
from math import exp, sqrt

import numpy as np
import pandas as pd
import torch
from torch.func import vmap

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.compress import RandK
from fedlib.steps import Hard, Soft
from papers.fedsgm.checks import (
    directions,
    estimate,
    lemma_1_sides,
    mean_gaps,
    regret,
)
from papers.fedsgm.gamma import (
    bound,
    gamma_feedback,
    gamma_local,
    gamma_unbiased,
    gamma_unbiased_direct,
    regret_bound,
    step_size,
)
from papers.fedsgm.problems.norms import (
    norms,
    random_norms,
    reference_solution,
    varied_norms,
)
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle

settle(globals(), seed=0, instances=(12, 3), seeds=(100, 50), rounds=(100, 40))
problems = [varied_norms(seed + k) for k in range(instances)]  # 8 clients, 3 dimensions, G = D = 1


def method(switching, E, T, gamma, **options):
    """FedSGM with the step and the threshold of one Gamma for D = G = 1, and B(Gamma)."""
    limit = bound(1.0, 1.0, E, T, gamma)
    epsilon = {"hard": limit, "soft": 2 * limit, "none": np.inf}[switching]
    algorithm = FedSGM(
        lr=step_size(1.0, 1.0, E, T, gamma),
        local_steps=E,
        tolerance=epsilon,
        switch=Soft(2 / epsilon) if switching == "soft" else Hard(),
        **options,
    )
    return algorithm, limit


def upper_end(values):
    """The mean over the last axis plus three standard errors."""
    return values.mean(-1) + 3 * values.std(-1) / sqrt(values.shape[-1])


# %% [markdown]
# **Rand-K.** For a random vector in dimension 6 we compare the mean and variance of the compressed vector over *all*
# sets of $K$ entries with {prf:ref}`unb-lemma-randk`.

# %% tags=["hide-input", "nbval-check-output"]
vector = torch.randn(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
for kept in (1, 2, 3, 5):
    compressor = RandK(kept / 6)
    sets = torch.tensor([*combinations(range(6), kept)])
    sent = vmap(compressor, in_dims=(None, 0))(vector, sets)
    variance = (sent - vector).square().sum(-1).mean() / vector.square().sum()
    expected = compressor.variance(6)
    bias = (sent.mean(0) - vector).abs().max()
    check(f"K={kept} of 6: the mean is x, to 1e-12", bias < 1e-12)
    check(
        f"    variance / |x|^2 = {expected:.2f}, to 1e-12",
        abs(variance - expected) < 1e-12,
    )


# %% [markdown]
# **W Lemma 3.** We simulate the ratio of the two sides for $E=5$, with the $X_j$ of random instances and with equal
# $X_j$ of length $EG$. With equal $X_j$ we also let all clients keep the same entries, against the independence in
# {prf:ref}`unb-assumption`.


# %% tags=["hide-input", "nbval-check-output"]
rand = RandK(1 / 3)  # of three entries one, q_u = 2


def messages(x, common=False):
    """4000 draws of the mean of the clients' compressed x, `[4000, 3]`; `common`: one draw for all."""
    clients = len(x)
    rng = torch.Generator().manual_seed(seed)
    draws = 4000 if common else 4000 * clients
    noise = rand.draw(draws, 3, rng).view(4000, draws // 4000, -1).expand(-1, clients, -1)
    sent = vmap(vmap(rand))(x.expand(4000, -1, -1), noise)
    return sent.mean(1)


def lemma_3_ratio(x, common=False):
    """The left side of W Lemma 3 over (E G)^2 (1 + q_u / N)."""
    right = 25 * (1 + rand.variance(3) / len(x))
    return estimate(messages(x, common).square().sum(-1) / right)


summed_steps = [directions(problem, 5, 0.05, 0.0)[1].sum(0) for problem in problems]
ratios = [lemma_3_ratio(x) for x in summed_steps]
equal_steps = torch.full((8, 3), 5 / sqrt(3), dtype=torch.float64)
equal = lemma_3_ratio(equal_steps)
common = lemma_3_ratio(equal_steps, common=True)

check(
    f"E=5: ratio <= 1 on {instances} instances, but for 4 standard errors",
    all(ratio.mean - 4 * ratio.error <= 1 for ratio in ratios),
)
check(
    "equal directions: ratio 1, within 4 standard errors",
    abs(equal.mean - 1) < 4 * equal.error,
)
check(
    "one draw for all clients: above 1 by more than 20 standard errors",
    common.mean - 20 * common.error > 1,
)

# %% tags=["hide-input"]
rows = {
    "directions of an instance, largest": max(ratios),
    "equal directions": equal,
    "one draw for all clients": common,
}
table = pd.DataFrame.from_dict(rows, orient="index", columns=["ratio", "standard error"])
displayed(table.round(3))

# %% [markdown]
# **W Lemma 4 (F Lemma 1).** We compare its left side with that of F Lemma 1, {eq}`eq-hard-lemma1`, in the first round
# of every instance, as a mean over 4000 draws of the compressor. The [note on hard switching](note_hard_switching.ipynb)
# checks F Lemma 1 itself.

# %% tags=["hide-input", "nbval-check-output"]
def left_sides_agree(problem, summed):
    """Whether the left side with compression is that without, within 4 standard errors."""
    left, _ = lemma_1_sides(problem, 5, 0.05, 0.05, 0.0)
    away = problem.w0 - problem.heldout[0]
    compressed_left = estimate(-2 * 0.05 * messages(summed) @ away)
    return abs(compressed_left.mean - left) < 4 * compressed_left.error


check(
    "compressed and uncompressed left sides agree within 4 standard errors",
    all(map(left_sides_agree, problems, summed_steps)),
)

# %% [markdown]
# **Expected regret.** We compare every instance's mean regret over the compressor's seeds with $B(\Gamma)$ for both
# $\Gamma$ of {eq}`eq-unb-gamma`, under hard switching ($\epsilon=B$) and soft switching ($\epsilon=2B$,
# $\beta=2/\epsilon$). We also check {eq}`eq-unb-claim` and the inequality of {prf:ref}`unb-theorem-soft`.


# %% tags=["hide-input", "nbval-check-output"]
paths = range(instances * seeds)


def problem_of(path):
    """The instance of a path; the instances take turns."""
    return problems[path % instances]


def by_instance(values):
    """Values of all paths as an array `[instances, seeds]`."""
    return values.reshape(seeds, instances).T


gammas = {"printed": gamma_unbiased, "direct": gamma_unbiased_direct}
rows = []
for E, name, switching in product((1, 5), gammas, ("hard", "soft")):
    gamma = gammas[name](E, 2.0, 8)
    options = {"participants": 8, "uplink": rand, "error_feedback": False}
    algorithm, limit = method(switching, E, rounds, gamma, **options)
    trace = run(algorithm, problem_of, rounds=rounds, seeds=paths, progress=False)
    mean_regret = by_instance(regret(trace).mean(-1))
    gaps = mean_gaps(trace, [problem_of(path) for path in paths])
    share_of_good = (1 - trace.info["sigma"]).mean(-1)
    terms = by_instance(share_of_good * np.nan_to_num(gaps.f_gap - algorithm.tolerance))
    check(
        f"{switching}, {name} Gamma, E={E}: mean regret + 3 standard errors <= B on {instances} instances",
        (upper_end(mean_regret) <= limit).all(),
    )
    check(
        "    and mean of S (f gap - eps) / T + 3 standard errors <= 0",
        (upper_end(terms) <= 0).all(),
    )
    row = {
        "switching": switching,
        "Gamma": name,
        "E": E,
        "largest mean regret / B": mean_regret.mean(-1).max() / limit,
        "largest regret of a path / B": mean_regret.max() / limit,
    }
    rows.append(row)
table = pd.DataFrame(rows).set_index(["switching", "Gamma", "E"])
check(
    "with Gamma_direct, E=1, hard, half of the bound is exceeded",
    table.loc["hard", "direct", 1]["largest mean regret / B"] > 0.5,
)

# %% tags=["hide-input"]
displayed(table.round(2))

# %% [markdown]
# **The counterexample.** In {prf:ref}`unb-example` with $d=10$, $c=2$ and 2000 seeds we compare the share of runs
# without a good round with its probability. Hard switching takes $T=d+4$ rounds, soft switching $T=4(d+3)+1$. The third
# method ("memory") is that of F Theorem 6, with error feedback, unscaled Rand-K and $\Gamma$ of {eq}`eq-comp-gamma`.

# %% tags=["hide-input", "nbval-check-output"]
d = 10
axis = torch.eye(d, dtype=torch.float64)[0]
example = norms(
    a=5 * axis.unsqueeze(0),
    b=torch.zeros(1, d, dtype=torch.float64),
    c=2.0,
    w0=3 * axis,
    solution=2 * axis,
)
gamma_memory = gamma_feedback(1, 1 / d, 1.0)
gamma_printed = gamma_unbiased(1, d - 1.0, 1)
no_memory = {"uplink": RandK(1 / d), "error_feedback": False}
memory = {"uplink": RandK(1 / d, scaled=False), "error_feedback": True}
stuck = {  # switching, T, Gamma, compression
    "hard": ("hard", d + 4, gamma_printed, no_memory),
    "soft": ("soft", 4 * (d + 3) + 1, gamma_printed, no_memory),
    "memory": ("hard", int(2 * gamma_memory) + 1, gamma_memory, memory),
}
regrets = {}
for name, (switching, T, gamma, compression) in stuck.items():
    algorithm, limit = method(switching, 1, T, gamma, participants=1, **compression)
    epsilon = algorithm.tolerance
    trace = run(algorithm, example, rounds=T, seeds=range(2000), progress=False)
    empty = np.isnan(trace.output[:, 0])  # whether no round was good
    regrets[name] = regret(trace)
    mean_regret = regrets[name].mean(-1)
    probability = (1 - 1 / d) ** (T - 1)
    standard_error = sqrt(probability * (1 - probability) / 2000)
    check(f"{name}: T = {T}, eps = {epsilon:.3f} < g(w_0) = 1", epsilon < 1)
    check(
        f"    A empty with probability {probability:.4f}; 2000 runs agree within 4 standard errors",
        abs(empty.mean() - probability) < 4 * standard_error,
    )
    check(
        "    on these paths the regret is 1, above eps",
        (mean_regret[empty] > epsilon).all(),
    )
    check("    and the mean over all paths is below B", upper_end(mean_regret) <= limit)
limit_probability = (1 - 1e-6) ** (1e6 + 3)
check("the probability tends to 1/e, hard", abs(limit_probability - exp(-1)) < 1e-5)

T = d + 4
hard, epsilon = method("hard", 1, T, gamma_printed, participants=1)
gamma_direct = gamma_unbiased_direct(1, d - 1.0, 1)
sharper_bound = regret_bound(1.0, 1.0, 1, T, gamma_direct, hard.lr)
least_probability = (1 - sharper_bound / epsilon) / 2
check(
    "hard: P(A not empty) >= (1 - B'/eps) / (1 + lambda), lambda = 1",
    1 - (1 - 1 / d) ** (T - 1) >= least_probability > 0,
)

# %% tags=["hide-input"]
t = np.arange(1, T + 1)
running_mean = np.cumsum(regrets["hard"], axis=-1) / t

fig = plot.figure((5.2, 3.4))
ax = fig.subplots(subplot_kw={"xlabel": "rounds t", "ylabel": "mean regret of t rounds"})
ax.plot(t, running_mean[:100].T, color=plot.COLORS[4], linewidth=0.5, alpha=0.6)
ax.plot(
    t,
    running_mean.mean(0),
    color=plot.COLORS[0],
    linewidth=2.5,
    label="mean of 2000 paths",
)
plot.level(ax, epsilon, "threshold eps = B")
ax.legend()
plot.show(
    fig,
    alt="Mean regret against rounds: thin lines leave the level 1 one after another, and some stay there to the end, "
    "above a dotted line just below 1. Their thick mean falls from 1 to 0.6.",
    caption="With d = 10 and hard switching, the mean regret of the first t rounds stays above the threshold on some "
    "of 100 paths (thin), while its mean over 2000 paths (thick) falls below it.",
)

# %% [markdown]
# **FedCOM.** We compare mean objective gaps with the second bound of {prf:ref}`unb-corollary`, for $\epsilon=\infty$,
# $E=D=1$ and $\eta(\Gamma_{\rm direct})$.


# %% tags=["hide-input", "nbval-check-output"]
@cache
def unconstrained(number):
    """A random instance whose constraint is never active, started at distance 1 from the solution."""
    a, b, _ = random_norms(number).data
    solution = reference_solution(norms(a, b, 1e3, a.mean(0)))
    rng = torch.Generator().manual_seed(number)
    away = torch.randn(3, generator=rng, dtype=torch.float64)
    return norms(a, b, 1e3, solution + away / away.norm(), solution)


def free_problem_of(path):
    """The unconstrained instance of a path."""
    return unconstrained(seed + path % instances)


for kept in (1, 2, 3):
    compressor = RandK(kept / 3)
    gamma = gamma_unbiased_direct(1, compressor.variance(3), 8)
    options = {"participants": 8, "uplink": compressor, "error_feedback": False}
    algorithm, limit = method("none", 1, rounds, gamma, **options)
    trace = run(algorithm, free_problem_of, rounds=rounds, seeds=paths, progress=False)
    gaps = by_instance(mean_gaps(trace, [free_problem_of(path) for path in paths]).f_gap)
    expected = sqrt((1 + (3 / kept - 1) / 8) / rounds)
    check(f"K={kept} of 3: B = sqrt((1 + q_u/N) / T)", abs(limit - expected) < 1e-12)
    check(
        f"    mean gap + 3 standard errors <= B on {instances} instances",
        (upper_end(gaps) <= limit).all(),
    )
    check(
        "    and a tenth of B is exceeded on one of them",
        gaps.mean(-1).max() > limit / 10,
    )

printed = bound(1.0, 1.0, 1, rounds, gamma_local(1))
check(
    "B(2 + q_u/2N) is twice as large without compression",
    abs(printed / limit - 2) < 1e-12,
)

# %% [markdown]
# **The misprint of W Theorem 7** matters if $q$ is read as the $q$ of a contractive compressor: for $K$ of $d$ entries
# this is $\frac Kd$, but $q_u=\frac dK-1$.

# %% tags=["hide-input", "nbval-check-output"]
right = gamma_unbiased(5, 9.0, 10)
wrong = gamma_unbiased(5, 0.1, 10)
check(f"E=5, N=10, K/d=0.1: Gamma = {right:.3f}, not {wrong:.3f}", right - wrong > 2)

# %% [markdown]
# The checks are in {download}`note_unbiased.py <src/note_unbiased.py>`.
