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
# # Hard switching: every client, no compression
#
# This note proves the simplest convergence theorem of FedSGM, Theorem 3 of {cite}`fedsgm2025`, which is
# also the hard-switching statement in appendix A.3 of {cite}`upadhyay2025switching`. Every other theorem of
# the two papers adds one term to the inequality proved here, so it is worth seeing where each constant
# of the simple case comes from. Below, F and W stand for the two papers, in this order.
#
# The proof has four parts: what a client's drift costs ({prf:ref}`hard-lemma-2`), what one round gains
# ({prf:ref}`hard-lemma-round`), what the rounds together gain ({prf:ref}`hard-lemma-regret`), and why small
# regret makes the averaged iterate a solution ({prf:ref}`hard-theorem`). After that come a constant that is better than the printed
# one, the extra term of W's random compressor, and the repair that soft switching needs.
# Every inequality is then tried on random instances.

# %% [markdown]
# ## Setting
#
# There are $N$ clients (the papers write $n$), $E$ local steps and $T$ rounds, numbered $t=0,\dots,T-1$. With
# $f=\frac1N\sum_jf_j$ and $g=\frac1N\sum_jg_j$, the problem is
#
# $$
# \min_{w\in\mathbb R^d} f(w)\quad\text{subject to}\quad g(w)\le 0 .
# $$ (eq-hard-problem)
#
# Let $w^*$ be a solution and $D\ge\lVert w_0-w^*\rVert$. Round $t$ starts at $w_t$ and compares $g(w_t)$ with a threshold $\epsilon$. The good
# rounds $\mathcal A=\{t: g(w_t)\le\epsilon\}$ work on the objective, the others, $\mathcal B$, on the constraint: all local steps of the
# round use
#
# $$
# h_j=\begin{cases}f_j,& t\in\mathcal A,\\ g_j,& t\in\mathcal B,\end{cases}\qquad
# h=\frac1N\sum_{j=1}^Nh_j .
# $$ (eq-hard-h)
#
# Client $j$ starts at $w_{j,0}=w_t$ and takes $E$ steps $w_{j,\tau+1}=w_{j,\tau}-\eta\,\nu_{j,\tau}$ with a subgradient $\nu_{j,\tau}\in\partial h_j(w_{j,\tau})$; the
# server averages,
#
# $$
# w_{t+1}=w_t-\frac\eta N\sum_{j=1}^N\sum_{\tau=0}^{E-1}\nu_{j,\tau} .
# $$ (eq-hard-update)
#
# The index $t$ of $w_{j,\tau}$, $\nu_{j,\tau}$ and $h_j$ is left out where one round is looked at.
#
# ```{prf:assumption} F-A1 and W-A1
# :label: hard-assumption
#
# Every $f_j$ and every $g_j$ is convex and $G$-Lipschitz on $\mathbb R^d$, so each of their subgradients has norm at most $G$.
# ```
#
# Two abbreviations carry all the constants. For a number $\Gamma>0$ let
#
# $$
# B(\Gamma)=DG\sqrt{\frac{2\Gamma}{ET}},\qquad \eta(\Gamma)=\frac{D}{G\sqrt{2ET\,\Gamma}} .
# $$ (eq-hard-b)
#
# They belong together: $\eta(\Gamma)$ minimizes $\eta\mapsto\frac{D^2}{2\eta ET}+\eta G^2\Gamma$, the two terms are then equal, and their sum is $B(\Gamma)$.
# In the code they are `fedlib.theory.bound` and `fedlib.theory.step_size`.

