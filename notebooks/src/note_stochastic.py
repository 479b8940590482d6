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
# # Minibatches
#
# In appendix D of {cite}`fedsgm2025` (F below) the clients compute gradients on minibatches, and constraint values too. Theorem 9 says what this costs. Its proof adds to that of {prf:ref}`part-theorem-4` four
# probabilistic lemmas and one proposition, each of which turns an assumption on the noise into a bound that holds in all rounds at once. This note proves all of them, and finds where a constant needs more care than the paper takes:
# Lemma 6 uses inequalities for numbers where vectors are meant. The theorem survives, because the lemma can be avoided ({prf:ref}`sto-theorem`), with a smaller constant.
#
# The notation is that of the note on sampled clients: $n$ of $N$ clients, $E$ local steps, $T$ rounds, $h$ is $f$ on rounds of $\mathcal A$ and $g$ on rounds of $\mathcal B$.

# %% [markdown]
# ## Setting
#
# A client's local step uses $\nabla h_j(w_{j,\tau})+\xi_{j,\tau}$, the gradient on a minibatch; $\xi_{j,\tau}$ is the noise. The query uses a minibatch of $N_b$ rows: client $j$ reports $g_j(w_t)+\zeta_j$, and the server switches on
# $\tilde G_t=\frac1n\sum_{j\in\mathcal S_t}(g_j(w_t)+\zeta_j)$. There is no compression.
#
# ```{prf:assumption} F-A5
# :label: sto-assumption
#
# Besides {prf:ref}`part-assumption` (F-A1, F-A2, F-A4):
#
# 1. Given everything before it, $\xi_{j,\tau}$ has mean zero and $\mathbb E\exp\big(\lVert\xi_{j,\tau}\rVert^2/\sigma_\xi^2\big)\le e$. The noises of different clients are independent.
# 2. Given $w_t$ and the sample, the $\zeta_j$ are independent with mean zero and $\frac{\sigma_b^2}{N_b}$-sub-Gaussian. (F prints $g_i(w,\xi_i)-g(w)$ for $\zeta_i$; $g_i(w)$ is meant.)
# 3. The rows of the query are drawn independently of those of the gradients.
# ```
#
# Theorem 9 does not list F-A4, but {prf:ref}`sto-prop-1` needs it.
#
# ```{prf:lemma} What point 1 says
# :label: sto-moments
#
# Let $X\ge0$ with $\mathbb E e^{X^2/\sigma^2}\le e$. Then $\mathbb EX^2\le\sigma^2$, and $X^2>\sigma^2(1+u)$ has probability at most $e^{-u}$.
# ```
#
# ```{prf:proof}
# Jensen: $\exp(\mathbb EX^2/\sigma^2)\le e$. Markov: $\mathbb P(e^{X^2/\sigma^2}>e^{1+u})\le e\cdot e^{-1-u}$.
# ```
#
# ```{prf:lemma} Two exponential moments
# :label: sto-mgf
#
# Let $\mathbb E e^{X^2/\sigma^2}\le e$. For all real $x$:
# (a) if $\mathbb EX=0$, then $\mathbb Ee^{xX}\le\exp(\frac34x^2\sigma^2)$; (b) if $X\ge0$ and $x\ge0$, then $\mathbb E[e^{xX}-xX]\le\exp(\frac34x^2\sigma^2)$.
# ```
#
# ```{prf:proof}
# Let $\sigma=1$.
#
# 1. *Small $x$,* $x^2\le\frac{16}9$. For every real $y$, $e^y\le y+e^{9y^2/16}$ (a statement about one function of one variable; a cell below looks at it). Hence both left sides are at most $\mathbb Ee^{9x^2X^2/16}$, and Jensen's inequality for the power $\frac{9x^2}{16}\le1$ gives $e^{9x^2/16}\le e^{3x^2/4}$.
# 2. *Large $x$.* $xy\le\frac38x^2+\frac23y^2$ for every $y$, so $\mathbb Ee^{xX}\le e^{3x^2/8}\,\mathbb Ee^{2X^2/3}\le e^{3x^2/8+2/3}$, and $\frac23\le\frac38x^2$ as soon as $x^2\ge\frac{16}9$.
# ```
#
# So a number with $\mathbb Ee^{X^2/\sigma^2}\le e$ and mean zero is $\frac32\sigma^2$-sub-Gaussian. F uses $\sigma^2$. For numbers, $\sigma^2$ seems to be right: the worst law can be found by linear programming (below), and its constant never exceeds 1. We have no proof of that, and use $\frac32$.

