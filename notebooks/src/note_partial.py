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
# # Sampled clients
#
# If only $n$ of the $N$ clients take part in a round, the server steps along the mean of a sample, and compares the mean of a sample with the threshold. Theorem 4 of
# {cite}`fedsgm2025` (F below) pays for the first with a martingale inequality and for the second with a tail bound; Theorems 1 and 7 add compression with error feedback both ways.
# This note proves the three, with the constants as printed, as they hold, and as small as the same argument makes them.
#
# Two findings are worth the reader's time. With one sample for both purposes, which is how F's Algorithm 1 is written, the martingale argument is lost, **and so is the theorem**: there is an instance within all
# other assumptions on which every run misses the promise ({prf:ref}`part-one-sample`). And the promise $g(\bar w)\le\epsilon$ of Theorems 4 and 7 fails if $\epsilon$ is also the threshold
# ({prf:ref}`part-threshold`). Both are cured by small changes.
#
# The notation is that of the notes on hard switching and on compression: $h$ is $f$ on rounds of $\mathcal A$ and $g$ on rounds of $\mathcal B$; $B(\Gamma)$ and $\eta(\Gamma)$ are in {eq}`eq-hard-b`. The papers write $n$ and $m$ for our $N$ and $n$.

# %% [markdown]
# ## Setting
#
# In round $t$ the server draws a set $\mathcal S_t$ of $n$ *distinct* clients, uniformly. It switches on the mean of their values, $\hat G_t=\frac1n\sum_{j\in\mathcal S_t}g_j(w_t)$, so that $\mathcal A=\{t:\hat G_t\le\epsilon\}$. With
# $\Delta_j=\sum_{\tau<E}\nu_{j,\tau}$, the sum of client $j$'s directions, let
#
# $$
# \nu_t=\frac1N\sum_{j\le N}\Delta_j,\qquad\bar\Delta_t=\frac1n\sum_{j\in\mathcal S_t}\Delta_j,\qquad w_{t+1}=\Pi_{\mathcal X}(w_t-\eta\bar\Delta_t) .
# $$ (eq-part-update)
#
# The $\Delta_j$ of clients that do not take part are what they would have computed. $\bar w$ is the mean of the $w_t$, $t\in\mathcal A$.
#
# ```{prf:assumption} F-A1, F-A2, F-A4
# :label: part-assumption
#
# 1. {prf:ref}`hard-assumption`: every $f_j$ and $g_j$ is convex and $G$-Lipschitz. (F asks it on $\mathcal X$ only; local iterates are not projected, so it is needed where they go.)
# 2. $\mathcal X$ is convex and compact, with diameter at most $D$; it contains $w_0$ and a solution $w^*$.
# 3. Given $w_t$, $\hat G_t-g(w_t)$ is $\frac{\sigma^2}n$-sub-Gaussian: $\mathbb E\exp(x(\hat G_t-g(w_t)))\le\exp(\frac{x^2\sigma^2}{2n})$ for all $x$.
# 4. The choice between $f$ and $g$ in round $t$ is independent of the sample that makes the step.
# ```
#
# Point 4 is how F words "constraint evaluation and gradient computation are independent". It holds if a second sample is drawn for the query (`FedSGM(resample_for_update=True)`), not for Algorithm 1 as printed.
# Point 3 is no restriction: if $g_j(w)$ lies for all $j$ in an interval of length $R$, Hoeffding's lemma for samples without replacement gives it with $\sigma=\frac R2$.

# %% [markdown]
# ## The step: Lemma 4
#
# ```{prf:lemma} Hoeffding, without replacement
# :label: part-hoeffding
#
# Let $z_1,\dots,z_N$ be numbers in an interval of length $R$, $\bar z$ their mean and $\bar z_{\mathcal S}$ the mean over a uniform set of $n$ of them. For all $x$,
# $\mathbb E\exp\big(x(\bar z-\bar z_{\mathcal S})\big)\le\exp\big(\tfrac{x^2R^2}{8n}\big)$.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. A convex function of a sum has, for a sample without replacement, an expectation no larger than for one with replacement {cite}`hoeffding1963probability`: the mean over a set without repetition is the conditional
#    expectation of a mean over draws with replacement, suitably arranged, and Jensen's inequality does the rest. So the $n$ draws may be taken independent.
# 2. For one draw, Hoeffding's lemma: $\mathbb E\exp(y(\bar z-z))\le\exp(\frac{y^2R^2}8)$. Put $y=\frac xn$ and multiply $n$ times: the exponent is $n\cdot\frac{x^2R^2}{8n^2}$.
# ```
#
# ```{prf:lemma} F Lemma 4
# :label: part-lemma-4
#
# Under {prf:ref}`part-assumption`, with probability at least $1-\delta$,
#
# $$
# \sum_{t\in\mathcal A}2\eta\,\langle\nu_t-\bar\Delta_t,\,w_t-w^*\rangle\le2\eta EGD\sqrt{\frac{2T}n\log\frac1\delta} ,
# $$ (eq-part-lemma4)
#
# and the same over $\mathcal B$. F prints twice the right side.
# ```
#
# ```{prf:proof}
# Let $\mathcal F_t$ be everything up to $w_t$, with the choice of round $t$.
#
# 1. *One round.* Given $\mathcal F_t$, the numbers $z_j=\langle\Delta_j,w_t-w^*\rangle$ are fixed and $\lvert z_j\rvert\le EG\cdot D$: they lie in an interval of length $R=2EGD$. The sample is uniform given $\mathcal F_t$ (this is point 4). So
#    {prf:ref}`part-hoeffding` with $2\eta x$ for $x$ says that $Y_t=2\eta\langle\nu_t-\bar\Delta_t,w_t-w^*\rangle$ satisfies
#    $\mathbb E[e^{xY_t}\mid\mathcal F_t]\le\exp\big(\frac{x^2s}2\big)$ with $s=\frac{4\eta^2R^2}{4n}=\frac{4\eta^2E^2G^2D^2}n$.
# 2. *All rounds (Azuma).* $\mathbb 1\{t\in\mathcal A\}$ is known given $\mathcal F_t$. Taking conditional expectations from the last round to the first, $\mathbb E\exp\big(x\sum_{t\in\mathcal A}Y_t\big)\le\exp\big(\frac{x^2sT}2\big)$.
# 3. *Tail.* By Markov's inequality at $x=\frac u{sT}$ the sum exceeds $u$ with probability at most $\exp(-\frac{u^2}{2sT})$, which is $\delta$ for $u=\sqrt{2sT\log\frac1\delta}$.
#
# F has 16 in the place of the 4 in $s$: true, and a factor 2 larger in the end.
# ```
#
# The number 4 in $s$ is $(2\eta)^2$ from the left side times $R^2=(2EGD)^2$, over the 4 that Hoeffding's lemma has.