# %% [markdown]
# ## The theorem
#
# ```{prf:theorem} F Theorem 3, W appendix A.3
# :label: hard-theorem
#
# Under {prf:ref}`hard-assumption`, run the method with all clients, hard switching and
#
# $$
# \Gamma=2E^2,\qquad \epsilon=B(\Gamma)=\sqrt{\frac{4D^2G^2E}{T}},\qquad \eta=\eta(\Gamma)=\sqrt{\frac{D^2}{4G^2E^3T}} .
# $$ (eq-hard-choice)
#
# Then $\mathcal A$ is not empty, and $\bar w=\frac1{\lvert\mathcal A\rvert}\sum_{t\in\mathcal A}w_t$ is an $\epsilon$-solution:
#
# $$
# f(\bar w)-f(w^*)\le\epsilon\qquad\text{and}\qquad g(\bar w)\le\epsilon .
# $$ (eq-hard-claim)
#
# The same holds, with its own $\epsilon=B(\Gamma)$ and $\eta=\eta(\Gamma)$, for the smaller numbers
#
# $$
# \Gamma_0=\frac E2+1+\frac{E^2}3\qquad\text{and}\qquad \Gamma_{\rm direct}=\frac{3E}2-1 .
# $$ (eq-hard-gammas)
# ```
#
# $\Gamma_0$ is what the papers' proofs show before they round it up to $2E^2$. $\Gamma_{\rm direct}$ is ours.

# %% [markdown]
# ## Two lemmas on local steps
#
# ```{prf:lemma} F Lemma 1
# :label: hard-lemma-1
#
# For every $\alpha>0$,
#
# $$
# \begin{aligned}
# -2\eta\Big\langle w_t-w^*,\frac1N\sum_{j,\tau}\nu_{j,\tau}\Big\rangle
# \le\frac1N\sum_{j,\tau}\Big[&\frac\eta\alpha\lVert w_t-w_{j,\tau}\rVert^2+\eta\alpha G^2\\
# &+2\eta\big(h_j(w^*)-h_j(w_{j,\tau})\big)\Big] .
# \end{aligned}
# $$ (eq-hard-lemma1)
# ```
#
# ```{prf:proof}
# Look at one pair $(j,\tau)$ and go from $w_t$ to $w^*$ by way of $w_{j,\tau}$:
#
# $$
# -2\eta\langle w_t-w^*,\nu_{j,\tau}\rangle=-2\eta\langle w_t-w_{j,\tau},\nu_{j,\tau}\rangle-2\eta\langle w_{j,\tau}-w^*,\nu_{j,\tau}\rangle .
# $$ (eq-hard-detour)
#
# 1. First term: Young's inequality $-2\langle u,v\rangle\le\frac1\alpha\lVert u\rVert^2+\alpha\lVert v\rVert^2$ and $\lVert\nu_{j,\tau}\rVert\le G$ give $\frac\eta\alpha\lVert w_t-w_{j,\tau}\rVert^2+\eta\alpha G^2$.
# 2. Second term: $\nu_{j,\tau}$ is a subgradient of the convex $h_j$ at $w_{j,\tau}$, so $h_j(w^*)\ge h_j(w_{j,\tau})+\langle\nu_{j,\tau},w^*-w_{j,\tau}\rangle$, which bounds it by $2\eta(h_j(w^*)-h_j(w_{j,\tau}))$.
#
# Sum over $j$ and $\tau$ and divide by $N$.
# ```
#
# ```{prf:lemma} F Lemma 2, drift
# :label: hard-lemma-2
#
# For every client, $\lVert w_t-w_{j,\tau}\rVert\le\eta\tau G$, and hence
#
# $$
# \sum_{\tau=0}^{E-1}\lVert w_t-w_{j,\tau}\rVert^2\le\eta^2G^2\,\frac{(E-1)E(2E-1)}6\le\frac13\eta^2E^3G^2 .
# $$ (eq-hard-lemma2)
# ```
#
# ```{prf:proof}
# $w_t-w_{j,\tau}=\eta\sum_{s<\tau}\nu_{j,s}$ is $\eta$ times a sum of $\tau$ vectors of norm at most $G$. Square, sum, and use $\sum_{\tau<E}\tau^2=\frac{(E-1)E(2E-1)}6\le\frac{E^3}3$. The first inequality is
# an equality for a client whose subgradient does not turn; the second loses only terms of lower order in $E$.
# ```