# %% [markdown]
# ## Drift: Lemma 3
#
# ```{prf:lemma} F Lemma 3
# :label: sto-lemma-3
#
# With probability at least $1-\delta$, in all rounds and for all clients,
#
# $$
# \sum_{\tau<E}\lVert w_t-w_{j,\tau}\rVert^2\le\eta^2E^3\Big[\tfrac23G^2+\tfrac23\sigma_\xi^2\Big(1+\log\frac{NTE}\delta\Big)\Big] .
# $$ (eq-sto-lemma3)
#
# F prints 1 for the second $\frac23$ (and $\beta$ for $\delta$ in one of its equations).
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. There are $NTE$ noises (count also those of clients that are not drawn). By {prf:ref}`sto-moments` with $u=\log\frac{NTE}\delta$ and a union bound, with probability at least $1-\delta$ all of them satisfy
#
#    $$
#    \lVert\xi_{j,\tau}\rVert\le R,\qquad R=\sigma_\xi\sqrt{1+\log\tfrac{NTE}\delta} .
#    $$ (eq-sto-r)
#
# 2. $w_t-w_{j,\tau}=\eta\sum_{s<\tau}(\nabla h_j(w_{j,s})+\xi_{j,s})$. The square of a sum of $\tau$ vectors is at most $\tau$ times the sum of squares, and $\lVert u+v\rVert^2\le2\lVert u\rVert^2+2\lVert v\rVert^2$: $\lVert w_t-w_{j,\tau}\rVert^2\le\eta^2\tau^2(2G^2+2R^2)$.
# 3. $\sum_{\tau<E}\tau^2\le\frac{E^3}3$, as in {prf:ref}`hard-lemma-2`.
# ```
#
# At $E=1$ the left side is zero.

# %% [markdown]
# ## The noise along the way: Lemma 5
#
# ```{prf:lemma} F Lemma 5
# :label: sto-lemma-5
#
# Let $Q_t=\frac1n\sum_{j\in\mathcal S_t}\sum_{\tau<E}\xi_{j,\tau}$. With probability at least $1-\delta$,
#
# $$
# \sum_{t\in\mathcal A}2\eta\langle-Q_t,w_t-w^*\rangle\le2\eta D\sigma_\xi\sqrt{\kappa\,\frac{2ET}n\log\frac1\delta},\qquad\kappa=\tfrac32,
# $$ (eq-sto-lemma5)
#
# and the same over $\mathcal B$. F prints $\kappa=1$.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. Put the noises of all rounds in one row, round by round, within a round client by client and step by step. Given those before it, each contributes $X=-\frac{2\eta}n\langle\xi_{j,\tau},w_t-w^*\rangle$, which has mean zero; and $\lvert X\rvert\le\frac{2\eta D}n\lVert\xi_{j,\tau}\rVert$, so point 1 of {prf:ref}`sto-assumption`
#    holds for $X$ with $\frac{2\eta D}n\sigma_\xi$. The indicator of $\mathcal A$ is known before.
# 2. By {prf:ref}`sto-mgf` (a) each has the proxy $\kappa\frac{4\eta^2D^2}{n^2}\sigma_\xi^2$. There are $nET$ of them, so the sum has the proxy $\kappa\frac{4\eta^2D^2ET}n\sigma_\xi^2$ (Azuma, as in {prf:ref}`part-lemma-4`), and exceeds $\sqrt{2\cdot\text{proxy}\cdot\log\frac1\delta}$ with probability at most $\delta$.
# ```