# %% [markdown]
# ## The query: Lemma 7
#
# ```{prf:lemma} F Lemma 7
# :label: part-lemma-7
#
# Under point 3 of {prf:ref}`part-assumption`, with probability at least $1-\delta$, in all rounds,
#
# $$
# \lvert\hat G_t-g(w_t)\rvert\le\sigma\sqrt{\frac2n\log\frac{2T}\delta} .
# $$ (eq-part-lemma7)
# ```
#
# ```{prf:proof}
# A $v$-sub-Gaussian variable exceeds $u$ with probability at most $\exp(-\frac{u^2}{2v})$, and so does its negative. With $v=\frac{\sigma^2}n$ and $u$ the right side of {eq}`eq-part-lemma7`, each of the two has probability $\frac\delta{2T}$. Add up the $2T$ events.
# ```

# %% [markdown]
# ## Theorem 4
#
# ```{prf:theorem} F Theorem 4, as it can be proved
# :label: part-theorem-4
#
# Under {prf:ref}`part-assumption`, run without compression, with hard switching, $\Gamma=2E^2$, $\eta=\eta(\Gamma)$, and let
#
# $$
# b=B(\Gamma)+\frac{2GD}{\sqrt{nT}}\sqrt{2\log\frac3\delta},\qquad r=\sigma\sqrt{\frac2n\log\frac{6T}\delta} .
# $$ (eq-part-b)
#
# With the threshold $\epsilon_1=b+r$, and with probability at least $1-\delta$: $\mathcal A$ is not empty, $f(\bar w)-f(w^*)\le b$, and $g(\bar w)\le b+2r$. The same holds for $\Gamma_{\rm direct}=\frac{3E}2-1$.
# ```
#
# The printed theorem has $4GD$ for $2GD$ (from Lemma 4), the threshold $\epsilon=b+2r$, and claims $g(\bar w)\le\epsilon$.
#
# ```{prf:proof}
# In steps.
#
# 1. *One round.* Projection is nonexpansive and $w^*\in\mathcal X$: $\lVert w_{t+1}-w^*\rVert^2\le\lVert w_t-w^*\rVert^2-2\eta\langle w_t-w^*,\bar\Delta_t\rangle+\eta^2\lVert\bar\Delta_t\rVert^2$. Write $\bar\Delta_t=\nu_t-(\nu_t-\bar\Delta_t)$ in the middle.
#    The product with $\nu_t$ is that of {prf:ref}`hard-lemma-round`, and $\lVert\bar\Delta_t\rVert\le EG$ as there. Hence {eq}`eq-hard-round` holds with $Y_t$ of the proof of Lemma 4 added on the right.
# 2. *All rounds.* Sum, telescope, divide by $2\eta ET$. The additional terms are $\sum_{\mathcal A}Y_t+\sum_{\mathcal B}Y_t$, by Lemma 4, used twice with $\frac\delta3$, at most $2\cdot2\eta EGD\sqrt{\frac{2T}n\log\frac3\delta}$. Divided by $2\eta ET$ this is the second term of $b$:
#
#    $$
#    \frac1T\sum_{t\in\mathcal A}\big(f(w_t)-f(w^*)\big)+\frac1T\sum_{t\in\mathcal B}\big(g(w_t)-g(w^*)\big)\le b .
#    $$ (eq-part-regret)
#
# 3. *From $\hat G$ to $g$.* Lemma 7 with $\frac\delta3$ has the radius $r$. For $t\in\mathcal B$, $g(w_t)\ge\hat G_t-r>\epsilon_1-r=b$. For $t\in\mathcal A$, $g(w_t)\le\epsilon_1+r$.
# 4. *Conclusion.* Each round of $\mathcal B$ contributes more than $\frac bT$ to {eq}`eq-part-regret`, as $g(w^*)\le0$. If all rounds were in $\mathcal B$ the left side would exceed $b$. Otherwise $\sum_{\mathcal A}(f(w_t)-f(w^*))\le Tb-\lvert\mathcal B\rvert b=\lvert\mathcal A\rvert b$; use Jensen's inequality for $f$ and, with $g(w_t)\le b+2r$, for $g$.
#
# The three uses of $\frac\delta3$ are the three events: Lemma 4 on $\mathcal A$, on $\mathcal B$, and Lemma 7. They give $\log\frac3\delta$ and $\log\frac{2T}{\delta/3}=\log\frac{6T}\delta$.
# ```
#
# With a threshold $\epsilon\ge\epsilon_1$, step 3 gives $g(\bar w)\le\epsilon+r$ and nothing better:
#
# ```{prf:lemma} The threshold is not the promise
# :label: part-threshold
#
# There are problems that satisfy {prf:ref}`part-assumption`, on which runs with the printed threshold $\epsilon$ of Theorem 4 end with $g(\bar w)>\epsilon$.
# ```
#
# ```{prf:proof}
# (By construction; the cell below runs it.) One dimension, $n=1$ of $N=10$; all gradients are the same for all clients, $f_j'=-0.15$ and $g_j'=0.3$, but nine clients report $g-s$ and one reports $g+9s$. The sample then decides the switch and nothing else, so point 4 holds.
# While $\epsilon<g(w_t)\le\epsilon+s$, nine rounds in ten are in $\mathcal A$ and push $g$ up by $0.3\cdot0.15\,\eta$, one in ten is in $\mathcal B$ and pushes it down by $0.3\cdot0.3\,\eta$: the mean drift is upwards, and $g(w_t)$ settles below $\epsilon+s$, where all clients
# report more than $\epsilon$.
# ```