# %% [markdown]
# ## One round
#
# ```{prf:lemma} One round
# :label: hard-lemma-round
#
# In every round,
#
# $$
# \lVert w_{t+1}-w^*\rVert^2\le\lVert w_t-w^*\rVert^2-2\eta E\big(h(w_t)-h(w^*)\big)+2\eta^2EG^2\,\Gamma_0 .
# $$ (eq-hard-round)
# ```
#
# ```{prf:proof}
# Step by step:
#
# 1. *Expand* {eq}`eq-hard-update`: $\lVert w_{t+1}-w^*\rVert^2=\lVert w_t-w^*\rVert^2-2\eta\langle w_t-w^*,\frac1N\sum\nu_{j,\tau}\rangle+\eta^2\lVert\frac1N\sum\nu_{j,\tau}\rVert^2$.
# 2. *Square term.* The last norm is that of a mean over clients of sums of $E$ vectors of norm at most $G$, so the term is at most $\eta^2E^2G^2$.
# 3. *Cross term.* {prf:ref}`hard-lemma-1` bounds it, but with the values $h_j(w_{j,\tau})$ at the local iterates.
# 4. *Back to $w_t$.* With a subgradient $s$ of $h_j$ at $w_t$, convexity and Young's inequality again,
#    $2\eta(h_j(w_t)-h_j(w_{j,\tau}))\le2\eta\langle s,w_t-w_{j,\tau}\rangle\le\frac\eta\alpha\lVert w_t-w_{j,\tau}\rVert^2+\eta\alpha G^2$.
#    Hence $2\eta(h_j(w^*)-h_j(w_{j,\tau}))\le-2\eta(h_j(w_t)-h_j(w^*))$ plus the same two terms as in Lemma 1.
# 5. *Collect* steps 3 and 4, summed over the $E$ local steps and averaged over clients: the cross term is at most
#
#    $$
#    -2\eta E\big(h(w_t)-h(w^*)\big)+\frac{2\eta}\alpha\cdot\frac1N\sum_{j,\tau}\lVert w_t-w_{j,\tau}\rVert^2+2\eta\alpha EG^2 .
#    $$ (eq-hard-collect)
#
# 6. *Choose* $\alpha=\eta$ and insert {prf:ref}`hard-lemma-2`: the last two terms are at most $\frac23\eta^2E^3G^2+2\eta^2EG^2$. Together with step 2,
#    $\eta^2E^2G^2+\frac23\eta^2E^3G^2+2\eta^2EG^2=2\eta^2EG^2\big(\frac E2+\frac{E^2}3+1\big)$.
# ```

