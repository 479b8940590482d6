# %% [markdown]
# # Soft switching
#
# Under hard switching, the local steps of a round use either the objective or the constraint. Under soft switching they
# use a mixture of the two, in which the constraint's weight rises with its value. This note proves the theorems on soft
# switching in the full paper {cite}`fedsgm2025` (F below) and in the workshop paper {cite}`upadhyay2025switching` (W
# below).
#
# F's proofs need a threshold twice as large as the one that F's theorems print. We prove F's Theorem 5 (no compression)
# with the printed threshold, and F's Theorem 2 (compression) up to a factor of at most $\frac32$ in the objective gap.
#
# We use the notation of the [note on hard switching](note_hard_switching.ipynb), with $B(\Gamma)$ and $\eta(\Gamma)$ of
# {eq}`eq-hard-b`, and assume {prf:ref}`hard-assumption`.

# %% [markdown]
# ## Setting
#
# Let $\epsilon$ be the threshold and $\beta>0$ the sharpness. In round $t$ the constraint has the weight
#
# $$
# \sigma_t=\min\big\{1,\,[1+\beta(g(w_t)-\epsilon)]_+\big\},
# $$ (eq-soft-weight)
#
# which is the same for all local steps of the round. Client $j$ takes subgradient steps on $h_j$:
#
# $$
# h_j=(1-\sigma_t)f_j+\sigma_tg_j ,\qquad h=\frac1N\sum_jh_j=(1-\sigma_t)f+\sigma_tg .
# $$ (eq-soft-h)
#
# Let $\mathcal A=\{t:g(w_t)<\epsilon\}$ be the rounds below the threshold. In all other rounds $\sigma_t$ is 1. The
# total weight $S$ of the objective and the averaged iterate $\bar w$ are
#
# $$
# S=\sum_{t<T}(1-\sigma_t)=\sum_{t\in\mathcal A}(1-\sigma_t),\qquad \bar w=\frac1S\sum_{t\in\mathcal A}(1-\sigma_t)\,w_t .
# $$ (eq-soft-mean)
#
# ```{prf:lemma} Regret of soft switching
# :label: soft-lemma-regret
#
# Suppose that, for all convex and $G$-Lipschitz $h_j$, every round satisfies {eq}`eq-hard-round` with a number $\Gamma$
# in place of $\Gamma_0$. Then
#
# $$
# \frac1T\sum_{t<T}\Big[(1-\sigma_t)\big(f(w_t)-f(w^*)\big)+\sigma_t\big(g(w_t)-g(w^*)\big)\Big]\le\frac{D^2}{2\eta ET}+\eta G^2\Gamma .
# $$ (eq-soft-regret)
#
# Without compression $\Gamma$ may be $2E^2$, or $\Gamma_0$ or $\Gamma_{\rm direct}$ of {eq}`eq-hard-gammas`. With error
# feedback in both directions $\Gamma$ is the number in {eq}`eq-comp-gamma`; for random compressors {eq}`eq-soft-regret`
# then holds in expectation.
# ```
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. The weight $\sigma_t\in[0,1]$ does not change during the round, so $h_j$ is one convex and $G$-Lipschitz function.
#    The proofs of {prf:ref}`hard-lemma-round`, {prf:ref}`hard-lemma-direct` and {prf:ref}`comp-lemma-round` use nothing
#    else about $h_j$, so these lemmas apply.
# 2. The difference $h(w_t)-h(w^*)$ in {eq}`eq-hard-round` is the bracket in {eq}`eq-soft-regret`.
# 3. Sum {eq}`eq-hard-round` over the rounds and divide by $2\eta ET$. The distances telescope as in
#    {prf:ref}`hard-lemma-regret`.
# ```