# %% [markdown]
# ## The square: Lemma 6
#
# F has to bound the distance between the full mean $\nu_t=\frac1N\sum_{j,\tau}\nabla h_j(w_{j,\tau})$ and what the server receives, $s_t=\frac1n\sum_{j\in\mathcal S_t,\tau}(\nabla h_j(w_{j,\tau})+\xi_{j,\tau})$. The distance has two parts, the sampling error $P_t=\nu_t-\bar\Delta_t$ and the mean noise $Q_t=\frac1n\sum_{j\in\mathcal S_t,\tau}\xi_{j,\tau}$. F states
#
# $$
# 2\eta^2\lVert\nu_t-s_t\rVert^2\le\frac{8\eta^2E}n(EG^2+\sigma_\xi^2)\log\frac{4T}\delta\quad\text{in all rounds},
# $$ (eq-sto-lemma6)
#
# from $\lVert P_t\rVert^2\le\frac{2E^2G^2}n\log\frac{4T}\delta$ and $\lVert Q_t\rVert^2\le\frac{2E\sigma_\xi^2}n\log\frac{4T}\delta$. For numbers these are Hoeffding's inequality and the tail of a sub-Gaussian sum with proxy $\frac{E\sigma_\xi^2}n$. But $P_t$ and $Q_t$ are vectors. What can be shown for vectors, in any dimension, is a little more:
#
# ```{prf:lemma} F Lemma 6, for vectors
# :label: sto-lemma-6
#
# With probability at least $1-\delta$, in all rounds,
#
# $$
# \lVert P_t\rVert\le\frac{EG}{\sqrt n}\Big(1+\sqrt{2\log\tfrac{2T}\delta}\Big),\qquad\lVert Q_t\rVert\le\sigma_\xi\sqrt{\frac{3E}n\log\frac{4T}\delta} .
# $$ (eq-sto-vectors)
# ```
#
# ```{prf:proof}
# *The sample.*
#
# 1. Let $X_j=\sum_\tau\nabla h_j(w_{j,\tau})$, so $\lVert X_j\rVert\le EG$, and $\bar X$ their mean. The variance of a mean without replacement is at most that with it: $\mathbb E\lVert P_t\rVert\le\sqrt{\mathbb E\lVert P_t\rVert^2}\le\sqrt{\frac1n\cdot\frac1N\sum\lVert X_j-\bar X\rVert^2}\le\frac{EG}{\sqrt n}$.
# 2. Reveal the clients of the sample one after the other. If one revealed client is exchanged for another, the samples that follow can be paired such that two of a pair differ in one client; then $\lVert P_t\rVert$ changes by at most $\frac{2EG}n$, and so does its conditional expectation.
#    These conditional expectations form a martingale whose $n$ steps lie in intervals of length $\frac{2EG}n$. Hoeffding's lemma and Azuma's argument: $\mathbb P\big(\lVert P_t\rVert>\mathbb E\lVert P_t\rVert+u\big)\le\exp\big(-\frac{2u^2}{n(2EG/n)^2}\big)=\exp\big(-\frac{nu^2}{2E^2G^2}\big)$.
# 3. This is $\frac\delta{2T}$ for $u=\frac{EG}{\sqrt n}\sqrt{2\log\frac{2T}\delta}$.
#
# *The noise.*
#
# 4. Pinelis {cite}`pinelis1994optimum`: for a martingale $M_k$ in a Euclidean space with $M_0=0$ and steps $d_k$, $\mathbb E[\cosh(x\lVert M_k\rVert)\mid\text{past}]\le\cosh(x\lVert M_{k-1}\rVert)\cdot\mathbb E\big[e^{x\lVert d_k\rVert}-x\lVert d_k\rVert\mid\text{past}\big]$.
# 5. Here $d_k=\frac1n\xi_{j,\tau}$, with $nE$ steps in a round. By {prf:ref}`sto-mgf` (b) the last factor is at most $\exp\big(\frac34x^2\frac{\sigma_\xi^2}{n^2}\big)$, so $\mathbb E\cosh(x\lVert Q_t\rVert)\le\exp\big(\frac34x^2\frac{E\sigma_\xi^2}n\big)$.
# 6. $e^{xu}\le2\cosh(xu)$ and Markov at $x=\frac{2nu}{3E\sigma_\xi^2}$: $\mathbb P(\lVert Q_t\rVert>u)\le2\exp\big(-\frac{nu^2}{3E\sigma_\xi^2}\big)$, which is $\frac\delta{2T}$ for the second bound.
#
# Add up the $2T$ events.
# ```
#
# Compared with F's two inequalities, the first square grows from $2\log\frac{4T}\delta$ to $\big(1+\sqrt{2\log\frac{2T}\delta}\big)^2$, 1.4 to 1.6 times, and the second from 2 to 3. No violation of {eq}`eq-sto-lemma6` was found; what is missing is a proof.

# %% [markdown]
# ## The query: Proposition 1 and Lemma 8
#
# ```{prf:proposition} F Proposition 1
# :label: sto-prop-1
#
# Given $w_t$, $\tilde G_t-g(w_t)$ is $\big(\frac{\sigma^2}n+\frac{\sigma_b^2}{nN_b}\big)$-sub-Gaussian.
# ```
#
# ```{prf:proof}
# $\tilde G_t-g(w_t)=(\hat G_t-g(w_t))+\frac1n\sum_{j\in\mathcal S_t}\zeta_j$. Given the sample, the second part is a sum of $n$ independent terms, and $\mathbb E\exp\big(\frac xn\sum\zeta_j\big)\le\exp\big(n\cdot\frac{x^2}{2n^2}\frac{\sigma_b^2}{N_b}\big)$, whatever the sample. So the expectation over both is at most that factor times $\mathbb E\exp(x(\hat G_t-g(w_t)))\le\exp(\frac{x^2\sigma^2}{2n})$, by F-A4.
# ```
#
# ```{prf:lemma} F Lemma 8
# :label: sto-lemma-8
#
# With probability at least $1-\delta$, in all rounds, $\lvert\tilde G_t-g(w_t)\rvert\le\sqrt{\frac2n\big(\sigma^2+\frac{\sigma_b^2}{N_b}\big)\log\frac{2T}\delta}$.
# ```
#
# ```{prf:proof}
# The proof of {prf:ref}`part-lemma-7`, with the proxy of {prf:ref}`sto-prop-1`.
# ```