# %% [markdown]
# ## All rounds, and the theorem
#
# ```{prf:lemma} Regret
# :label: hard-lemma-regret
#
# Suppose {eq}`eq-hard-round` holds with some number $\Gamma$ in the place of $\Gamma_0$. Then
#
# $$
# \frac1T\sum_{t\in\mathcal A}\big(f(w_t)-f(w^*)\big)+\frac1T\sum_{t\in\mathcal B}\big(g(w_t)-g(w^*)\big)\le\frac{D^2}{2\eta ET}+\eta G^2\Gamma ,
# $$ (eq-hard-regret)
#
# and the right-hand side is $B(\Gamma)$ if $\eta=\eta(\Gamma)$.
# ```
#
# ```{prf:proof}
# Sum {eq}`eq-hard-round` over $t$; the distances telescope, $\lVert w_T-w^*\rVert^2\ge0$ is dropped and $\lVert w_0-w^*\rVert\le D$. Divide by $2\eta ET$. Read $h$ as $f$ on $\mathcal A$ and as $g$ on $\mathcal B$. The last
# statement is the remark after {eq}`eq-hard-b`.
# ```
#
# Nothing about $w^*$ was used except where it is: the inequality holds against every point. From now on $g(w^*)\le0$ is needed as well.
#
# ```{prf:proof}
# *Of {prf:ref}`hard-theorem`.* Since $\Gamma_0\le2E^2$ for $E\ge1$, {eq}`eq-hard-round` also holds with $2E^2$, and the left side of {eq}`eq-hard-regret` is at most $B(\Gamma)=\epsilon$ for the chosen $\eta$.
#
# 1. *$\mathcal A$ is not empty.* On $\mathcal B$ we have $g(w_t)-g(w^*)>\epsilon-0$. If all rounds were in $\mathcal B$, the left side of {eq}`eq-hard-regret` would exceed $\epsilon$.
# 2. *Objective.* The rounds in $\mathcal B$ contribute at least $\epsilon\lvert\mathcal B\rvert/T$ to the left side. Therefore
#
#    $$
#    \sum_{t\in\mathcal A}\big(f(w_t)-f(w^*)\big)\le T\epsilon-\lvert\mathcal B\rvert\,\epsilon=\lvert\mathcal A\rvert\,\epsilon ,
#    $$ (eq-hard-good-rounds)
#
#    and Jensen's inequality gives $f(\bar w)-f(w^*)\le\frac1{\lvert\mathcal A\rvert}\sum_{t\in\mathcal A}(f(w_t)-f(w^*))\le\epsilon$.
# 3. *Constraint.* $g(w_t)\le\epsilon$ for $t\in\mathcal A$ by definition, and Jensen's inequality gives $g(\bar w)\le\epsilon$.
#
# The proof for $\Gamma_{\rm direct}$ is the same once {prf:ref}`hard-lemma-direct` below replaces {prf:ref}`hard-lemma-round`.
# ```
#
# The terms of $\Gamma_0$, each with its source:
#
# | term of $\Gamma_0$ | in the one-round inequality | comes from |
# | --- | --- | --- |
# | $\frac E2$ | $\eta^2E^2G^2$ | the square of the step (step 2): $E$ local steps make a server step of length up to $\eta EG$ |
# | $1$ | $2\eta\alpha EG^2$ | Young's inequality, used twice (steps 3 and 4) |
# | $\frac{E^2}3$ | $\frac{2\eta}\alpha\cdot\frac13\eta^2E^3G^2$ | client drift, $\sum\tau^2\le E^3/3$ |

# %% [markdown]
# ## A sharper constant (ours)
#
# $\epsilon=2DG\sqrt{E/T}$ grows with $E$: by the printed theorem local steps only do harm. The $\sqrt E$ comes from one choice in the proof, $\alpha=\eta$, and
# not from drift itself. Young's inequality is not even needed.
#
# ```{prf:lemma} One round, without Young's inequality
# :label: hard-lemma-direct
#
# {eq}`eq-hard-round` holds with $\Gamma_{\rm direct}=\frac{3E}2-1$ in the place of $\Gamma_0$.
# ```
#
# ```{prf:proof}
# By Cauchy-Schwarz and {prf:ref}`hard-lemma-2`, $-2\eta\langle w_t-w_{j,\tau},\nu_{j,\tau}\rangle\le2\eta\cdot\eta\tau G\cdot G$. By the Lipschitz property,
# $2\eta(h_j(w_t)-h_j(w_{j,\tau}))\le2\eta G\cdot\eta\tau G$. Summed over $\tau$ the two cost $4\eta^2G^2\,\frac{E(E-1)}2$, and with the square term
#
# $$
# \eta^2E^2G^2+2\eta^2G^2E(E-1)=2\eta^2EG^2\Big(\frac E2+E-1\Big) .
# $$ (eq-hard-direct)
# ```
#
# The threshold becomes $\epsilon=DG\sqrt{(3-2/E)/T}$: never more than $\sqrt3$ times what it is for $E=1$, and for $E=1$ exactly the classical $DG/\sqrt T$ of the
# switching subgradient method {cite}`polyak1967general,lan2020expectation`. (With Young's inequality one can come close: $\alpha=\eta E/\sqrt3$ minimizes {eq}`eq-hard-collect` and gives $\Gamma=(\frac12+\frac2{\sqrt3})E$.)