# %% [markdown]
# ## One sample for the query and the step
#
# In Algorithm 1 the clients that report $g_j(w_t)$ also make the step. Then $\mathbb 1\{t\in\mathcal A\}$ depends on $\mathcal S_t$, and step 1 of the proof of Lemma 4 fails: given that the sample says "the constraint is met", it is not a uniform sample.
#
# ```{prf:lemma} One sample is not enough
# :label: part-one-sample
#
# There are problems with $D,G\le1$ that satisfy points 1 to 3 of {prf:ref}`part-assumption`, and on which Algorithm 1 with one sample misses the promise $f(\bar w)-f(w^*)\le\epsilon$ of Theorem 4, for large enough $T$, with probability near 1.
# ```
#
# ```{prf:proof}
# (By construction, and run below.) Two clients, $n=1$, linear losses in a square, $g_1=g-s$ and $g_2=g+s$ with a small $s$. The constraint of both pushes to the left. The objective of client 1 pulls to the right and *up*, that of client 2 to the left and, more strongly, down; their mean
# pulls to the right and down. So $w_t$ moves right until $g$ is near the threshold. As long as $\lvert g(w_t)-\epsilon\rvert<s$, the round is in $\mathcal A$ exactly if client 1 is drawn: client 2 never works on its objective, and the model goes *up*. The steps are of length $\eta\sim T^{-1/2}$, so for
# large $T$ the model hardly leaves this band, whose width does not depend on $T$; while the promise, $\frac{12.4}{\sqrt T}+2r$ at $\delta=0.1$, comes down towards $2r=2s\sqrt{2\log(6T/\delta)}$, which is small if $s$ is.
# ```
#
# What survives without the second sample is a bound with a term that does not vanish.
#
# ```{prf:theorem} Algorithm 1 as printed (ours)
# :label: part-theorem-one-sample
#
# Under points 1 to 3 of {prf:ref}`part-assumption`, without compression, with $b=B(\Gamma)+GD\sqrt{\frac2n\log\frac{4T}\delta}$, $r=\sigma\sqrt{\frac2n\log\frac{4T}\delta}$ and the threshold $b+r$, the conclusion of {prf:ref}`part-theorem-4` holds.
# ```
#
# ```{prf:proof}
# For each round and for $h=f$ as well as $h=g$, $\mathcal S_t$ is uniform given $w_t$, and step 1 of the proof of Lemma 4 gives $\langle\nu_t-\bar\Delta_t,w_t-w^*\rangle\le EGD\sqrt{\frac2n\log\frac{2T}{\delta'}}$ with probability at least $1-\frac{\delta'}{2T}$: the $2T$ events hold together with probability
# $1-\delta'$, whichever of $f$ and $g$ the sample then chooses. So $\frac1{2\eta ET}\sum Y_t\le GD\sqrt{\frac2n\log\frac{2T}{\delta'}}$. Take $\delta'=\frac\delta2$, and Lemma 7 with $\frac\delta2$. The rest is as before.
# ```

# %% [markdown]
# ## Compression: residuals and messages
#
# Now clients keep residuals $e_j$ and the server a gap, as in {eq}`eq-comp-up` and {eq}`eq-comp-down`, with a projection:
# $x_{t+1}=\Pi_{\mathcal X}(x_t-\eta v_t)$, $v_t=\frac1n\sum_{j\in\mathcal S_t}v_j$, $w_{t+1}=w_t+\mathcal C_0(x_{t+1}-w_t)$. The compressors are deterministic, $\lVert\mathcal C(x)-x\rVert\le\sqrt{1-q}\,\lVert x\rVert$. Write $\varrho=\sqrt{1-q}$ and $\varrho_0=\sqrt{1-q_0}$.
# {prf:ref}`comp-lemma-residual` works with squares, because it allows random compressors. For deterministic ones the triangle inequality is simpler and better.
#
# ```{prf:lemma} F Lemma 9, and two companions
# :label: part-lemma-9
#
# Let $\tilde e_t=\frac1n\sum_{j\le N}e_j^t$ (over *all* clients) and $\hat e_t=x_t-w_t$. In every round,
#
# $$
# \begin{aligned}
# \lVert e_j^t\rVert&\le\frac\varrho{1-\varrho}EG\le\frac{2\sqrt{1-q}}qEG,\qquad\lVert\tilde e_t\rVert\le\frac Nn\cdot\frac\varrho{1-\varrho}EG,\\
# \lVert v_t\rVert&\le\frac{1+\varrho}{1-\varrho}EG,\qquad\quad\lVert\hat e_t\rVert\le\frac{\varrho_0}{1-\varrho_0}\cdot\frac{1+\varrho}{1-\varrho}\,\eta EG .
# \end{aligned}
# $$ (eq-part-lemma9)
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. A participant's new residual is what its compressor leaves out: $\lVert e_j\rVert\leftarrow\lVert y-\mathcal C(y)\rVert\le\varrho(\lVert e_j\rVert+EG)$ with $y=e_j+\Delta_j$. Others keep theirs. If $\lVert e_j\rVert\le\frac\varrho{1-\varrho}EG$ then the right side is at most $\varrho\big(\frac\varrho{1-\varrho}+1\big)EG=\frac\varrho{1-\varrho}EG$ again.
# 2. $\frac\varrho{1-\varrho}=\frac{\varrho(1+\varrho)}{1-\varrho^2}=\frac{\varrho(1+\varrho)}q\le\frac{2\varrho}q$: F's constant. The mean over all clients, times $\frac Nn$, is the bound of $\tilde e_t$.
# 3. $\lVert\mathcal C(y)\rVert\le(1+\varrho)\lVert y\rVert\le(1+\varrho)\big(\frac\varrho{1-\varrho}+1\big)EG=\frac{1+\varrho}{1-\varrho}EG$.
# 4. As $x_t\in\mathcal X$, $\lVert x_{t+1}-x_t\rVert\le\eta\lVert v_t\rVert$, and $\hat e_{t+1}$ is what $\mathcal C_0$ leaves out of $x_{t+1}-w_t=\hat e_t+(x_{t+1}-x_t)$. This is step 1 with $\varrho_0$ for $\varrho$ and $\eta\lVert v_t\rVert$ for $EG$.
# ```
#
# F's proof has $\lVert v_t\rVert\le\frac{\sqrt{40}}qEG$ and $\lVert\hat e_t\rVert\le\frac{2\varrho_0}{q_0}\cdot\frac{\sqrt{40}}q\eta EG$ instead, since $\frac{1+\varrho}{1-\varrho}=\frac{(1+\varrho)^2}q\le\frac4q$.