# %% [markdown]
# ## Theorem 9
#
# ```{prf:theorem} F Theorem 9, as it can be proved
# :label: sto-theorem
#
# Let {prf:ref}`sto-assumption` hold, and switch hard on $\tilde G_t$. Let
#
# $$
# \begin{aligned}
# \Gamma&=(E-1)\Big(1+\frac RG\Big)+\frac{(EG+Q)^2}{2EG^2},\\
# R&=\sigma_\xi\sqrt{1+\log\tfrac{7NTE}\delta},\qquad Q=\sigma_\xi\sqrt{\tfrac{3E}n\log\tfrac{14T}\delta},
# \end{aligned}
# $$ (eq-sto-gamma)
#
# $\eta=\eta(\Gamma)$, and
#
# $$
# \begin{aligned}
# b&=B(\Gamma)+2GD\sqrt{\tfrac2{nT}\log\tfrac7\delta}+2D\sigma_\xi\sqrt{\tfrac3{nET}\log\tfrac7\delta},\\
# r&=\sqrt{\tfrac2n\Big(\sigma^2+\tfrac{\sigma_b^2}{N_b}\Big)\log\tfrac{14T}\delta} .
# \end{aligned}
# $$ (eq-sto-b)
#
# With the threshold $b+r$ and probability at least $1-\delta$: $\mathcal A$ is not empty, $f(\bar w)-f(w^*)\le b$ and $g(\bar w)\le b+2r$.
# ```
#
# F prints other constants: $G^2\Gamma=G_{\rm eff}=3E^2G^2+E^2\sigma_\xi^2\big(1+\log\frac{7NTE}\delta\big)+\frac4n(EG^2+\sigma_\xi^2)\log\frac{28T}\delta$; $4GD$ where we have $2GD$; 2 where we have 3 under the second root; and the threshold $b+2r$, with the claim that both gaps are at most the threshold.
#
# ```{prf:proof}
# In steps.
#
# 1. *Expand*, as in step 1 of the proof of {prf:ref}`part-theorem-4`, with $s_t=\bar\Delta_t+Q_t$ for the step:
#
#    $$
#    \begin{aligned}
#    \lVert w_{t+1}-w^*\rVert^2\le{}&\lVert w_t-w^*\rVert^2-2\eta\langle w_t-w^*,\nu_t\rangle+\eta^2\lVert s_t\rVert^2\\
#    &+2\eta\langle\nu_t-\bar\Delta_t,w_t-w^*\rangle-2\eta\langle Q_t,w_t-w^*\rangle .
#    \end{aligned}
#    $$ (eq-sto-expand)
#
# 2. *Product with $\nu_t$.* These are true gradients, at local iterates that the noise has moved. On the event of {eq}`eq-sto-r` with $\frac\delta7$, $\lVert w_t-w_{j,\tau}\rVert\le\eta\tau(G+R)$. As in {prf:ref}`hard-lemma-direct`, the detour over $w_{j,\tau}$ and back costs $2\cdot2\eta\cdot\eta\tau(G+R)\cdot G$, summed over $\tau$:
#    $2\eta^2G(G+R)E(E-1)$. What remains is $-2\eta E(h(w_t)-h(w^*))$.
# 3. *Square.* $\lVert\bar\Delta_t\rVert\le EG$ for every sample, so no inequality for $P_t$ is needed: $\lVert s_t\rVert\le EG+\lVert Q_t\rVert$. By steps 4 to 6 of the proof of {prf:ref}`sto-lemma-6`, now with $T$ events and $\frac\delta7$, $\lVert Q_t\rVert\le Q$.
# 4. Steps 2 and 3 divided by $2\eta^2EG^2$ are $\Gamma$.
# 5. *The two sums.* The first product in the second line of {eq}`eq-sto-expand` is that of {prf:ref}`part-lemma-4` (given the noise of all clients, the sample is still uniform), the second that of {prf:ref}`sto-lemma-5`; each on $\mathcal A$ and on $\mathcal B$ with $\frac\delta7$. Divided by $2\eta ET$ the four are the last two terms of $b$.
# 6. *The query.* {prf:ref}`sto-lemma-8` with $\frac\delta7$ has the radius $r$. The conclusion is that of {prf:ref}`part-theorem-4`.
#
# Seven events: {eq}`eq-sto-r` (1), Lemma 4 (2), Lemma 5 (2), $\lVert Q_t\rVert\le Q$ (1), Lemma 8 (1).
# ```
#
# F's own way leads to $G_{\rm eff}$ as follows: $\lVert s_t\rVert^2\le2\lVert\nu_t\rVert^2+2\lVert\nu_t-s_t\rVert^2$ gives $E$ and, by Lemma 6, $\frac4n(E+\sigma_\xi^2/G^2)\log\frac{28T}\delta$; Young's inequality with $\alpha=\eta$ gives 1; Lemma 3 gives $\frac23E^2$ and $E^2\frac{\sigma_\xi^2}{G^2}(1+\log\frac{7NTE}\delta)$; and $E+1+\frac23E^2\le3E^2$.
#
# ```{prf:lemma} The printed $G_{\rm eff}$ is large enough
# :label: sto-printed
#
# $G^2\Gamma\le G_{\rm eff}$ always. And the printed threshold terms are at least those of $b$ if $\sigma_\xi\le4.4\sqrt E\,G$.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. $(EG+Q)^2\le2E^2G^2+2Q^2$, so the last term of $\Gamma$ is at most $E+\frac{Q^2}{EG^2}=E+\frac3n\frac{\sigma_\xi^2}{G^2}\log\frac{14T}\delta$. And $\frac RG\le\frac12+\frac{R^2}{2G^2}$, so the first is at most $\frac32(E-1)+\frac{E-1}2\frac{R^2}{G^2}$. Compare term by term with $3E^2$, $E^2\frac{R^2}{G^2}$ and $\frac4n\frac{\sigma_\xi^2}{G^2}\log\frac{28T}\delta$.
# 2. What $b$ has more, $2D\sigma_\xi(\sqrt3-\sqrt2)\frac1{\sqrt{nET}}\sqrt{\log\frac7\delta}$, is at most what it has less, $2GD\frac{\sqrt2}{\sqrt{nT}}\sqrt{\log\frac7\delta}$, if $\sigma_\xi\le\frac{\sqrt2}{\sqrt3-\sqrt2}\sqrt E\,G$.
# ```