# %% [markdown]
# ## The term of a random compressor (W Theorem 1)
#
# In W a client sends $C_j(X_j)$ in place of $X_j=\sum_\tau\nu_{j,\tau}$.
#
# ```{prf:assumption} W-A2
# :label: hard-assumption-unbiased
#
# $\mathbb E[C_j(x)]=x$ and $\mathbb E\lVert C_j(x)-x\rVert^2\le q_u\lVert x\rVert^2$ for all $x$, with $q_u\ge0$; the $C_j$ are independent over clients and rounds.
# ```
#
# ```{prf:lemma} W Lemma 3
# :label: hard-lemma-unbiased
#
# Given $w_t$, $\mathbb E\big\lVert\frac1N\sum_jC_j(X_j)\big\rVert^2\le E^2G^2\big(1+\frac{q_u}N\big)$.
# ```
#
# ```{prf:proof}
# Write $C_j(X_j)=X_j+\zeta_j$. Given $w_t$ the $X_j$ are fixed, the $\zeta_j$ are independent with mean zero, so all mixed terms vanish:
# $\mathbb E\lVert\frac1N\sum(X_j+\zeta_j)\rVert^2=\lVert\frac1N\sum X_j\rVert^2+\frac1{N^2}\sum\mathbb E\lVert\zeta_j\rVert^2\le E^2G^2+\frac1{N^2}\cdot N\cdot q_uE^2G^2$.
# ```
#
# The cross term is linear in $C_j(X_j)$, so its expectation is what it was. Only the square term changes, by $\eta^2E^2G^2q_u/N$; divided by $2\eta E\cdot\eta G^2$
# this is $\frac{Eq_u}{2N}$, and
#
# $$
# \Gamma=2E^2+\frac{E\,q_u}{2N}
# $$ (eq-hard-unbiased)
#
# bounds the *expected* regret by $B(\Gamma)$. For Rand-K with $K$ of $d$ entries, $q_u=d/K-1$.

# %% [markdown]
# ## Soft switching needs a larger threshold
#
# Soft switching steps along $(1-\sigma_t)\nabla f_j+\sigma_t\nabla g_j$ with $\sigma_t=\min\{1,[1+\beta(g(w_t)-\epsilon)]_+\}$. This is a subgradient of the convex, $G$-Lipschitz
# $(1-\sigma_t)f_j+\sigma_tg_j$, so {prf:ref}`hard-lemma-round` holds unchanged and
#
# $$
# \frac1T\sum_{t<T}\Big[(1-\sigma_t)\big(f(w_t)-f(w^*)\big)+\sigma_t\big(g(w_t)-g(w^*)\big)\Big]\le B .
# $$ (eq-hard-soft-regret)
#
# ```{prf:theorem} Soft switching, as it can be proved
# :label: hard-theorem-soft
#
# Let {eq}`eq-hard-soft-regret` hold, $\epsilon>B$ and $\beta\ge\frac1{\epsilon-B}$. Then $S=\sum_t(1-\sigma_t)>0$, and $\bar w=\frac1S\sum_t(1-\sigma_t)w_t$ is an $\epsilon$-solution.
# ```
#
# ```{prf:proof}
# Let $\mathcal A=\{t:g(w_t)<\epsilon\}$ and $\Sigma=\sum_{t\in\mathcal A}\sigma_t\le T$.
#
# 1. Outside $\mathcal A$, $\sigma_t=1$ and $g(w_t)\ge\epsilon$. Inside, $\sigma_t>0$ only if $g(w_t)>\epsilon-\frac1\beta$. With $g(w^*)\le0$,
#    $\sum_t\sigma_t(g(w_t)-g(w^*))\ge(T-S)\,\epsilon-\frac\Sigma\beta$.
# 2. If $S=0$ then $\mathcal A$ is empty, $\Sigma=0$, and step 1 contradicts {eq}`eq-hard-soft-regret`, as $\epsilon>B$.
# 3. Otherwise $\sum_t(1-\sigma_t)(f(w_t)-f(w^*))\le TB-(T-S)\epsilon+\frac\Sigma\beta$, so by Jensen's inequality
#
#    $$
#    f(\bar w)-f(w^*)\le\epsilon+\frac{T(B-\epsilon)+\Sigma/\beta}{S} .
#    $$ (eq-hard-soft-gap)
#
#    The fraction is not positive, because $\frac\Sigma\beta\le T(\epsilon-B)$.
# 4. All weight lies on rounds of $\mathcal A$, so $g(\bar w)\le\epsilon$.
# ```
#
# With $\epsilon=2B$ the condition reads $\beta\ge2/\epsilon$, which is what both papers use. With $\epsilon=B$, as F prints, no finite $\beta$ is enough.