# %% [markdown]
# ## What the papers prove
#
# ```{prf:theorem} W Theorems 2 and 7, W appendix A.3 (soft), F Theorems 2, 5 and 8, as proved
# :label: soft-theorem
#
# Let the left side of {eq}`eq-soft-regret` be at most $B$, let $\epsilon>B$, and let
#
# $$
# \beta\ge\frac1{\epsilon-B} .
# $$ (eq-soft-beta)
#
# Then $S>0$, and $\bar w$ is an $\epsilon$-solution: $f(\bar w)-f(w^*)\le\epsilon$ and $g(\bar w)\le\epsilon$. With
# $\eta=\eta(\Gamma)$, $B=B(\Gamma)$ and $\epsilon=2B$, {eq}`eq-soft-beta` reads $\beta\ge\frac2\epsilon$.
# ```
#
# ```{prf:proof}
# Let $\Sigma=\sum_{t\in\mathcal A}\sigma_t$, so that $\lvert\mathcal A\rvert=S+\Sigma$ and $\Sigma\le T$.
#
# 1. *Rounds in $\mathcal B=[T]\setminus\mathcal A$.* The weight is 1, $g(w_t)\ge\epsilon$ and $g(w^*)\le0$. The rounds
#    in $\mathcal B$ contribute at least $\lvert\mathcal B\rvert\,\epsilon$ to the sum $\sum_t\sigma_t(g(w_t)-g(w^*))$.
# 2. *Rounds in $\mathcal A$.* The weight $\sigma_t$ is positive only if $1+\beta(g(w_t)-\epsilon)>0$, that is,
#    $g(w_t)>\epsilon-\frac1\beta$. The rounds in $\mathcal A$ contribute at least $\Sigma\,(\epsilon-\frac1\beta)$ to
#    the sum of step 1.
# 3. *All rounds.* Add the two bounds and use $\lvert\mathcal B\rvert+\Sigma=T-S$:
#
#    $$
#    \sum_{t<T}\sigma_t\big(g(w_t)-g(w^*)\big)\ge(T-S)\,\epsilon-\frac\Sigma\beta .
#    $$ (eq-soft-step3)
#
# 4. *$S>0$.* If $S=0$, every $\sigma_t$ is 1, so $\mathcal A$ is empty and $\Sigma=0$. By {eq}`eq-soft-step3` the left
#    side of {eq}`eq-soft-regret` is then at least $\epsilon>B$, a contradiction.
# 5. *Objective.* Subtract {eq}`eq-soft-step3` from $T$ times {eq}`eq-soft-regret`, with $B$ as its right side:
#    $\sum_{\mathcal A}(1-\sigma_t)(f(w_t)-f(w^*))\le TB-(T-S)\epsilon+\frac\Sigma\beta$. Divide by $S$ and apply
#    Jensen's inequality to $f$ with the weights $\frac{1-\sigma_t}S$ of $\bar w$:
#
#    $$
#    f(\bar w)-f(w^*)\le\epsilon+\frac{T(B-\epsilon)+\Sigma/\beta}{S} .
#    $$ (eq-soft-gap)
#
# 6. *Sign of the fraction.* By {eq}`eq-soft-beta` and $\Sigma\le T$, $\frac\Sigma\beta\le T(\epsilon-B)$. The fraction
#    is therefore not positive, and $f(\bar w)-f(w^*)\le\epsilon$.
# 7. *Constraint.* The average $\bar w$ has weight only on rounds with $g(w_t)<\epsilon$, so $g(\bar w)\le\epsilon$ by
#    Jensen's inequality.
# ```
#
# {prf:ref}`soft-theorem` covers these statements:
#
# | Theorem | Setting | $\Gamma$ | Threshold in its proof |
# | --- | --- | --- | --- |
# | W A.3, F 5 | no compression | $2E^2$ | $2B(\Gamma)=\sqrt{16D^2G^2E/T}$ |
# | F 2, F 8 | error feedback in both directions ({prf:ref}`comp-lemma-residual`, {prf:ref}`comp-lemma-gap`) | {eq}`eq-comp-gamma` | $2B(\Gamma)$ |
# | W 2, W 7 | unbiased uplink, no residuals | {eq}`eq-unb-gamma` | $2B(\Gamma)$; the correct statement is {prf:ref}`unb-theorem-soft` |

# %% [markdown]
# ## The threshold that is printed
#
# F's Theorems 2, 5 and 8 state $\epsilon=B(\Gamma)$ with $\beta\ge\frac2\epsilon$. But with $\epsilon=B$ the numerator
# in {eq}`eq-soft-gap` is $\Sigma/\beta>0$ for every $\beta$, so the proof fails. The papers' arguments allow two
# repairs:
#
# 1. Take $\epsilon=2B$, as the proofs do.
# 2. For Theorem 5, keep the printed $\epsilon=B(2E^2)$ and $\eta=\eta(2E^2)$, but insert the smaller number $\Gamma_0$
#    of {eq}`eq-hard-gammas` in {eq}`eq-soft-regret`. Its right side is then $B'$, and {eq}`eq-soft-beta` with $B'$ for
#    $B$ is the condition on $\beta$:
#
#    $$
#    B'=\frac\epsilon2\Big(1+\frac{\Gamma_0}{2E^2}\Big)<\epsilon,\qquad \beta\ge\frac1{\epsilon-B'} .
#    $$ (eq-soft-slack)
#
#    The smallest such $\beta$ exceeds the printed $2/\epsilon$: it is $24/\epsilon$ at $E=1$ and $2.62/\epsilon$ at
#    $E=5$.