# %% [markdown]
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **Lemma 6** uses scalar inequalities for vectors, and the proxy $\sigma_\xi^2$ where the textbook inequality has $\frac32\sigma_\xi^2$. {prf:ref}`sto-lemma-6` is what we can prove; Theorem 9 does not need it.
# * **Lemma 5** uses the same proxy. For numbers it seems to be right, see below.
# * **1 against 2**: the promise on $g(\bar w)$ with the printed threshold is the threshold plus $r$, not the threshold; the consistent reading is that of {prf:ref}`part-theorem-4`.
# * **One sample for query and step**: as in {prf:ref}`part-one-sample`. The same holds for the batches: point 3.
# * **Misprints of Theorem 9**: F-A4 is not listed; the $\epsilon$ closes a root in the wrong place; $\log\frac5\delta$, $\log\frac{10T}\delta$ and a $\Gamma$ are left over in one equation, from a count of five events; F-A5 (2) has $g(w)$ for $g_i(w)$; Lemma 3 has $\beta$ for $\delta$. $G_{\rm eff}$ has the unit of $G^2$, the $\Gamma$ of the other theorems has none.
# * **At $E=1$** there is no drift, but the printed $G_{\rm eff}$ keeps $\sigma_\xi^2(1+\log\frac{7NT}\delta)$.
# ```

# %% [markdown]
# ## Checks
#
# Six families of noise satisfy $\mathbb Ee^{\lVert\xi\rVert^2}=e$ exactly: Gaussian; uniform on the sphere; a fixed vector with a random sign; a long step with probability 0.1 and a short one the other way ("skewed"); zero but for one time in a hundred ("rare"); and $\lVert\xi\rVert^2$ exponential, the heaviest tail there can be.

# %% tags=["parameters", "remove-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the first instance
instances = None  # number of random instances; None: 24 in the full profile, 6 in the quick one
rounds = None  # T of the theorem; None: 2000 in the full profile, 400 in the quick one
trials = None  # of each Monte Carlo experiment; None: 4000 in the full profile, 500 in the quick one

# %% tags=["remove-input"]
from dataclasses import replace
from functools import cache
from math import e, sqrt

import numpy as np
import torch

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.core.sampling import seeded
from papers.fedsgm.concentration import (
    drift_bound,
    estimate_error,
    gamma_noisy,
    noise_walk,
    noisy_rate,
    square_bound,
)
from papers.fedsgm.noise import (
    FAMILIES,
    batch_noise,
    largest_proxy,
    noise,
    sample_means,
    value_exponent,
)
from papers.fedsgm.problems.sampled import boxed_norms
from papers.fedsgm.theory import Setting, theorem_9
from papers.kit import plot
from papers.kit.claims import check

instances = instances or {"quick": 6, "full": 24}[profile]
rounds = rounds or {"quick": 400, "full": 2000}[profile]
trials = trials or {"quick": 500, "full": 4000}[profile]
seeds = range(seed, seed + instances)
rng = seeded(seed, "rounds")
one = Setting(D=1.0, G=1.0, E=4, T=5, N=8, n=4, delta=0.1)