# %% [markdown]
# ```{admonition} Differences from the printed papers
# :class: warning
#
# * **F Theorem 5 (and 2, 8), soft switching.** The statements give $\epsilon=B(\Gamma)$ with $\beta\ge2/\epsilon$, the proofs use $\epsilon=2B(\Gamma)$. With the printed $\epsilon$ the numerator of {eq}`eq-hard-soft-gap` is
#   $\Sigma/\beta$, which is positive. Repair: $\epsilon=2B$. Or keep $\epsilon=B(2E^2)$ and $\eta(2E^2)$ and use that the regret is at most $B'=\frac\epsilon2\big(1+\frac{\Gamma_0}{2E^2}\big)$, smaller than $\epsilon$; then $\beta\ge1/(\epsilon-B')$ suffices.
#   This is a gap in the proof; no counterexample to the printed statement was found.
# * **F Theorem 1 (ii)** claims $g(\bar w)-g(w^*)\le\epsilon$. The proof gives $g(\bar w)\le\epsilon$, which is weaker, since $g(w^*)\le0$.
# * **Independence.** With sampled clients (F Theorem 4) one and the same sample decides the switch and makes the update. The martingale argument needs the two to be independent, as F-A4
#   demands and Algorithm 1 does not do.
# * **Random compressors.** W Theorems 1 and 2 and F Theorems 6 and 8 take the expectation and then treat $\mathcal A$ as fixed. What is proved for a random compressor is {eq}`eq-hard-regret` in expectation, not that $\mathcal A\ne\emptyset$ on every path.
# * **Slips.** F's third contribution normalizes $\Gamma=1$ without compression, the theorems $\Gamma=2E^2$; W Theorem 7 prints $Eq/2n$ for $Eq_u/2n$.
# ```

# %% [markdown]
# ## Checks
#
# The instances are $f_j(w)=\lVert w-a_j\rVert$ and $g_j(w)=\lVert w-b_j\rVert-c$ (`fedlib.problems.norms`): convex, $G=1$, not smooth. A solution is computed by
# sequential quadratic programming, and every run starts at distance $D=1$ from it. Twelve kinds of instances take turns, from clients that disagree to clients that agree.

# %% tags=["parameters"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the first instance
instances = None  # number of random instances; None: 48 in the full profile, 12 in the quick one
rounds = None  # T of the theorems; None: 100 in the full profile, 40 in the quick one

# %%
from functools import cache

import numpy as np
from torch.func import vmap

from fedlib import plot
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.claims import check
from fedlib.compress import RandK
from fedlib.gamma import bound, gamma_local, gamma_unbiased, regret_bound, step_size
from fedlib.problems.norms import drift_sum, random_norms, varied_norms
from fedlib.run import run
from fedlib.switching import Soft
from fedlib.theory import Setting, theorem_5, theorem_6, workshop_theorem_1

instances = instances or {"quick": 12, "full": 48}[profile]
rounds = rounds or {"quick": 40, "full": 100}[profile]
seeds = range(seed, seed + instances)
instance = cache(varied_norms)  # its reference solution is computed once
versions = {"2E^2": "stated", "Gamma_0": "proved", "Gamma_direct": "direct"}

# %% [markdown]
# **Lemma 2.** One round of local steps on the objective of every client, from the start of every instance; then an instance on which the first inequality of {eq}`eq-hard-lemma2` is nearly an equality
# (a start so far away that no subgradient turns).