# %% [markdown]
# ## Closing the gap (ours)
#
# A sharper bound in step 2 of the proof of {prf:ref}`soft-theorem` allows a smaller $\beta$. Step 2 uses only that
# $\sigma_t$ is positive. But on the ramp, where $0<\sigma_t<1$, the weight $\sigma_t=1+\beta(g(w_t)-\epsilon)$ falls as
# $g(w_t)$ falls below the threshold.
#
# ```{prf:lemma} The ramp
# :label: soft-lemma-ramp
#
# In every round $\sigma_t\,g(w_t)\ge\sigma_t\,\epsilon-\frac1\beta\,\sigma_t(1-\sigma_t)$.
# ```
#
# ```{prf:proof}
# If $\sigma_t=0$, both sides are 0. If $0<\sigma_t<1$, then $g(w_t)=\epsilon-\frac{1-\sigma_t}\beta$, and both sides
# are equal. If $\sigma_t=1$, the inequality reads $g(w_t)\ge\epsilon$, which holds.
# ```
#
# ```{prf:theorem} Soft switching with a smaller sharpness
# :label: soft-theorem-direct
#
# Let the left side of {eq}`eq-soft-regret` be at most $B'<\epsilon$. Then $S>0$, $g(\bar w)\le\epsilon$, and
#
# $$
# f(\bar w)-f(w^*)\le\epsilon+\Big[\frac1\beta-2\sqrt{\frac{\epsilon-B'}\beta}\,\Big]_+\quad\text{if }\beta<\frac1{4(\epsilon-B')},
# $$ (eq-soft-excess)
#
# and $f(\bar w)-f(w^*)\le\epsilon$ if $\beta\ge\frac1{4(\epsilon-B')}$.
# ```
#
# ```{prf:proof}
# Let $a=S/T$, the mean of $1-\sigma_t$ over the rounds.
#
# 1. Sum {prf:ref}`soft-lemma-ramp` over $t$ and use $g(w^*)\le0$:
#    $\sum_t\sigma_t(g(w_t)-g(w^*))\ge(T-S)\epsilon-\frac1\beta\sum_t\sigma_t(1-\sigma_t)$.
# 2. The function $x\mapsto x(1-x)$ is concave, so $\sum_t\sigma_t(1-\sigma_t)\le T\,a(1-a)$ by Jensen's inequality.
# 3. Steps 4 and 7 of the proof of {prf:ref}`soft-theorem` show that $a>0$ and $g(\bar w)\le\epsilon$.
# 4. Steps 1 and 2 yield a lower bound on $\sum_t\sigma_t(g(w_t)-g(w^*))$. Subtract this bound from $T$ times
#    {eq}`eq-soft-regret`, with $B'$ as its right side, divide by $S=aT$ and apply Jensen's inequality to $f$:
#
#    $$
#    f(\bar w)-f(w^*)\le\epsilon-\frac{\epsilon-B'}a+\frac{1-a}\beta .
#    $$ (eq-soft-direct)
#
# 5. The right side of {eq}`eq-soft-direct` is at most $\epsilon$ if $a(1-a)\le\beta(\epsilon-B')$. This holds for every
#    $a\in(0,1]$ if $\frac14\le\beta(\epsilon-B')$.
# 6. Otherwise maximize the right side over $a$. The maximum is at $a=\sqrt{\beta(\epsilon-B')}<\frac12$, and it is the
#    right side of {eq}`eq-soft-excess`.
# ```
#
# ```{prf:corollary} F Theorem 5 as printed is true
# :label: soft-corollary-plain
#
# Without compression, let $\epsilon=B(2E^2)$ and $\eta=\eta(2E^2)$. For every $E$ and every
# $\beta\ge\frac2{3\epsilon}$, in particular for $\beta\ge\frac2\epsilon$, $\bar w$ is an $\epsilon$-solution.
# ```
#
# ```{prf:proof}
# By {prf:ref}`hard-lemma-direct` the regret is at most $B'=\frac\epsilon2\big(1+\frac{3E/2-1}{2E^2}\big)$. The fraction
# in brackets is at most $\frac14$, because $E^2-3E+2=(E-1)(E-2)\ge0$ for whole numbers $E$. Hence
# $\epsilon-B'\ge\frac38\epsilon$ and $\frac1{4(\epsilon-B')}\le\frac2{3\epsilon}$, and {prf:ref}`soft-theorem-direct`
# applies.
# ```