# %% [markdown]
# ## Theorems 1 and 7
#
# ```{prf:theorem} F Theorem 1 (sampled clients) and Theorem 7, as they can be proved
# :label: part-theorem-1
#
# Let {prf:ref}`part-assumption` hold, let the compressors be deterministic, and let all $w_t$ lie in $\mathcal X$. With hard switching, $\eta=\eta(\Gamma)$,
#
# $$
# \begin{aligned}
# b&=B(\Gamma)+\frac Nn\cdot\frac{2DG\sqrt{1-q}}{qT}+\frac{2GD}{\sqrt{nT}}\sqrt{2\log\frac3\delta},\\
# r&=\sigma\sqrt{\frac2n\log\frac{6T}\delta}
# \end{aligned}
# $$ (eq-part-b1)
#
# and the threshold $b+r$, with probability at least $1-\delta$: $\mathcal A$ is not empty, $f(\bar w)-f(w^*)\le b$ and $g(\bar w)\le b+2r$. This holds with the $\Gamma$ of {eq}`eq-comp-gamma-partial`, hence with the larger one of F Theorem 1; and, with $\frac\varrho{1-\varrho}$ for
# $\frac{2\sqrt{1-q}}q$ in $b$, with
#
# $$
# \Gamma=E-1+\frac E2\mu^2+E\mu\,\frac{\varrho_0}{1-\varrho_0}+\frac Nn\,E\mu\,\frac\varrho{1-\varrho},\qquad\mu=\frac{1+\varrho}{1-\varrho} .
# $$ (eq-part-gamma)
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. *Direct expansion.* A virtual iterate is of no use here: projection breaks it. Instead, $\lVert x_{t+1}-w^*\rVert^2\le\lVert x_t-w^*\rVert^2-2\eta\langle x_t-w^*,v_t\rangle+\eta^2\lVert v_t\rVert^2$.
# 2. *Three products.* {prf:ref}`comp-lemma-cancel` writes the cross term as
#
#    $$
#    -2\eta\langle w_t-w^*,\bar\Delta_t\rangle-2\eta\langle x_t-w^*,\tilde e_t-\tilde e_{t+1}\rangle-2\eta\langle\hat e_t,\bar\Delta_t\rangle ;
#    $$ (eq-part-products)
#
#    its key is $v_t=\bar\Delta_t+\tilde e_t-\tilde e_{t+1}$, {eq}`eq-comp-partial`: those who do not take part keep their residuals.
# 3. *First product.* As in Theorem 4, with Lemma 4: it needs $\lVert w_t-w^*\rVert\le D$. The local steps cost $2\eta^2EG^2(\Gamma_0-\frac E2)$, or $2\eta^2EG^2(E-1)$ by {prf:ref}`hard-lemma-direct`, where the square term $\frac E2$ is counted apart.
# 4. *Third product.* At most $2\eta\lVert\hat e_t\rVert EG$. By {prf:ref}`part-lemma-9`, divided by $2\eta E\cdot\eta G^2$: $E\mu\frac{\varrho_0}{1-\varrho_0}$.
# 5. *Second product: summation by parts.* With $\tilde e_0=0$,
#
#    $$
#    -\sum_{t=0}^{T-1}\langle x_t-w^*,\tilde e_t-\tilde e_{t+1}\rangle=\langle x_{T-1}-w^*,\tilde e_T\rangle-\sum_{t=1}^{T-1}\langle x_t-x_{t-1},\tilde e_t\rangle .
#    $$ (eq-part-abel)
#
#    *Boundary term.* It is at most $D\lVert\tilde e_T\rVert$; times $2\eta$ and divided by $2\eta ET$ it is $\frac Nn\frac{DG}T\cdot\frac{2\varrho}q$, the second term of $b$.
#    *The sum.* $\lVert x_t-x_{t-1}\rVert\le\eta\lVert v_{t-1}\rVert$, so a round costs $2\eta^2\cdot\mu EG\cdot\frac Nn\frac\varrho{1-\varrho}EG$: the last term of $\Gamma$.
# 6. *Square term.* $\eta^2\lVert v_t\rVert^2\le\eta^2\mu^2E^2G^2$, divided by $2\eta^2EG^2$: $\frac E2\mu^2$.
# 7. Sum over the rounds; $x_0=w_0$. This is {eq}`eq-part-regret` with the $b$ of the theorem, for the points $w_t$ at which the switch looks. Steps 3 and 4 of the proof of {prf:ref}`part-theorem-4` finish it.
#
# With F's constants in steps 4 to 6, $\frac{2\varrho_0}{q_0}\cdot\frac{\sqrt{40}}q$, $\frac{\sqrt{40}}q\cdot\frac{2\varrho}q$ and $\frac{40}{q^2}$, the terms are $\frac{4E\sqrt{10(1-q_0)}}{q_0q}$, $\frac Nn\frac{4E\sqrt{10(1-q)}}{q^2}$ and $\frac{20E}{q^2}$, those of {eq}`eq-comp-gamma-partial`.
# ```
#
# At $q=q_0=1$, {eq}`eq-part-gamma` is $\frac{3E}2-1$: the theorem becomes Theorem 4. Neither the printed $\Gamma$ nor {eq}`eq-comp-gamma-partial` does, since $\frac{20E}{q^2}$ stays.
#
# *If $w_t$ leaves $\mathcal X$.* Only $x_t$ is projected. If $\mathcal X$ is a box and $\mathcal C_0$ is Top-K or unscaled Rand-K, every coordinate of $w_{t+1}$ is one of $x_{t+1}$ or of $w_t$, and $w_t$ stays. In a ball it need not. As $\lVert w_t-x_t\rVert=\lVert\hat e_t\rVert$, the proof remains true with
# $D+\frac{\varrho_0}{1-\varrho_0}\mu\,\eta EG$ for $D$ in Lemma 4, provided the losses are Lipschitz outside: the harm is of the order of $\eta$, and vanishes as $T$ grows.