# %% [markdown]
# **Lemma 3.** The gradient does not turn (a unit vector), $\sigma_\xi=G=1$, $d=3$, four local steps, 8 clients, 5 rounds, $\delta=0.1$. Each trial gives the largest drift sum over its rounds and clients.


# %% tags=["remove-input"]
def drifts(family, count):
    steps = noise(family, (count, 40, 3), 3, rng)  # the step after the last place is not needed
    steps[..., 0] += 1.0
    return steps.cumsum(2).square().sum((2, 3)).amax(1)  # sum over tau, largest of 40


drift = {family: drifts(family, trials) for family in FAMILIES}
limit = drift_bound(one, 1.0, 1.0, "direct")
silent = drift_bound(one, 1.0, 0.0) / 2  # that of Lemma 2

# %% tags=["remove-input", "nbval-check-output"]
for family, sums in drift.items():
    kept = float((sums <= limit).double().mean())
    check(f"{family}: within the bound with 2/3 in at least 90 % of {trials} trials", kept >= 0.9)
check("the printed bound is larger", drift_bound(one, 1.0, 1.0) > limit)
_ = check(
    "Lemma 2's bound, which knows no noise, is missed in more than 10 % by every family",
    all(float((sums <= silent).double().mean()) < 0.9 for sums in drift.values()),
)

# %% [markdown]
# **How small the proxy can be**, for a number $X$ with $\mathbb Ee^{X^2}\le e$ and mean zero, and how small the constant $\frac2{x^2}\log\mathbb E[e^{xR}-xR]$ that Pinelis' inequality needs for a length $R$. For each $x$ linear programming finds the worst distribution on a grid.

# %% tags=["remove-input"]
scan = np.array([0.1, 0.2, 0.3, 0.5, 0.65, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0])
scalar, vector = ([largest_proxy(x, v, points=801)[0] for x in scan] for v in (False, True))

y = np.linspace(-3, 2, 5001)
spare = {c: (y + np.exp(c * y**2) - np.exp(y)).min() for c in (9 / 16, 1 / 2)}

# %% tags=["remove-input", "nbval-check-output"]
check("exp(y) <= y + exp(9/16 y^2) on [-3, 2] (beyond, 9/16 y^2 > y)", spare[9 / 16] >= 0)
check("with 1/2 for 9/16 it fails", spare[1 / 2] < 0)
check("numbers: never above 1, and above 0.99 for small x", 0.99 < max(scalar) <= 1)
check("numbers: falling in x", bool((np.diff(scalar) < 0).all()))
_ = check(
    "lengths: above 1, but never above 1.12 (3/2 is proved)",
    1.1 < max(vector) < 1.12,
)


# %% tags=["remove-input"]
def draw_proxies(fig):
    ax = fig.subplots(subplot_kw={"xlabel": "x", "ylabel": "worst proxy / sigma^2"})
    ax.plot(scan, scalar, "o-", scan, vector, "s-", markersize=4)
    ax.axhline(1.5, color=plot.COLORS[5], linestyle=":")
    ax.legend(["numbers with mean zero", "lengths, for Pinelis' inequality", "3/2"])


plot.show(
    draw_proxies,
    alt="Two curves against x: the worst proxy of a number starts at one and falls; that of a length rises to about 1.11 near "
    "x = 0.65 and falls to the other curve; a dotted line at 1.5 lies above both.",
    caption="The largest proxy that F-A5 (1) allows, by linear programming, and the textbook constant (dotted).",
)

# %% [markdown]
# **Lemma 5.** The sum of $nET=80$ inner products with a unit vector ($\eta=D=1$, $n=4$, scaled by $\frac2n$), against the bound with $\kappa=1$.

# %% tags=["remove-input"]
walks = {f: 0.5 * noise(f, (5 * trials, 80), 1, rng).sum((1, 2)) for f in FAMILIES}
bounds = {kappa: noise_walk(one, 1.0, 1.0, kappa) for kappa in (1.5, 1.0, 0.25)}
reach = {f: float(x.quantile(0.9)) / bounds[1.0] for f, x in walks.items()}

# %% tags=["remove-input", "nbval-check-output"]
for family, ratio in reach.items():
    check(f"{family}: the 90 % quantile of {5 * trials} sums is at most 0.7 of the bound", ratio <= 0.7)
_ = check(
    "with kappa = 1/4 the bound is exceeded (sign)",
    float(walks["sign"].quantile(0.9)) > bounds[0.25],
)