# %% [markdown]
# ## With error feedback
#
# In F's Theorem 2 (8 in the appendix) compression adds terms to $\Gamma$, which depend on the constants $q$ and $q_0$
# of the compressors of uplink and downlink. {prf:ref}`soft-lemma-feedback` lowers these terms and so enlarges the
# difference $\epsilon-B'$ in {prf:ref}`soft-theorem-direct`.
#
# ```{prf:lemma} Residual, message and gap by the triangle inequality (ours)
# :label: soft-lemma-feedback
#
# Let $s=\sqrt{1-q}$ and $s_0=\sqrt{1-q_0}$. If the compressors are random, $\lVert\cdot\rVert$ denotes
# $(\mathbb E\lVert\cdot\rVert^2)^{1/2}$. In the setting of {prf:ref}`comp-theorem`, the mean residual $e_t$, the mean
# message $v_t$ and the gap $\hat e_t$ satisfy
#
# $$
# \lVert e_t\rVert\le\frac s{1-s}\,EG,\quad\lVert v_t\rVert\le\frac{1+s}{1-s}\,EG,\quad\lVert\hat e_t\rVert\le\frac{s_0}{1-s_0}\cdot\frac{1+s}{1-s}\,\eta EG ,
# $$ (eq-soft-triangle)
#
# and {eq}`eq-soft-regret` holds with $\Gamma'$ in place of $\Gamma$, where
#
# $$
# \Gamma'=\frac{3E}2-1+\frac{E\,s}{1-s}+E\,\frac{s_0}{1-s_0}\cdot\frac{1+s}{1-s} .
# $$ (eq-soft-gamma)
# ```
#
# ```{prf:proof}
# The proof of {prf:ref}`part-lemma-9` with $n=N$ yields {eq}`eq-soft-triangle`; it uses only the triangle inequality,
# which also holds for $(\mathbb E\lVert\cdot\rVert^2)^{1/2}$. By the Cauchy-Schwarz inequality, the two terms with
# $e_t$ and $\hat e_t$ in {eq}`eq-comp-round` are at most $2\eta^2\lVert e_t\rVert EG$ and
# $2\eta\lVert\hat e_t\rVert EG$. Divide by $2\eta^2EG^2$ and insert {eq}`eq-soft-triangle`. By
# {prf:ref}`hard-lemma-direct`, $\Gamma_{\rm direct}$ may replace $\Gamma_0$.
# ```
#
# ```{prf:corollary} How far F Theorems 2 and 8 hold as printed
# :label: soft-corollary-feedback
#
# Let the compressors be deterministic and $\Gamma$ the number in {eq}`eq-comp-gamma`. Let $\epsilon=B(\Gamma)$,
# $\eta=\eta(\Gamma)$ and $\beta=\frac2\epsilon$, and let $\theta=1-\frac{\Gamma'}\Gamma>0$ with $\Gamma'$ of
# {eq}`eq-soft-gamma`. Then $g(\bar w)\le\epsilon$ and
#
# $$
# f(\bar w)-f(w^*)\le\epsilon\,\Big(1+\big[\tfrac12-\sqrt\theta\,\big]_+\Big) .
# $$ (eq-soft-factor)
#
# The printed statement is true if $\theta\ge\frac14$.
# ```
#
# ```{prf:proof}
# By {prf:ref}`soft-lemma-feedback` the regret is at most $B'=\frac\epsilon2(1+\frac{\Gamma'}\Gamma)$, so
# $\epsilon-B'=\frac{\epsilon\theta}2$. Insert this and $\beta=\frac2\epsilon$ into {prf:ref}`soft-theorem-direct`. The
# condition $\beta\ge\frac1{4(\epsilon-B')}$ becomes $\theta\ge\frac14$. The bracket in {eq}`eq-soft-excess` becomes
# $\frac\epsilon2-2\sqrt{\epsilon^2\theta/4}$.
# ```
#
# In F's classification setting, $E=5$ and $q=q_0=0.1$, the printed statement is true, with $\theta=0.41$. The number
# $\theta$ is below $\frac14$ only if the uplink is compressed strongly and the downlink hardly or not at all. For
# $E=1$, $q=0.1$ and $q_0=1$ the factor in {eq}`eq-soft-factor` is 1.19, and it falls as $E$ grows.

# %% [markdown]
# ## Sampled clients
#
# The papers' experiments use soft switching with $n<N$ clients per round. Neither paper has a theorem for this case; we
# prove one. Let $\hat\sigma_t$ be the weight {eq}`eq-soft-weight` computed from an estimate $\hat G(w_t)$ of $g(w_t)$.
# It replaces $\sigma_t$ also in $S$ and $\bar w$.
#
# ```{prf:theorem} Soft switching with an independent estimate (ours)
# :label: soft-theorem-partial
#
# Suppose that, with probability $1-\delta$, $\lvert\hat G(w_t)-g(w_t)\rvert\le\kappa$ in all rounds and
#
# $$
# \frac1T\sum_{t<T}\Big[(1-\hat\sigma_t)\big(f(w_t)-f(w^*)\big)+\hat\sigma_t\big(g(w_t)-g(w^*)\big)\Big]\le B .
# $$ (eq-soft-partial)
#
# If $\epsilon>B+\kappa$ and $\beta\ge\frac1{4(\epsilon-B-\kappa)}$, then, with probability $1-\delta$,
# $S>0$, $f(\bar w)-f(w^*)\le\epsilon$ and $g(\bar w)\le\epsilon+\kappa$.
# ```
#
# ```{prf:proof}
# {prf:ref}`soft-lemma-ramp` holds for $\hat\sigma_t$ and $\hat G(w_t)$. Since
# $\hat\sigma_tg(w_t)\ge\hat\sigma_t\hat G(w_t)-\hat\sigma_t\kappa$, the lemma also holds for $\hat\sigma_t$ and
# $g(w_t)$ if $\epsilon-\kappa$ replaces $\epsilon$ on its right side.
#
# 1. *Objective.* Repeat the proof of {prf:ref}`soft-theorem-direct` with this inequality and $a(1-a)\le\frac14$:
#
#    $$
#    \begin{aligned}
#    S\,(f(\bar w)-f(w^*))&\le TB-(T-S)(\epsilon-\kappa)+\frac T\beta a(1-a)\\
#    &\le S(\epsilon-\kappa)+T\Big(B+\kappa-\epsilon+\frac1{4\beta}\Big) .
#    \end{aligned}
#    $$
#
#    By the condition on $\beta$ the last bracket is not positive.
# 2. *$S>0$.* If $S=0$, all $\hat G(w_t)\ge\epsilon$, and the left side of {eq}`eq-soft-partial` is at least
#    $\epsilon-\kappa>B$, a contradiction.
# 3. *Constraint.* All weight of $\bar w$ is on rounds with $\hat G(w_t)<\epsilon$, where $g(w_t)\le\epsilon+\kappa$.
#    Apply Jensen's inequality.
# ```
#
# As for hard switching, {prf:ref}`part-lemma-7` bounds the error $\kappa$ of the estimate, and {prf:ref}`part-lemma-4`
# the sampling error in the regret bound $B$. The proof of {prf:ref}`part-lemma-4` works for all weights $\hat\sigma_t$
# that are *independent of the sample that makes the update*. F-A4 assumes this independence, but in Algorithm 1 one
# sample determines both the weight and the update. Then the bound on $f(\bar w)-f(w^*)$ can fail (see the next example,
# and {prf:ref}`part-one-sample` for hard switching).
#
# ```{prf:example} One sample for the weight and the update
# :label: soft-example
#
# Let $f_1(w)=\lvert w-3\rvert$, $g_1(w)=\lvert w\rvert-6$, $f_2(w)=\lvert w+3\rvert$, $g_2(w)=\lvert w-10\rvert-6$. One
# of the two clients is sampled. Every $w\in[0,10]$ is feasible with $g=-1$, and $f^*=3$ is attained on $[0,3]$.
#
# Let $3<w<4-\epsilon$. If client 1 is sampled, it reports $g_1<0$, and the model steps along $-\nabla f_1=-1$. If
# client 2 is sampled, it reports $g_2>\epsilon$, and the model steps along $-\nabla g_2=1$. Below 3 both clients push
# the model to the right, above 4 to the left. So for all $\epsilon$ and $\eta$ the model wanders between 3 and 4 for
# ever, where $f(w)=w$ exceeds $f^*$. If both clients take part, the constraint is never active.
# ```