# %% [markdown]
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **One sample for both** (Algorithm 1 against F-A4): {prf:ref}`part-one-sample`. Not a matter of taste: the promise is missed. A second sample, or a term that does not vanish ({prf:ref}`part-theorem-one-sample`), repairs it.
# * **The bound on $g(\bar w)$ comes in four versions**: the contribution list adds $2r$ to $\epsilon$, Theorem 1 adds $\sqrt{\frac{3\sigma^2}n\log\frac T\delta}$, Theorems 4 and 7 add nothing, and the proofs use a threshold with the coefficient 1 of $r$ where the statement has 2. Consistent is: threshold $\epsilon_1=b+r$, promise $b+2r$.
#   With the printed threshold $b+2r$ what holds is $g(\bar w)\le b+3r$. Theorem 1's term is at least $r$ exactly if $3\log\frac T\delta\ge2\log\frac{6T}\delta$, that is $\frac T\delta\ge36$, so in practice it is true.
# * **With replacement** (Theorem 7 says so; Theorems 1 and 4 say distinct). A client drawn twice sends its message twice but changes its residual once, and {eq}`eq-comp-partial` fails.
# * **$w_t\in\mathcal X$** is used in Lemma 4 and not ensured, except in a box with coordinate-wise compressors.
# * **F Theorem 7** prints $\sqrt{1-q}$ for $\sqrt{1-q_0}$ in its third term, and the proof uses $\lVert v_t\rVert\le2EG$, which is false: {prf:ref}`comp-lemma-counterexample` and what follows there.
# * **F Lemma 9** prints $\sqrt{4(1-q)}\,E^2G^2/q$; the square does not belong there. For $EG<1$ the printed bound is exceeded.
# * **F Theorem 1 (ii)**, all clients, prints $g(\bar w)-g(w^*)\le\epsilon$; what follows is $g(\bar w)\le\epsilon$. The printed one fails where the constraint is slack at the solution.
# * **No reduction.** At $q=q_0=1$ the printed $\Gamma$ is $2E^2+20E$. {eq}`eq-part-gamma` reduces.
# ```

# %% [markdown]
# ## Checks
#
# Problems are `papers.fedsgm.problems.sampled`: sums of distances in a cube of side 1 ($G=1$, $D=\sqrt3$), whose constraint values differ from client to client by at most $2\sigma$, and linear losses for the two counterexamples.

# %% tags=["parameters", "remove-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the first instance
instances = None  # number of random instances; None: 48 in the full profile, 9 in the quick one
rounds = None  # T of the theorems; None: 1000 in the full profile, 200 in the quick one
trials = None  # of each Monte Carlo experiment; None: 20000 in the full profile, 2000 in the quick one

# %% tags=["remove-input"]
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate
from math import sqrt

import numpy as np
import torch
from torch.func import vmap

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.compress import Identity, RandK, TopK
from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.sets import Ball, Box
from papers.fedsgm.concentration import (
    estimate_error,
    gamma_sampled,
    residual_bound,
    sampled_rate,
    sampling_walk,
)
from papers.fedsgm.gamma import gamma_local, gamma_partial, gamma_partial_direct
from papers.fedsgm.noise import sample_means
from papers.fedsgm.problems.norms import norms, random_norms
from papers.fedsgm.problems.sampled import boxed_norms, skewed_levels, split_objectives
from papers.fedsgm.theory import Setting, theorem_1_partial, theorem_4, theorem_6, theorem_7
from papers.kit import plot
from papers.kit.claims import check

instances = instances or {"quick": 9, "full": 48}[profile]
rounds = rounds or {"quick": 200, "full": 1000}[profile]
trials = trials or {"quick": 2000, "full": 20000}[profile]
seeds = range(seed, seed + instances)
instance = cache(boxed_norms)  # its reference solution is computed once
rng = seeded(seed, "rounds")

# %% [markdown]
# **Lemma 4.** Half of 40 clients have the inner product $+EGD$, half $-EGD$, four take part, 100 rounds, $\eta=E=G=D=1$. The indicator of $\mathcal A$ is a coin ("coin"), one in every round ("always"), or depends on the past: the sum so far is not above 0 ("past").

# %% tags=["remove-input"]
plain = Setting(D=1.0, G=1.0, E=1, T=100, N=40, n=4, delta=0.1)
signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(20)
moves = -2 * sample_means(signs, 4, 100 * trials, rng).view(trials, 100)
coin = torch.rand(trials, 100, generator=rng) < 0.5
follow = lambda s, move: s + (s <= 0) * move
sums = {
    "always": moves.sum(1),
    "coin": (moves * coin).sum(1),
    "past": list(accumulate(moves.T, follow, initial=torch.zeros(trials)))[-1],
}
walks = {proxy: sampling_walk(plain, 1.0, proxy) for proxy in (16, 4, 1)}
quantile = {name: float(x.quantile(0.9)) for name, x in sums.items()}

# %% tags=["remove-input", "nbval-check-output"]
for name, measured in quantile.items():
    check(f"{name}: 90 % quantile of {trials} sums <= Hoeffding's bound", measured <= walks[4])
check(
    "F's bound is twice Hoeffding's, and more than 3 times the largest of the three quantiles",
    walks[16] == 2 * walks[4] and walks[16] > 3 * max(quantile.values()),
)
_ = check(
    "a proxy four times smaller than Hoeffding's is exceeded (always)",
    quantile["always"] > walks[1],
)

# %% tags=["remove-input"]
levels = np.geomspace(0.5, 0.01, 30)
reached = np.quantile(sums["always"].numpy(), 1 - levels)
lines = {
    f"proxy {proxy}": [sampling_walk(replace(plain, delta=float(x)), 1.0, proxy) for x in levels]
    for proxy in walks
}


def draw_quantiles(fig):
    ax = fig.subplots(subplot_kw={"xscale": "log", "xlabel": "delta", "ylabel": "sum of 100 rounds"})
    ax.plot(levels, np.transpose(list(lines.values())), label=list(lines))
    ax.plot(levels, reached, ".", color=plot.COLORS[4], label="measured")
    ax.legend()