# %%
sums = {E: [drift_sum(instance(s), E, lr=0.05) for s in seeds] for E in (1, 2, 5, 10)}
far = drift_sum(random_norms(seed, distance=1e4), 10, lr=0.05)

# %% tags=["nbval-check-output"]
for E in (1, 2, 5, 10):
    exact = (E - 1) * E * (2 * E - 1) // 6
    held = sum(x <= exact + 1e-9 <= E**3 / 3 + 1e-9 for x in sums[E])
    check(
        f"E={E}: drift sum / (lr G)^2 <= {exact} <= E^3/3 on {held} of {instances} instances",
        held == instances,
    )
check(
    "far from the solution the sum is 285 for E = 10, to one part in a thousand",
    abs(far / 285 - 1) < 1e-3,
)

# %% [markdown]
# **Regret.** Each instance is run with the three values of $\Gamma$, each with its own $\epsilon=B(\Gamma)$ and $\eta=\eta(\Gamma)$, for $E\in\{1,2,5,10\}$. `regret` is the left side of {eq}`eq-hard-soft-regret`, which for
# hard switching is that of {eq}`eq-hard-regret`.


# %%
def regret(trace):
    sigma, gaps = trace.info["sigma"], trace.metrics
    return (1 - sigma) * gaps["f_gap"][:, :-1] + sigma * gaps["g_gap"][:, :-1]


def method(E, gamma, **more):
    case = (1.0, 1.0, E, rounds, gamma)  # D = G = 1
    rate = {"lr": step_size(*case), "tolerance": bound(*case)}
    return FedSGM(local_steps=E, participants=8, **(rate | more))


grids = {E: [method(E, gamma_local(E, v)) for v in versions.values()] for E in (1, 2, 5, 10)}
traces = {
    E: run(grid, instance, rounds=rounds, seeds=seeds, progress=False) for E, grid in grids.items()
}
ratio = {
    (E, name): regret(trace).mean(-1) / algorithm.tolerance
    for E, grid in grids.items()
    for name, trace, algorithm in zip(versions, traces[E], grid, strict=True)
}

# %% tags=["nbval-check-output"]
for name in versions:
    worst = np.max([ratio[E, name] for E in grids], axis=0)  # over E, one number an instance
    held = int((worst <= 1).sum())
    check(
        f"regret <= B({name}) on {held} of {instances} instances, E = 1, 2, 5, 10",
        held == instances,
    )
check(
    "with Gamma_direct the bound is nearly reached (regret > 0.8 B at E = 1)",
    ratio[1, "Gamma_direct"].max() > 0.8,
)
check(
    "the largest regret / B grows from 2E^2 to Gamma_0 to Gamma_direct at E = 2",
    ratio[2, "2E^2"].max() < ratio[2, "Gamma_0"].max() < ratio[2, "Gamma_direct"].max(),
)

# %% [markdown]
# The check must be able to fail: a bound with the wrong sign of its second term, $\frac{D^2}{2\eta ET}-\eta G^2\Gamma$, is zero at $\eta(\Gamma)$ and is exceeded on most instances.

# %% tags=["nbval-check-output"]
planted = np.mean([regret(traces[E][0]).mean(-1) > 0 for E in grids])
check("a planted sign error is caught on more than half of the runs", planted > 0.5)

# %% [markdown]
# **The theorem itself**: the averaged iterate is an $\epsilon$-solution.


# %%
def is_solution(algorithm, trace):
    mean = vmap(algorithm.output)(trace.state)  # [S, d], NaN if the set A is empty
    values = [p.metrics(w, p) for w, p in zip(mean, map(instance, seeds), strict=True)]
    gap, g = (np.array([float(v[k]) for v in values]) for k in ("f_gap", "g"))
    return (gap <= algorithm.tolerance) & (g <= algorithm.tolerance + 1e-12)


# %% tags=["nbval-check-output"]
for number, name in enumerate(versions):
    solved = np.all([is_solution(grids[E][number], traces[E][number]) for E in grids], axis=0)
    check(
        f"{name}: the averaged iterate is an eps-solution on {solved.sum()} of {instances} instances",
        solved.all(),
    )