# %% [markdown]
# ```{admonition} Differences from the printed papers
# :class: warning
#
# * **Threshold in F Theorems 2, 5 and 8.** The statements print $\epsilon=B(\Gamma)$, but the proofs need $2B(\Gamma)$.
#   Theorem 5 is true nevertheless ({prf:ref}`soft-corollary-plain`). Theorems 2 and 8 are true up to the factor in
#   {eq}`eq-soft-factor`, which is 1 in most settings and at most $\frac32$.
# * **Smallest $\beta$.** The printed $\beta\ge\frac2\epsilon$ is three times what our proof of Theorem 5 needs.
# * **Slips.** In F's proofs, inner products contain $g_j,f_j$ in place of their gradients, "$\sigma_\beta\ge0$" should
#   be $\sigma_\beta>0$, and the compression terms of Theorem 8 lack a factor $T$.
# ```

# %% [markdown]
# ## Checks
#
# The random instances are those of the [note on hard switching](note_hard_switching.ipynb): $f_j(w)=\lVert w-a_j\rVert$
# and $g_j(w)=\lVert w-b_j\rVert-c$, with $G=D=1$ and eight clients.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the first instance
instances = None  # number of random instances; None: 48 in the full profile, 6 in the quick one
rounds = None  # T of the theorems; None: 100 in the full profile, 40 in the quick one
tries = None  # cases a generation in the search; None: 200 in the full profile, 60 in the quick one

# %% tags=["hide-input"]
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import torch

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.compress import TopK
from fedlib.steps import Soft
from papers.fedsgm.checks import mean_gaps, regret, worst_case
from papers.fedsgm.gamma import (
    bound,
    gamma_feedback,
    gamma_feedback_direct,
    gamma_local,
    regret_bound,
    soft_beta,
    soft_excess,
    step_size,
)
from papers.fedsgm.problems.norms import norms, random_norms, varied_norms
from papers.fedsgm.theory import Setting, theorem_2, theorem_5
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle

settle(globals(), seed=0, instances=(48, 6, 2), rounds=(100, 40), tries=(200, 60, 5))
seeds = range(seed, seed + instances)
instance = cache(varied_norms)  # its reference solution is computed once


# %% [markdown]
# **The repairs of the printed threshold.** We compute the smallest $\beta$ that {prf:ref}`soft-theorem` and
# {prf:ref}`soft-theorem-direct` allow at the printed $\epsilon$ and $\eta$ of Theorem 5.


# %% tags=["hide-input", "nbval-check-output"]
def smallest_beta(E, gamma_version, argument):
    """The smallest beta at the printed epsilon and eta, times epsilon."""
    printed = gamma_local(E, "stated")
    epsilon = bound(1.0, 1.0, E, rounds, printed)
    lr = step_size(1.0, 1.0, E, rounds, printed)
    limit = regret_bound(1.0, 1.0, E, rounds, gamma_local(E, gamma_version), lr)
    return epsilon * soft_beta(epsilon, limit, argument)


for E, expected in ((1, 24.0), (5, 2.62)):
    factor = smallest_beta(E, "proved", "papers")
    check(f"E={E}: beta >= {expected}/eps with Gamma_0", abs(factor / expected - 1) < 2e-3)