# %% [markdown]
# **Lemma 6.** Sums $X_j$ of norm $EG$ for 40 clients, four take part, five rounds: either half $+$, half $-$ the same vector ("line"), or random directions ("round"), with each family of noise, in dimension 1 (line) and 10 (round). In brackets: the 90 % quantile of the largest $2\lVert\nu_t-s_t\rVert^2$ of five rounds, over F's bound.

# %% tags=["remove-input"]
line = 4 * torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(20)[:, None]
fan = 4 * noise("sphere", (40,), 10, rng)


def squares(sums, family):
    sampled = sums.mean(0) - sample_means(sums, 4, 5 * trials, rng)
    noisy = noise(family, (5 * trials, 16), sums.shape[1], rng).sum(1) / 4
    return 2 * (sampled - noisy).square().sum(1).view(trials, 5).amax(1)


square = {(s, f): squares(x, f) for s, x in (("line", line), ("round", fan)) for f in FAMILIES}
printed, proved = (square_bound(one, 1.0, 1.0, v) for v in ("printed", "proved"))

# %% tags=["remove-input", "nbval-check-output"]
for (shape, family), values in square.items():
    part = float(values.quantile(0.9)) / printed
    check(f"{shape}, {family}: below F's bound", part < 1, f"{part:.1f}")
check("the proved bound is between 1.5 and 1.6 times F's here", 1.5 < proved / printed < 1.6)
_ = check(
    "a fifth of F's bound is exceeded (line, sign)",
    float(square["line", "sign"].quantile(0.9)) > printed / 5,
)

# %% [markdown]
# **Proposition 1**, exactly: for random values of 7 clients with 5 rows each, all samples of 3 clients are listed, and so is what a batch of 2 rows can be. $\sigma$ and $\sigma_b$ are half the ranges of the clients' means and of the rows of a client. The ratio is
# $\log\mathbb Ee^{x(\tilde G-g)}$ over $\frac{x^2}2\cdot\frac1n(\sigma^2+\frac{\sigma_b^2}{N_b})$.

# %% tags=["remove-input"]
table = torch.randn(50, 7, 5, generator=rng, dtype=torch.float64)
ratios, without = [], []
for rows in table:
    sigma_b = float(rows.amax(1).sub(rows.amin(1)).max()) / 2
    sigma = float(rows.mean(1).max() - rows.mean(1).min()) / 2
    for x in (-3.0, -0.3, 0.3, 3.0):
        exponent = value_exponent(rows, 3, 2, x)
        ratios.append(exponent / (x * x / 6 * (sigma**2 + sigma_b**2 / 2)))
        without.append(exponent / (x * x / 6 * sigma**2))
extreme = torch.tensor([[1.0, -1.0]] * 4, dtype=torch.float64)  # no sampling error, random signs
tight = value_exponent(extreme, 4, 2, 0.01) / (0.01**2 / 8 / 2)

# %% tags=["remove-input", "nbval-check-output"]
check(f"ratio at most 1 on {len(ratios)} cases", max(ratios) <= 1)
check("random signs, all clients: ratio 1, to one part in a thousand", abs(tight - 1) < 1e-3)
_ = check("without the term of the batch some case exceeds 1", max(without) > 1)

# %% [markdown]
# **Lemma 8.** Half of 400 clients have the value $1$, the others $-1$. In each of 50 rounds 30 take part, and the noise of a report is the mean of two rows of $\pm1$ ($\sigma=\sigma_b=1$, $N_b=2$); $\delta=0.1$.

# %% tags=["remove-input"]
query = Setting(D=1.0, G=1.0, E=1, T=50, N=400, n=30, sigma=1.0, delta=0.1)
few = trials // 4
signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(200)
batch = noise("sign", (50 * few, 60), 1, rng).mean((1, 2))
wrong = (sample_means(signs, 30, 50 * few, rng) + batch).view(few, 50).abs().amax(1)
within = {k: float((wrong <= k * estimate_error(query, 1.0, 2)).double().mean()) for k in (1, 0.5)}

# %% tags=["remove-input", "nbval-check-output"]
check(f"within the bound in at least 90 % of {few} trials", within[1] >= 0.9)
_ = check("within half of it in fewer than 90 %", within[0.5] < 0.9)

# %% [markdown]
# **Theorem 9 on a stochastic problem.** `boxed_norms` with 8 clients of 40 rows; 4 take part, minibatches of 32 rows with replacement for gradients and for values, a second sample for the query. All constants are known: $G=1$, $D=\sqrt3$, $\sigma=\sigma_b=0.01$. A row's gradient is a unit vector, so its noise is not longer than 2, and the mean of 32
# satisfies F-A5 (1) with $\sigma_\xi=2\sqrt{\frac{2(e+1)}{32(e-1)}}$ (`papers.fedsgm.noise.batch_noise`; Pinelis' inequality again). First, the assumption at random points; then the theorem as printed, corrected, and with our constants.