# %% [markdown]
# **Soft switching** with the repaired threshold $\epsilon=2B(2E^2)$, $\beta=2/\epsilon$.

# %% tags=["nbval-check-output"]
for E in (1, 5):
    rate = theorem_5(Setting(D=1.0, G=1.0, E=E, T=rounds, N=8), "corrected")
    soft = method(E, rate.gamma, tolerance=rate.tolerance, switch=Soft(rate.beta))
    solved = is_solution(soft, run(soft, instance, rounds=rounds, seeds=seeds, progress=False))
    check(
        f"E={E}: soft switching with eps = 2B solves {solved.sum()} of {instances} instances",
        solved.all(),
    )

# %% [markdown]
# **Unbiased uplink.** Rand-K keeps one of three entries, $q_u=2$. The expectation in W Theorem 1 is over the compressor: one instance, many seeds. The mean regret may exceed the bound by chance only
# if it exceeds it by less than its standard error; it stays far below.

# %% tags=["nbval-check-output"]
rand = RandK(1 / 3)
for E in (1, 5):
    gamma = gamma_unbiased(E, rand.variance(3), 8)
    noisy = method(E, gamma, uplink=rand, error_feedback=False)
    mean = regret(run(noisy, instance(seed), rounds=rounds, seeds=seeds, progress=False)).mean()
    check(f"E={E}: expected regret <= B(2E^2 + E q_u / 2N)", mean <= noisy.tolerance)

# %% [markdown]
# **At the papers' settings the theorems say nothing.** With $G=D=5$ (about right for the breast-cancer data) the prescribed thresholds are far above the values 0.1 and 0.05 that the experiments use, and above $g(w_0)=\log2$.

# %% tags=["nbval-check-output"]
workshop = workshop_theorem_1(Setting(D=5.0, G=5.0, E=5, T=100, N=10, qu=9.0)).tolerance
unified = theorem_6(Setting(D=5.0, G=5.0, E=5, T=500, N=20, q=0.1, q0=0.1)).tolerance
check(
    f"thresholds {workshop:.1f} (W, 0.1 used) and {unified:.0f} (F, 0.05 used)",
    workshop > 11 and unified > 54,
)

# %% [markdown]
# ## The bound on measured runs
#
# All instances run with the step size of $\Gamma_{\rm direct}$ for $E=5$. Drawn are the mean regret of the first $t$ rounds and what {prf:ref}`hard-lemma-regret` says about it with each of the three values of $\Gamma$,
# at this step size.

# %%
E = 5
lr = step_size(1.0, 1.0, E, rounds, gamma_local(E, "direct"))
trace = traces[E][list(versions).index("Gamma_direct")]
t = np.arange(1, rounds + 1)
running = np.cumsum(regret(trace), axis=-1) / t
running[running <= 0] = np.nan  # a logarithmic axis has no place for it
bounds = [
    [regret_bound(1.0, 1.0, E, k, gamma_local(E, v), lr) for k in t.tolist()]
    for v in versions.values()
]
axes = {
    "xscale": "log",
    "yscale": "log",
    "xlabel": "rounds t",
    "ylabel": "mean regret of t rounds",
    "ylim": (0.01, 10.0),
}


def draw(fig):
    ax = fig.subplots(subplot_kw=axes)
    ax.plot(t, running.T, color=plot.COLORS[4], linewidth=0.5, alpha=0.6)
    ax.plot(t, np.transpose(bounds), linewidth=2, label=list(versions))
    ax.legend()


plot.show(
    draw,
    alt="Logarithmic plot of mean regret against rounds: many thin measured curves, below three bounds that "
    "fall as one over t and flatten; the bound with Gamma direct is the lowest and closest.",
    caption="Mean regret of the first t rounds on every instance (thin), and its bound with 2E^2, Gamma_0 and "
    "Gamma_direct (thick, from top to bottom), E = 5.",
)