ours = np.array([smallest_beta(E, "direct", "direct") for E in range(1, 101)])
check("ours: at most (2/3)/eps, for E = 1 to 100", ours.max() < 2 / 3 + 1e-12)
check(
    "our limit is (2/3)/eps at E = 1 and 2, and 0.504/eps at E = 100",
    np.abs(ours[:2] - 2 / 3).max() < 1e-12 and round(ours[-1], 3) == 0.504,
)
check("with B' = eps no beta is enough", soft_beta(1.0, 1.0) == np.inf)

# %% [markdown]
# **The ramp and the excess.** We try {prf:ref}`soft-lemma-ramp` at random values of $g(w_t)$. We also compute the
# maximum of {eq}`eq-soft-direct` on a grid of $a$; it agrees with the formula {eq}`eq-soft-excess`.

# %% tags=["hide-input", "nbval-check-output"]
values = np.random.default_rng(seed).normal(1.0, 1.0, 100_000)  # of g, with eps = 1

for beta in (0.3, 2.0, 30.0):
    sigma = Soft(beta)(torch.from_numpy(values - 1)).numpy()
    margins = sigma * (values - 1 + (1 - sigma) / beta)
    margins_with_half = sigma * (values - 1 + (1 - sigma) / (2 * beta))
    inside = margins[(sigma > 0) & (sigma < 1)]
    check(
        f"beta eps = {beta}: the lemma of the ramp on 100000 values, equality inside the ramp",
        margins.min() > -1e-12 and len(inside) > 1000 and abs(inside).max() < 1e-12,
    )
    check(
        "    with half of its last term the lemma fails",
        margins_with_half.min() < -0.1 / beta,
    )

a = np.linspace(1e-4, 1, 200_001)
errors = []
for beta, limit in product((0.1, 0.5, 2), (0.3, 0.9)):
    largest = np.max((1 - a) / beta - (1 - limit) / a)
    errors.append(abs(max(0, largest) - soft_excess(1.0, limit, beta)))
check(
    f"the excess is the maximum over a in all {len(errors)} cases, to 1e-6",
    max(errors) < 1e-6,
)

# %% [markdown]
# **F Theorem 5 and W appendix A.3 on random instances.** We check that $\bar w$ is an $\epsilon$-solution, and that the
# regret, the left side of {eq}`eq-soft-regret`, is within its bound. Each instance runs with the printed
# $\epsilon=B(2E^2)$ and with the proofs' $\epsilon=2B(2E^2)$ ("corrected"), both with $\beta=2/\epsilon$. The table has
# the largest values over the instances.


# %% tags=["hide-input", "nbval-check-output"]
def run_versions(theorem, setting, problem, seeds, **options):
    """The largest values over the instances for both versions of a theorem, a row for each."""
    rates = {version: theorem(setting, version) for version in ("printed", "corrected")}
    methods = [
        FedSGM(
            lr=rate.lr,
            local_steps=setting.E,
            participants=8,
            tolerance=rate.tolerance,
            switch=Soft(rate.beta),
            **options,
        )
        for rate in rates.values()
    ]
    traces = run(methods, problem, rounds=setting.T, seeds=seeds, progress=False)
    rows = []
    for (version, rate), trace in zip(rates.items(), traces, strict=True):
        gaps = mean_gaps(trace, [problem(s) for s in seeds])
        row = {
            "version": version,
            "E": setting.E,
            "regret / eps": regret(trace).mean(-1).max() / rate.tolerance,
            "f gap / eps": gaps.f_gap.max() / rate.tolerance,
            "g / eps": gaps.g.max() / rate.tolerance,
            "solved": gaps.within(rate.tolerance).sum(),
            "eps": rate.tolerance,
            "lr": rate.lr,
            "start": trace.metrics["f_gap"][:, 0].max(),
        }
        rows.append(row)
    return pd.DataFrame(rows)


frames = []
for E in (1, 2, 5, 10):
    setting = Setting(D=1.0, G=1.0, E=E, T=rounds, N=8)
    frames.append(run_versions(theorem_5, setting, instance, seeds))
uncompressed = pd.concat(frames).set_index(["version", "E"])
ratios = uncompressed["regret / eps"]

for (version, E), solved in uncompressed["solved"].items():
    check(
        f"{version}, E={E}: eps-solution on {solved} of {instances} instances",
        solved == instances,
    )
check(
    "printed: regret <= (5/8) eps, from Gamma_direct, on all of them",
    ratios["printed"].max() <= 5 / 8,
)
check("corrected: regret <= (5/16) eps", ratios["corrected"].max() <= 5 / 16)
check(
    "half of these limits on the regret is exceeded on some instance at E = 1",
    ratios["printed", 1] > 5 / 16 and ratios["corrected", 1] > 5 / 32,
)

# %% tags=["hide-input"]
displayed(uncompressed.filter(like="/ eps").round(2))

# %% [markdown]
# **F Theorem 2 (8), error feedback in both directions.** We repeat the last check with Top-K in dimension 20. In every
# second instance the clients differ less than in the others.