plot.show(
    draw_quantiles,
    alt="Against delta on a logarithmic axis: three falling curves, the bounds with proxy 16, 4 and 1 from top to bottom, and dots of "
    "measured quantiles, which lie below proxy 4 everywhere and, for delta below 0.15, above proxy 1.",
    caption="Quantiles of the sum in Lemma 4 at level 1 - delta, against the bounds with F's proxy 16, Hoeffding's 4, and 1.",
)

# %% [markdown]
# **Lemma 7.** Values $\pm\sigma$ for halves of 400 clients, 30 take part, 100 rounds.

# %% tags=["remove-input"]
query = Setting(D=1.0, G=1.0, E=1, T=100, N=400, n=30, sigma=1.0, delta=0.1)
few = trials // 10
errors = sample_means(signs.repeat(10), 30, 100 * few, rng).view(few, 100).abs().amax(1)
kept = float((errors <= estimate_error(query)).double().mean())
half = float((errors <= estimate_error(query) / 2).double().mean())

# %% tags=["remove-input", "nbval-check-output"]
check(f"largest error of 100 rounds within the bound in at least 90 % of {few} trials", kept >= 0.9)
_ = check("within half the bound in fewer than 90 %", half < 0.9)

# %% [markdown]
# **One sample for both: the increment.** On `split_objectives`, at a point with $g(w)=\epsilon$, all samples can be listed, and the mean of $\mathbb 1\{\mathcal S\text{ says }\mathcal A\}\langle\nu-\bar\Delta_{\mathcal S},w-w^*\rangle$ (for $f$) is computed exactly, with the sample itself as
# judge, and with another one.

# %% tags=["remove-input"]
split = split_objectives()
w = torch.tensor([0.1, 0.35], dtype=torch.float64)  # any point; the threshold is put at g(w)
values = vmap(split.losses, in_dims=(None, 0))(w, split.all_clients())[:, 1]
says_a = (values <= values.mean()).double()  # of each sample of one client
gradients = split.data[0]
deviation = (gradients.mean(0) - gradients) @ (w - split.heldout[0])
same, other = (says_a * deviation).mean(), says_a.mean() * deviation.mean()
who = torch.randint(2, (3000,), generator=rng)
path = torch.cumsum(2 * (says_a * deviation)[who], 0)  # lr = 1
wall = sampling_walk(Setting(D=1.0, G=1.0, E=1, T=3000, N=2, n=1, delta=1e-6), 1.0)

# %% tags=["remove-input", "nbval-check-output"]
check("its mean is 0 if another sample judges, to 1e-12", abs(other) < 1e-12)
check("its mean is above 0.1 if the same sample judges", same > 0.1)
_ = check(
    "the sum of 3000 rounds with one sample exceeds Lemma 4's bound, as printed, at delta = 1e-6",
    path[-1] > wall,
)

# %% [markdown]
# **One sample for both: the theorem.** FedSGM on the same problem with the step size and the threshold of Theorem 4, corrected. $D=G=1$ are upper bounds, $\sigma=s$ is exact.