# %% tags=["remove-input"]
instance = cache(lambda s: boxed_norms(s, rows=40))
sigma_xi, rows = batch_noise(2.0, 32), 32


def row_gradients(problem, w):
    a = problem.data[0][problem.rows[0]]  # of client 0
    return (w - a) / (w - a).norm(dim=-1, keepdim=True)


def exponents(problem, w, level):
    units = row_gradients(problem, w)
    picks = torch.randint(40, (500, rows), generator=rng)
    error = units[picks].mean(1) - units.mean(0)
    return float((error.square().sum(-1) / level**2).exp().mean())


points = [(instance(s), instance(s).w0) for s in seeds] + [(instance(s), instance(s).heldout[0]) for s in seeds]
moments = [exponents(p, w, sigma_xi) for p, w in points]
small = [exponents(p, w, sigma_xi / 12) for p, w in points]
steps = (1, 3)
cases = {E: Setting(D=sqrt(3), G=1.0, E=E, T=rounds, N=8, n=4, sigma=0.01, delta=0.1) for E in steps}
noisy = (sigma_xi, 0.01, rows)
rates = {
    E: {
        "printed": theorem_9(case, *noisy),
        "corrected": theorem_9(case, *noisy, "corrected"),
        "ours": noisy_rate(case, *noisy),
    }
    for E, case in cases.items()
}
fixed = {"participants": 4, "resample_for_update": True, "batch_size": rows, "value_batch_size": rows}


def finals(E):
    grid = [FedSGM(lr=r.lr, local_steps=E, tolerance=r.tolerance, **fixed) for r in rates[E].values()]
    traces = run(grid, instance, rounds=rounds, seeds=seeds, evaluate_every=rounds, progress=False)
    return dict(zip(rates[E], (gaps(torch.as_tensor(t.output)) for t in traces), strict=True))


def gaps(means):
    values = [instance(s).metrics(w, instance(s)) for s, w in zip(seeds, means, strict=True)]
    return np.array([[float(v["f_gap"]), float(v["g"])] for v in values])


measured = {E: finals(E) for E in steps}
start = max(float(instance(s).mean_losses(instance(s).w0)[1]) for s in seeds)

# %% tags=["remove-input", "nbval-check-output"]
check(f"F-A5 (1) at {len(points)} points: E exp(|noise|^2 / sigma_xi^2) <= e", max(moments) <= e)
check("    with a twelfth of sigma_xi it fails somewhere", max(small) > e)
for E in steps:
    for name, rate in rates[E].items():
        share = float((measured[E][name] <= rate.accuracy).all(1).mean())
        check(f"E={E}, {name}: promise met on {share:.0%} of {instances} runs, 90 % wanted", share >= 0.9)
    ours = rates[E]["ours"]
    check(
        "    ours is less than 3/4 of the printed one, and below the largest g at the start",
        ours.accuracy < min(0.75 * rates[E]["printed"].accuracy, start),
        f"promises {ours.accuracy:.2f} and {rates[E]['printed'].accuracy:.2f}, start {start:.2f}",
    )
    check(
        "    half of ours is exceeded by g(w_bar) on more than half of the runs",
        float((measured[E]["ours"][:, 1] > ours.accuracy / 2).mean()) > 0.5,
    )

# %% [markdown]
# **The constants**: {prf:ref}`sto-printed` on a grid of settings, and the limit without noise.

# %% tags=["remove-input", "nbval-check-output"]
grid = [
    (Setting(D=1.0, G=1.0, E=E, T=T, N=N, n=n, delta=delta), level)
    for E in (1, 5, 50)
    for T in (10, 10_000)
    for N, n in ((2, 1), (20, 10), (500, 500))
    for delta in (0.5, 0.001)
    for level in (0.1, 1.0, 4.4, 100.0)
]
smaller = all(gamma_noisy(s, x) <= theorem_9(s, x, 0.0, 1).gamma for s, x in grid)
check(f"Gamma <= G_eff / G^2 on {len(grid)} settings", smaller)
terms = [
    (s, x, theorem_9(s, x, 0.0, 1).accuracy - noisy_rate(s, x, 0.0, 1).accuracy) for s, x in grid
]
kept = [difference > 0 for s, x, difference in terms if x <= 4.4 * sqrt(s.E)]
check(f"ours <= the printed promise where sigma_xi <= 4.4 sqrt(E) G ({len(kept)} settings)", all(kept))
_ = check(
    "without noise Gamma is 3E/2 - 1 (E = 1, 5, 50)",
    all(gamma_noisy(replace(one, E=E), 0.0) == 1.5 * E - 1 for E in (1, 5, 50)),
)

# %% [markdown]
# The cells that make these checks are in {download}`note_stochastic.py <src/note_stochastic.py>`.