# %% tags=["hide-input", "nbval-check-output"]
@cache
def wide(number):
    """An instance in dimension 20; every second one has clients that differ less."""
    spread = 1.0 if number % 2 == 0 else 0.1
    return random_norms(number, clients=8, dim=20, spread=spread)


half = seeds[: instances // 2]
long = 10 * rounds

for q, q0, E in ((0.1, 1.0, 1), (0.5, 0.9, 1), (0.9, 0.9, 3)):
    setting = Setting(D=1.0, G=1.0, E=E, T=long, N=8, q=q, q0=q0)
    rows = run_versions(theorem_2, setting, wide, half, uplink=TopK(q), downlink=TopK(q0))
    gamma_direct = gamma_feedback_direct(E, q, q0)
    printed_limit = bound(1.0, 1.0, E, long, gamma_feedback(E, q, q0))
    for row in rows.to_dict("records"):
        limit = regret_bound(1.0, 1.0, E, long, gamma_direct, row["lr"])
        check(
            f"{row['version']}, q={q}, q0={q0}, E={E}: eps-solution on {row['solved']} of {len(half)} instances",
            row["solved"] == len(half),
        )
        check(
            "    and regret <= its bound with Gamma', which is below B(Gamma), on all of them",
            row["regret / eps"] * row["eps"] <= limit < printed_limit,
        )
    printed = rows.iloc[0]  # twice as much is more than that in a short run
    check(
        "    and the printed eps is below the largest gap at the start",
        printed["eps"] < printed["start"],
    )

# %% [markdown]
# **The factor of {prf:ref}`soft-corollary-feedback`.** We compute the factor in {eq}`eq-soft-factor` for a grid of $E$,
# $q$ and $q_0$. The table shows the pairs $E,q$ with a factor above 1 for some $q_0$.


# %% tags=["hide-input", "nbval-check-output"]
def factor(E, q, q0):
    """One plus the excess at the printed epsilon, eta and beta, over epsilon."""
    printed = gamma_feedback(E, q, q0)
    epsilon = bound(1.0, 1.0, E, rounds, printed)
    lr = step_size(1.0, 1.0, E, rounds, printed)
    limit = regret_bound(1.0, 1.0, E, rounds, gamma_feedback_direct(E, q, q0), lr)
    return 1 + soft_excess(epsilon, limit, 2 / epsilon) / epsilon


levels = [(1, 2, 5, 10), (0.01, 0.1, 0.3, 0.5, 1.0), (0.01, 0.1, 0.5, 1.0)]
cells = pd.MultiIndex.from_product(levels, names=["E", "q", "q0"])
factors = pd.Series([factor(*cell) for cell in cells], cells)
above = factors[factors > 1]
theta = 1 - gamma_feedback_direct(5, 0.1, 0.1) / gamma_feedback(5, 0.1, 0.1)
worst_factor = factors[1, 0.1, 1.0]

check(
    f"theta = {theta:.2f} at E=5, q=q0=0.1, and the factor is 1",
    factors[5, 0.1, 0.1] == 1 and theta > 0.25,
)
check(f"the factor at E=1, q=0.1, q0=1 is {worst_factor:.2f}", 1 < worst_factor < 1.5)
check(
    f"the factor exceeds 1 in {len(above)} of {len(factors)} settings, all without downlink compression",
    (above.index.get_level_values("q0") == 1).all(),
)
check("and it never exceeds 3/2", factors.max() < 1.5)

# %% tags=["hide-input"]
table = factors.unstack("q0")
displayed(table[table.max(axis=1) > 1].round(2))

# %% [markdown]
# ## A search for counterexamples
#
# F Theorem 5 is true for $\beta\epsilon\ge\frac23$ ({prf:ref}`soft-corollary-plain`). For $\beta\epsilon$ up to
# $\frac12$ a random search finds instances on which its conclusion fails.
#
# The instances have one client in the plane, with $f(w)=s\lvert w-a\rvert$ and $g(w)=k(\lvert w\rvert-c)$, where
# $s,k\le1$. The search changes the instance, and its start at distance $D=1$ from the solution, at random. Over 40
# generations it keeps the changes that increase the objective gap of $\bar w$. Threshold and step size are those
# printed in F Theorem 5.

# %% tags=["hide-input", "nbval-check-output"]
sharpnesses = [
    0.05,
    0.1,
    0.15,
    0.2,
    0.25,
    0.3,
    0.4,
    0.5,
    0.6,
    2 / 3,
    0.8,
    1.0,
    2.0,
    24.0,
]  # beta eps
lengths = [(1, 10), (1, 40)]  # E, T
if profile == "full":
    lengths += [(1, 400), (5, 40)]


def gap_bound(E, sharpness):
    """The bound on the f gap over epsilon."""
    regret_over_epsilon = 0.5 + gamma_local(E, "direct") / (4 * E**2)
    return 1 + soft_excess(1.0, regret_over_epsilon, sharpness)


worst = pd.DataFrame(index=pd.Index(sharpnesses, name="beta eps"))
for E, T in lengths:
    searches = [worst_case(x, E, T, seed=seed, tries=tries) for x in sharpnesses]
    ratios = pd.Series([value for value, _ in searches], worst.index)
    limits = [gap_bound(E, x) for x in sharpnesses]
    worst[f"found, E={E}, T={T}"] = ratios
    check(
        f"E={E}, T={T}: {40 * tries} cases a sharpness, none above the bound",
        (ratios <= limits).all(),
    )
    check(
        "    the printed promise holds from beta eps = 2/3 on",
        ratios[2 / 3 :].max() <= 1,
    )
    check("    and fails at beta eps = 0.05 to 0.3", ratios[:0.3].min() > 1)
check(
    "at beta eps = 1/2 it still fails for E = 1",
    worst.loc[0.5].filter(like="E=1").max() > 1,
)


# %% tags=["hide-input"]
fig = plot.figure((5.2, 3.4))
ax = worst.plot(ax=fig.subplots(), logx=True, style=".-", ylabel="largest f gap / eps")
limits = [gap_bound(1, x) for x in sharpnesses]
ax.plot(sharpnesses, limits, "--", color=plot.COLORS[5], label="bound, E=1")
ax.axvspan(2 / 3, sharpnesses[-1], color=plot.COLORS[2], alpha=0.12, label="proved")
plot.level(ax, 1.0, "promise")
plot.plain_log(ax)
ax.legend(ncols=2)
plot.show(
    fig,
    alt="Against beta times epsilon, the dashed bound falls from 16 to 1 at two thirds. The curves that the search "
    "found lie below it, cross 1 near one half and settle at about one half.",
    caption="The largest objective gap that the search found, divided by the printed threshold, against beta times "
    "epsilon (2 in the papers). Dashed: the bound on this gap from the section Closing the gap, for E = 1. Shaded: "
    "where F Theorem 5 is proved.",
)

# %% [markdown]
# ## Soft switching with sampled clients, measured
#
# **Random instances.** We let fewer of the eight clients take part, but keep $\epsilon=2B(2E^2)$ and $\beta=2/\epsilon$
# of {prf:ref}`soft-theorem`, which covers only runs with all clients.


# %% tags=["hide-input", "nbval-check-output"]
def run_sampled(n, problem, E, T, resample_for_update=False):
    """Soft switching with n clients a round and the corrected constants of Theorem 5."""
    rate = theorem_5(Setting(D=1.0, G=1.0, E=E, T=T), "corrected")
    soft = FedSGM(
        lr=rate.lr,
        local_steps=E,
        participants=n,
        tolerance=rate.tolerance,
        switch=Soft(rate.beta),
        resample_for_update=resample_for_update,
    )
    trace = run(soft, problem, rounds=T, seeds=seeds, progress=False)
    return rate.tolerance, mean_gaps(trace, [problem(s) for s in seeds])


for n in (8, 4, 2, 1):
    epsilon, gaps = run_sampled(n, instance, 5, rounds)
    solved = gaps.within(epsilon)
    check(
        f"n = {n} of 8: eps-solution on {solved.sum()} of {instances} instances",
        solved.all(),
    )

# %% [markdown]
# **The instance of {prf:ref}`soft-example`.** If one sample determines the weight and the update ("one of them"), the
# objective gap must stay large. If a second sample makes the update (`resample_for_update=True`, "one, another asked"),
# the gap must stay below the threshold.

# %% tags=["hide-input", "nbval-check-output"]
example = norms(
    a=torch.tensor([[3.0], [-3.0]], dtype=torch.float64),
    b=torch.tensor([[0.0], [10.0]], dtype=torch.float64),
    c=6.0,
    w0=torch.tensor([4.0], dtype=torch.float64),
    solution=torch.tensor([3.0], dtype=torch.float64),
)
selections = {  # participants, and whether a second sample makes the update
    "both clients": (2, False),
    "one of them": (1, False),
    "one, another asked": (1, True),
}
spans = (400, 1600, 6400) if profile == "full" else (400,)
rows = []
for T, (selection, (n, resample)) in product(spans, selections.items()):
    epsilon, gaps = run_sampled(n, lambda _: example, 1, T, resample)
    label = f"{selection}, T = {T}, eps = {epsilon:.2f}"
    if selection == "one of them":
        far = gaps.f_gap.mean() > max(0.5, 2 * epsilon)
        check(f"{label}: mean f gap of {instances} runs above 0.5 and 2 eps", far)
    else:
        near = (gaps.f_gap <= epsilon).all()
        check(f"{label}: f gap <= eps on all of {instances} runs", near)
    row = {
        "who takes part": selection,
        "T": T,
        "eps": epsilon,
        "f gap, mean": gaps.f_gap.mean(),
        "f gap, standard deviation": gaps.f_gap.std(),
    }
    rows.append(row)

# %% tags=["hide-input"]
displayed(pd.DataFrame(rows).set_index(["who takes part", "T"]).round(3))

# %% [markdown]
# The checks are in {download}`note_soft_switching.py <src/note_soft_switching.py>`.