# %% tags=["remove-input"]
T, delta, repeats = {"quick": (6_000, 0.5, 2), "full": (20_000, 0.1, 10)}[profile]
case = Setting(D=1.0, G=1.0, E=1, T=T, N=2, n=1, sigma=0.003, delta=delta)
rate = theorem_4(case, "corrected")
once = FedSGM(lr=rate.lr, local_steps=1, participants=1, tolerance=rate.tolerance)
twice = replace(once, resample_for_update=True)
how = {"rounds": T, "seeds": range(repeats), "evaluate_every": T // 50, "progress": False}
paths = {"one sample": run(once, split, **how), "a second sample": run(twice, split, **how)}


def ends(problem, trace):
    values = [problem.metrics(torch.as_tensor(w), problem) for w in trace.output]
    return [np.array([float(v[k]) for v in values]) for k in ("f_gap", "g")]


gap = {name: ends(split, trace)[0] for name, trace in paths.items()}

# %% tags=["remove-input", "nbval-check-output"]
check(
    f"one sample: the promise for f, meant for {1 - delta:.0%} of the runs, is missed on all {repeats} (T = {T})",
    (gap["one sample"] > rate.accuracy).all(),
)
check(
    f"a second sample: it is met on all {repeats}",
    (gap["a second sample"] <= rate.accuracy).all(),
)
_ = check(
    "the bound for one sample is larger than any gap there can be, and is met",
    sampled_rate(case, one_sample=True).accuracy > 1 > gap["one sample"].max(),
)


# %% tags=["remove-input"]
def draw_paths(fig):
    ax = fig.subplots(subplot_kw={"ylabel": "f(w_t) - f*"})
    plot.bands(ax, paths, "f_gap")
    plot.level(ax, rate.accuracy, "promise of Theorem 4")
    ax.legend()


plot.show(
    draw_paths,
    alt="Objective gap against rounds: with one sample it stays near 0.2, above a dotted line, the promise; with a second sample it falls "
    "quickly below the line and settles slightly below zero.",
    caption="The two-client problem: the clients that judge the constraint also step, or a second sample steps.",
)

# %% [markdown]
# **The threshold is not the promise.** `skewed_levels` with the printed threshold of Theorem 4; $\sigma$ is half the length of the interval of the ten values.

# %% tags=["remove-input"]
T, s = {"quick": 4_000, "full": 10_000}[profile], 0.001
skew = skewed_levels(10, s)
case = Setting(D=1.0, G=1.0, E=1, T=T, N=10, n=1, sigma=10 * s / 2, delta=0.1)
printed, fixed = theorem_4(case), theorem_4(case, "corrected")
some = range({"quick": 2, "full": 20}[profile])
more = {"rounds": T, "seeds": some, "evaluate_every": T, "progress": False}
common = {"local_steps": 1, "participants": 1, "resample_for_update": True}
g_end = {
    rate: ends(skew, run(FedSGM(lr=rate.lr, tolerance=rate.tolerance, **common), skew, **more))[1]
    for rate in (printed, fixed)
}

# %% tags=["remove-input", "nbval-check-output"]
check(
    f"printed threshold: g(w_bar) > eps + s/2 on all {len(some)} runs, promised is g <= eps on 90 %",
    (g_end[printed] > printed.tolerance + s / 2).all(),
)
check(
    f"g(w_bar) <= eps + r on all {len(some)} runs",
    (g_end[printed] <= 2 * printed.tolerance - fixed.tolerance).all(),
)
_ = check(
    f"corrected threshold: g(w_bar) <= the promise on all {len(some)} runs",
    (g_end[fixed] <= fixed.accuracy).all(),
)

# %% [markdown]
# **Theorem 4 on random instances**, 4 of 8 clients, a second sample for the query, $\delta=0.1$, $\sigma=0.01$: as printed, corrected, and with our smaller constants.


# %% tags=["remove-input"]
def promised(rates, local_steps, T, **compressors):
    grid = [
        FedSGM(r.lr, local_steps, 4, r.tolerance, resample_for_update=True, **compressors)
        for r in rates.values()
    ]
    return dict(zip(rates, run(grid, instance, rounds=T, seeds=seeds, progress=False), strict=True))


def finals(trace):
    pairs = [ends(instance(s), replace(trace, output=w[None])) for s, w in zip(seeds, trace.output, strict=True)]
    return np.array(pairs)[..., 0].T  # f gaps, g


def kept_share(trace, accuracy):
    return float((finals(trace) <= accuracy).all(0).mean())


box = partial(Setting, D=sqrt(3), G=1.0, N=8, n=4, sigma=0.01, delta=0.1)
start = max(float(instance(s).mean_losses(instance(s).w0)[1]) for s in seeds)
exact, results = {}, {}
for E in (1, 5):
    setting = box(E=E, T=rounds)
    exact[E] = {
        "printed": theorem_4(setting),
        "corrected": theorem_4(setting, "corrected"),
        "ours": sampled_rate(setting),
    }
    results[E] = promised(exact[E], E, rounds)

# %% tags=["remove-input", "nbval-check-output"]
for E, rates in exact.items():
    for name, rate in rates.items():
        share = kept_share(results[E][name], rate.accuracy)
        check(f"E={E}, {name}: promise met on {share:.0%} of {instances} runs, 90 % wanted", share >= 0.9)
    check(
        "    ours is less than 2/3 of the printed one, and below the largest g at the start",
        rates["ours"].accuracy < min(2 / 3 * rates["printed"].accuracy, start),
        f"promises {rates['ours'].accuracy:.2f} and {rates['printed'].accuracy:.2f}, start {start:.2f}",
    )
    check(
        "    half of ours is exceeded by g(w_bar) on more than half of the runs",
        kept_share(results[E]["ours"], rates["ours"].accuracy / 2) < 0.5,
    )

# %% [markdown]
# **Theorem 1 with sampled clients**: Top-K with $K=2$ of 3 both ways, four times as many rounds.

# %% tags=["remove-input"]
setting = box(E=1, T=4 * rounds, q=2 / 3, q0=2 / 3)
packed = {
    "printed": theorem_1_partial(setting),
    "corrected": theorem_1_partial(setting, "corrected"),
    "ours": sampled_rate(setting),
}
two = {"uplink": TopK(2 / 3), "downlink": TopK(2 / 3)}
squeezed = promised(packed, 1, 4 * rounds, **two)

# %% tags=["remove-input", "nbval-check-output"]
for name, rate in packed.items():
    share = kept_share(squeezed[name], rate.accuracy)
    check(f"{name}: promise met on {share:.0%} of {instances} runs, 90 % wanted", share >= 0.9)
_ = check(
    "ours is less than half of the printed one, and below the largest g at the start",
    packed["ours"].accuracy < min(packed["printed"].accuracy / 2, start),
    f"promises {packed['ours'].accuracy:.2f} and {packed['printed'].accuracy:.2f}, start {start:.2f}",
)

# %% [markdown]
# **Lemma 9** on runs of FedSGM: 20 clients, $d=20$, $E=5$, Top-K up, 60 rounds; the largest $\lVert\tilde e_t\rVert$, with F's bound and ours. In brackets: measured, ours, F's.


# %% tags=["remove-input"]
def walk(algorithm, problem, steps=60):
    draws = [algorithm.draw(problem, seeded(seed + t, "rounds")) for t in range(steps)]
    play = lambda state, draw: algorithm.round(Vectorized(problem), state, draw)[0]
    return list(accumulate(draws, play, initial=algorithm.init(problem)))


crowd = random_norms(seed, clients=20, dim=20)
cases = {(0.1, 10): (), (0.1, 2): (), (0.5, 10): ()}
for q, n in cases:
    algorithm = FedSGM(lr=0.05, local_steps=5, participants=n, tolerance=0.1, uplink=TopK(q))
    largest = max(float(state.residual.sum(0).norm()) / n for state in walk(algorithm, crowd))
    bounds = [residual_bound(5, 1.0, q, 20 / n, v) for v in ("direct", "corrected")]
    cases[q, n] = (largest, *bounds)

# %% tags=["remove-input", "nbval-check-output"]
for (q, n), (largest, direct, corrected) in cases.items():
    check(
        f"q={q}, n={n}: residual <= ours <= F's",
        largest <= direct <= corrected,
        f"{largest:.0f}, {direct:.0f}, {corrected:.0f}",
    )
still, e = torch.full((20,), 0.1 / sqrt(20), dtype=torch.float64), torch.zeros(20).double()
for _ in range(100):  # one client, the same step of norm EG = 0.1 in every round
    e = e + still - TopK(0.1)(e + still)
_ = check(
    "EG = 0.1, one client: the residual exceeds Lemma 9 as printed, and keeps the corrected bound",
    residual_bound(1, 0.1, 0.1, 1.0, "printed") < e.norm() <= residual_bound(1, 0.1, 0.1, 1.0),
)

# %% [markdown]
# **With replacement.** One round from a state with residuals, in which client 0 is drawn twice, against one with distinct clients: what is left of {eq}`eq-comp-partial`, $v_t-\bar\Delta_t-\tilde e_t+\tilde e_{t+1}$.

# %% tags=["remove-input"]
algorithm = FedSGM(lr=0.05, local_steps=2, participants=2, tolerance=0.1, uplink=TopK(0.1))
state, fed = walk(algorithm, crowd, 20)[-1], Vectorized(crowd)
bare = replace(algorithm, uplink=Identity())


def left_over(clients):
    draw = algorithm.draw(crowd, rng)._replace(participants=torch.tensor(clients))
    after, step = algorithm.round(fed, state, draw)[0], bare.round(fed, state, draw)[0].x - state.x
    moved = (after.x - state.x - step) / -algorithm.lr  # v - mean of the Deltas
    return float((moved - (state.residual - after.residual).sum(0) / 2).norm())


# %% tags=["remove-input", "nbval-check-output"]
check("distinct clients 0 and 1: nothing, to 1e-10", left_over([0, 1]) < 1e-10)
_ = check("client 0 drawn twice: more than 0.1 is left", left_over([0, 0]) > 0.1)

# %% [markdown]
# **Leaving the set.** The same run in a ball and in a box around its start that cut off the solution, with Top-K down; and in a box with unscaled Rand-K. Printed is whether some $w_t$ leaves; then 200 random states, one step of the downlink each.

# %% tags=["remove-input"]
inside = {}
for name, where, wire in (
    ("ball, Top-K", Ball(1.0), TopK(0.1)),
    ("box, Top-K", Box(0.2), TopK(0.1)),
    ("box, Rand-K", Box(0.2), RandK(0.1, scaled=False)),
):
    problem = replace(crowd, w0=crowd.w0 * 0, set=where)
    algorithm = FedSGM(lr=0.2, local_steps=2, participants=10, tolerance=0.1, downlink=wire)
    states = walk(algorithm, problem)
    inside[name] = bool(torch.stack([where.contains(state.w) for state in states]).all())
x, w = 0.5 * torch.randn(2, 200, 20, generator=rng, dtype=torch.float64)
x, w = (torch.stack([Box(0.2).project(row) for row in y]) for y in (x, w))
sent = torch.stack([TopK(0.1)(row) for row in x - w])

# %% tags=["remove-input", "nbval-check-output"]
check("a ball and Top-K: some w_t is outside", not inside["ball, Top-K"])
check("a box and Top-K: none", inside["box, Top-K"])
check("a box and unscaled Rand-K: none", inside["box, Rand-K"])
_ = check("200 random steps w + TopK(x - w) stay in the box", (w + sent).abs().max() <= 0.2 + 1e-12)

# %% [markdown]
# **Theorem 1 (ii).** One dimension, two clients with $f_j=\lvert w\mp1\rvert$: $f$ is constant on $[-1,1]$ and every feasible point of it is a solution. $g_j=\lvert w+0.1\rvert-1$, $w_0=0.9$, and the solution $w^*=-0.1$ has $g(w^*)=-1$, $D=1$.

# %% tags=["remove-input"]
one = torch.tensor([1.0], dtype=torch.float64)
flat = norms(torch.stack([one, -one]), -0.1 * torch.stack([one, one]), 1.0, 0.9 * one, -0.1 * one)
rate = theorem_6(Setting(D=1.0, G=1.0, E=1, T=100, N=2))
still = FedSGM(lr=rate.lr, local_steps=1, participants=2, tolerance=rate.tolerance)
(mean,) = torch.as_tensor(run(still, flat, rounds=100, progress=False).output)
result = {k: float(v) for k, v in flat.metrics(mean, flat).items()}

# %% tags=["remove-input", "nbval-check-output"]
check(
    "f(w_bar) - f* <= eps and g(w_bar) <= eps", max(result["f_gap"], result["g"]) <= rate.tolerance
)
_ = check("g(w_bar) - g(w*) <= eps fails: it is 1, eps is 0.2", result["g_gap"] > 4 * rate.tolerance)

# %% [markdown]
# **The constants** in F's classification setting, $E=5$, $q=q_0=0.1$, $N/n=2$ (for the false step and its repair see the note on compression), the reductions, and where Theorem 1's bound on $g$ is valid.

# %% tags=["remove-input", "nbval-check-output"]
at = (5, 0.1, 0.1, 2.0)
versions = [
    f(*at)
    for f in (gamma_sampled, gamma_partial_direct, gamma_partial, partial(gamma_partial, version="corrected"))
]
text = ", ".join(f"{x:.2e}" for x in versions)
check("Gamma: ours < by F's constants < printed < one step repaired", versions == sorted(versions), text)
printed = gamma_partial(5, 0.1, 1.0, 1.0, theorem=7) - gamma_partial(5, 0.1, 1.0, 1.0)
check("Theorem 7's misprint adds 1200 at q0 = 1, where the term is 0", round(printed) == 1200)
check(
    "no compression: the printed Gamma is 2E^2 + 20E, ours is that of Theorem 4 (E = 1, 5, 20)",
    all(
        gamma_partial(E, 1.0, 1.0, 1.0) == gamma_local(E) + 20 * E
        and gamma_sampled(E, 1.0, 1.0, 1.0) == gamma_local(E, "direct")
        for E in (1, 5, 20)
    ),
)
term = lambda ratio: 3 * np.log(ratio) - 2 * np.log(6 * ratio)
check("Theorem 1's bound on g is valid from T / delta = 36 on", term(35.9) < 0 <= term(36.1))
case = box(E=5, T=500, q=0.1, q0=0.1, sigma=0.5, delta=0.05)
r = theorem_7(case).tolerance - theorem_7(case, "corrected").tolerance
gamma_free = theorem_1_partial(case).tolerance
excess = [2 * estimate_error(replace(case, delta=0.05 / 3)), theorem_1_partial(case).accuracy - gamma_free]
_ = check(
    "the four versions of the excess over eps at T = 500, sigma = 0.5, n = 4",
    excess[0] > excess[1] > estimate_error(replace(case, delta=0.05 / 3)) > 0,
    f"contribution list {excess[0]:.2f}, Theorem 1 {excess[1]:.2f}, proofs {excess[0] / 2:.2f}, Theorems 4 and 7: 0",
)

# %% [markdown]
# The cells that make these checks are in {download}`note_partial.py <src/note_partial.py>`.
