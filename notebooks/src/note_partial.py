# %% [markdown]
# # Partial participation: sampled clients
#
# This note is about partial participation of the clients in FedSGM: what a theorem can promise if a round samples some
# of them. If only $n$ of the $N$ clients take part in a round, the server makes its step with a sample mean of the
# clients' directions, and compares a sample mean of their constraint values with the threshold. Theorem 4 of
# {cite}`fedsgm2025` (F below) bounds the error of the step by a martingale inequality, and the error of the comparison
# by a tail bound. F's Theorems 1 and 7 add compression with error feedback in both directions. This note proves
# corrected versions of the three theorems with smaller constants.
#
# F assumes that the two means are independent, but F's Algorithm 1 takes both over one sample. With one sample the
# martingale argument fails, **and so does Theorem 4**: on one problem that satisfies all other assumptions, runs miss
# the promised accuracy with probability near 1 ({prf:ref}`part-one-sample`). Even with two samples, the promise
# $g(\bar w)\le\epsilon$ of Theorems 4 and 7 can fail, because an estimate below the threshold $\epsilon$ does not
# ensure $g(w_t)\le\epsilon$ ({prf:ref}`part-threshold`).
#
# The notation is that of the notes on [hard switching](note_hard_switching.ipynb) and on
# [compression](note_compression.ipynb). The function $h$ is $f$ in the rounds $\mathcal A$ that use the objective, and
# $g$ in the other rounds, $\mathcal B$. {eq}`eq-hard-b` defines $B(\Gamma)$ and $\eta(\Gamma)$. The papers write $n$
# and $m$ for our $N$ and $n$.

# %% [markdown]
# ## Setting
#
# In round $t$ the server draws a set $\mathcal S_t$ of $n$ *distinct* clients, uniformly. The mean of their constraint
# values, $\hat G_t=\frac1n\sum_{j\in\mathcal S_t}g_j(w_t)$, determines the switch:
# $\mathcal A=\{t:\hat G_t\le\epsilon\}$. Let $\Delta_j=\sum_{\tau<E}\nu_{j,\tau}$ be the sum of the subgradients of
# client $j$'s $E$ local steps, and let
#
# $$
# \nu_t=\frac1N\sum_{j\le N}\Delta_j,\qquad\bar\Delta_t=\frac1n\sum_{j\in\mathcal S_t}\Delta_j,\qquad w_{t+1}=\Pi_{\mathcal X}(w_t-\eta\bar\Delta_t) .
# $$ (eq-part-update)
#
# If client $j$ does not take part, $\Delta_j$ is the sum that it would have computed. The output $\bar w$ is the mean
# of the $w_t$ with $t\in\mathcal A$.
#
# ```{prf:assumption} F-A1, F-A2, F-A4
# :label: part-assumption
#
# 1. {prf:ref}`hard-assumption` holds: every $f_j$ and $g_j$ is convex and $G$-Lipschitz. (F assumes this only on
#    $\mathcal X$, but local iterates are not projected and can leave $\mathcal X$.)
# 2. $\mathcal X$ is convex and compact, with diameter at most $D$. It contains $w_0$ and a solution $w^*$.
# 3. Given $w_t$, the error $\hat G_t-g(w_t)$ is $\frac{\sigma^2}n$-sub-Gaussian, that is, for all $x$,
#
#    $$
#    \mathbb E\exp\big(x(\hat G_t-g(w_t))\big)\le\exp\Big(\frac{x^2\sigma^2}{2n}\Big) .
#    $$
#
# 4. The choice between $f$ and $g$ in round $t$ is independent of the sample that makes the step.
# ```
#
# Point 4 holds if a second sample makes the step (`FedSGM(resample_for_update=True)`), but not for Algorithm 1.
#
# By points 1 and 2 the $g_j$ are bounded on $\mathcal X$. If at every $w$ all $g_j(w)$ lie in an interval of length
# $R$, {prf:ref}`part-hoeffding` yields point 3 with $\sigma=\frac R2$.

# %% [markdown]
# ## The step: Lemma 4
#
# ```{prf:lemma} Hoeffding, without replacement
# :label: part-hoeffding
#
# Let $z_1,\dots,z_N$ be numbers in an interval of length $R$, $\bar z$ their mean and $\bar z_{\mathcal S}$ the mean
# over a uniform set of $n$ of them. For all $x$,
# $\mathbb E\exp\big(x(\bar z-\bar z_{\mathcal S})\big)\le\exp\big(\tfrac{x^2R^2}{8n}\big)$.
# ```
#
# ```{prf:proof}
# A convex function of the mean has no larger expectation without replacement than with
# {cite}`hoeffding1963probability`. So we may take the $n$ draws as independent.
#
# For one draw $z$, Hoeffding's lemma is $\mathbb E\exp(y(\bar z-z))\le\exp(\frac{y^2R^2}8)$. Put $y=\frac xn$ and
# multiply the bounds of the $n$ draws.
# ```
#
# ```{prf:lemma} F Lemma 4
# :label: part-lemma-4
#
# Under {prf:ref}`part-assumption`, with probability at least $1-\delta$,
#
# $$
# \sum_{t\in\mathcal A}2\eta\,\langle\nu_t-\bar\Delta_t,\,w_t-w^*\rangle\le2\eta EGD\sqrt{\frac{2T}n\log\frac1\delta} .
# $$ (eq-part-lemma4)
#
# The same bound holds for the sum over $\mathcal B$. F prints twice the right side.
# ```
#
# ```{prf:proof}
# Let $\mathcal F_t$ contain everything up to $w_t$ and the choice between $f$ and $g$ in round $t$.
#
# 1. *One round.* Given $\mathcal F_t$, the numbers $z_j=\langle\Delta_j,w_t-w^*\rangle$ are fixed. As
#    $\lvert z_j\rvert\le EG\cdot D$, they lie in an interval of length $R=2EGD$. By point 4 of
#    {prf:ref}`part-assumption`, the sample is uniform given $\mathcal F_t$. Let
#    $Y_t=2\eta\langle\nu_t-\bar\Delta_t,w_t-w^*\rangle$ and $s=\frac{4\eta^2R^2}{4n}=\frac{4\eta^2E^2G^2D^2}n$. By
#    {prf:ref}`part-hoeffding` with $2\eta x$ for $x$,
#    $\mathbb E[e^{xY_t}\mid\mathcal F_t]\le\exp\big(\frac{x^2s}2\big)$.
# 2. *All rounds (Azuma).* The indicator $\mathbb 1\{t\in\mathcal A\}$ is known given $\mathcal F_t$. Take conditional
#    expectations from the last round to the first:
#    $\mathbb E\exp\big(x\sum_{t\in\mathcal A}Y_t\big)\le\exp\big(\frac{x^2sT}2\big)$.
# 3. *Tail.* By Markov's inequality for this exponential at $x=\frac u{sT}$, the sum exceeds $u$ with probability at
#    most $\exp(-\frac{u^2}{2sT})$. This probability is $\delta$ if $u=\sqrt{2sT\log\frac1\delta}$, the right side of
#    {eq}`eq-part-lemma4`.
#
# For $\mathcal B$ the proof is the same. F uses $\frac{16\eta^2E^2G^2D^2}n$ in place of $s$.
# ```

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
# A $v$-sub-Gaussian variable exceeds $u$ with probability at most $\exp(-\frac{u^2}{2v})$, and so does its negative.
# For $v=\frac{\sigma^2}n$ and $u$ equal to the right side of {eq}`eq-part-lemma7`, each probability is
# $\frac\delta{2T}$. Take a union bound over the $2T$ events.
# ```

# %% [markdown]
# ## Theorem 4
#
# ```{prf:theorem} F Theorem 4, as it can be proved
# :label: part-theorem-4
#
# Let {prf:ref}`part-assumption` hold. Switch hard, without compression, with $\Gamma=2E^2$ and $\eta=\eta(\Gamma)$, and
# let
#
# $$
# b=B(\Gamma)+\frac{2GD}{\sqrt{nT}}\sqrt{2\log\frac3\delta},\qquad r=\sigma\sqrt{\frac2n\log\frac{6T}\delta} .
# $$ (eq-part-b)
#
# With the threshold $\epsilon_1=b+r$ and probability at least $1-\delta$, the set $\mathcal A$ is not empty,
# $f(\bar w)-f(w^*)\le b$, and $g(\bar w)\le b+2r$. The same is true with $\Gamma_{\rm direct}=\frac{3E}2-1$ in place of
# $\Gamma$.
# ```
#
# The printed theorem has $4GD$ in place of $2GD$, takes the threshold $\epsilon=b+2r$ and claims
# $g(\bar w)\le\epsilon$.
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. *One round.* The projection is nonexpansive and $w^*\in\mathcal X$, so
#
#    $$
#    \lVert w_{t+1}-w^*\rVert^2\le\lVert w_t-w^*\rVert^2-2\eta\langle w_t-w^*,\bar\Delta_t\rangle+\eta^2\lVert\bar\Delta_t\rVert^2 .
#    $$
#
#    In the product write $\bar\Delta_t=\nu_t-(\nu_t-\bar\Delta_t)$. Bound the part with $\nu_t$ and the square as in
#    {prf:ref}`hard-lemma-round`, with $\lVert\bar\Delta_t\rVert\le EG$. Hence {eq}`eq-hard-round` holds with the
#    additional term $Y_t$ of Lemma 4's proof on its right side.
# 2. *All rounds.* Sum, telescope, and divide by $2\eta ET$. The additional terms are
#    $\sum_{\mathcal A}Y_t+\sum_{\mathcal B}Y_t$. By Lemma 4, used twice with $\frac\delta3$ for $\delta$, they are at
#    most $2\cdot2\eta EGD\sqrt{\frac{2T}n\log\frac3\delta}$. Divided by $2\eta ET$, this is the second term of $b$:
#
#    $$
#    \frac1T\sum_{t\in\mathcal A}\big(f(w_t)-f(w^*)\big)+\frac1T\sum_{t\in\mathcal B}\big(g(w_t)-g(w^*)\big)\le b .
#    $$ (eq-part-regret)
#
# 3. *From $\hat G$ to $g$.* By Lemma 7 with $\frac\delta3$, $\hat G_t$ differs from $g(w_t)$ by at most $r$. For
#    $t\in\mathcal B$, $g(w_t)\ge\hat G_t-r>\epsilon_1-r=b$. For $t\in\mathcal A$, $g(w_t)\le\epsilon_1+r$.
# 4. *Conclusion.* As $g(w^*)\le0$, each round of $\mathcal B$ contributes more than $\frac bT$ to {eq}`eq-part-regret`.
#    So not all rounds are in $\mathcal B$, and
#
#    $$
#    \sum_{t\in\mathcal A}\big(f(w_t)-f(w^*)\big)\le Tb-\lvert\mathcal B\rvert b=\lvert\mathcal A\rvert b .
#    $$
#
#    Apply Jensen's inequality to $f$ and, with $g(w_t)\le b+2r$ for $t\in\mathcal A$, to $g$.
# ```
#
# With any threshold $\epsilon\ge\epsilon_1$, such as the printed one, step 3 yields only $g(\bar w)\le\epsilon+r$. The
# printed $g(\bar w)\le\epsilon$ can fail:
#
# ```{prf:lemma} The threshold is not the promise
# :label: part-threshold
#
# On some problems that satisfy {prf:ref}`part-assumption`, runs with the printed threshold $\epsilon$ of Theorem 4
# violate $g(\bar w)\le\epsilon$.
# ```
#
# ```{prf:proof}
# In one dimension, let $n=1$ of $N=10$ clients take part. All clients have the same gradients, $f_j'=-0.15$ and
# $g_j'=0.3$, but nine clients report $g-s$ and one reports $g+9s$, with a small $s>0$. A second sample makes the step,
# so that point 4 of {prf:ref}`part-assumption` holds.
#
# While $\epsilon<g(w_t)\le\epsilon+s$, the nine clients report at most $\epsilon$. So nine rounds in ten, on average,
# are in $\mathcal A$ and push $g$ up by $0.3\cdot0.15\,\eta$. One in ten is in $\mathcal B$ and pushes $g$ down by
# $0.3\cdot0.3\,\eta$. On average $g(w_t)$ rises. Above $\epsilon+s$ all clients report more than $\epsilon$, and every
# round pushes $g$ down. Hence $g(w_t)$ settles near $\epsilon+s$, and $g(\bar w)>\epsilon$.
# ```

# %% [markdown]
# ## One sample for the query and the step
#
# In Algorithm 1 the clients that report $g_j(w_t)$ also make the step. Step 1 of the proof of Lemma 4 then fails: given
# that $t\in\mathcal A$, the sample $\mathcal S_t$ is not uniform.
#
# ```{prf:lemma} One sample is not enough
# :label: part-one-sample
#
# For every large enough $T$, some problem with $D,G\le1$ satisfies points 1 to 3 of {prf:ref}`part-assumption`. On this
# problem Algorithm 1 with one sample misses the promise $f(\bar w)-f(w^*)\le\epsilon$ of Theorem 4 with probability
# near 1.
# ```
#
# ```{prf:proof}
# Let two clients, of which $n=1$ takes part, have linear losses in a square, with $g_1=g-s$ and $g_2=g+s$ for a small
# $s$. Both constraints push to the left. The objective of client 1 pulls to the right and *up*, that of client 2 to the
# left and, more strongly, down. The mean objective pulls to the right and down.
#
# Below the band $\lvert g(w_t)-\epsilon\rvert<s$ rounds move $w_t$ to the right, above it to the left. In the band, a
# round is in $\mathcal A$ exactly if client 1 is drawn. So client 2 never steps along its objective there, and the
# model goes *up*, away from the solution. The steps have length $\eta\sim T^{-1/2}$. If $s$ falls more slowly than
# this, the model hardly leaves the band for large $T$.
#
# The promise, at $\delta=0.1$, is $\frac{12.4}{\sqrt T}+2r$ with $2r=2s\sqrt{2\log(6T/\delta)}$. It is below
# the objective gap in the band if $T$ is large and $s$ is a small multiple of $(\log T)^{-1/2}$.
# ```
#
# For one sample we prove a theorem in which the second term of $b$ does not vanish as $T$ grows.
#
# ```{prf:theorem} Algorithm 1 as printed (ours)
# :label: part-theorem-one-sample
#
# Let points 1 to 3 of {prf:ref}`part-assumption` hold, and run without compression, with $\Gamma$ and $\eta$ of
# {prf:ref}`part-theorem-4`. Let $b=B(\Gamma)+GD\sqrt{\frac2n\log\frac{4T}\delta}$ and
# $r=\sigma\sqrt{\frac2n\log\frac{4T}\delta}$. With the threshold $b+r$, the conclusion of {prf:ref}`part-theorem-4`
# holds for these $b$ and $r$.
# ```
#
# ```{prf:proof}
# Given $w_t$, $\mathcal S_t$ is uniform. For $h=f$ and for $h=g$, step 1 of the proof of Lemma 4 and Markov's
# inequality therefore yield, with probability at least $1-\frac{\delta'}{2T}$ in round $t$,
#
# $$
# \langle\nu_t-\bar\Delta_t,w_t-w^*\rangle\le EGD\sqrt{\frac2n\log\frac{2T}{\delta'}} .
# $$
#
# With probability at least $1-\delta'$ the inequality holds in all rounds and for both $h$ at once. Then it does not
# matter which $h$ the sample selects, and $\frac1{2\eta ET}\sum Y_t\le GD\sqrt{\frac2n\log\frac{2T}{\delta'}}$. Use
# this bound with $\delta'=\frac\delta2$, Lemma 7 with $\frac\delta2$, and the rest of the proof of
# {prf:ref}`part-theorem-4`.
# ```

# %% [markdown]
# ## Compression: residuals and messages
#
# With compression, clients keep residuals $e_j$ and send messages $v_j$ as in {eq}`eq-comp-up`. The server steps as in
# {eq}`eq-comp-down`, but with the mean over the sample and a projection:
#
# $$
# \begin{aligned}
# v_t&=\frac1n\sum_{j\in\mathcal S_t}v_j,\qquad x_{t+1}=\Pi_{\mathcal X}(x_t-\eta v_t),\\
# w_{t+1}&=w_t+\mathcal C_0(x_{t+1}-w_t) .
# \end{aligned}
# $$
#
# The compressors are deterministic, with $\lVert\mathcal C(x)-x\rVert\le\sqrt{1-q}\,\lVert x\rVert$. Let
# $\varrho=\sqrt{1-q}$, and for $\mathcal C_0$ let $\varrho_0=\sqrt{1-q_0}$.
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
# We proceed in steps.
#
# 1. *Residual.* With $y=e_j^t+\Delta_j$, a participant's new residual is $y-\mathcal C_j(y)$, whose norm is at most
#    $\varrho(\lVert e_j^t\rVert+EG)$. The other clients keep their residuals. If
#    $\lVert e_j^t\rVert\le\frac\varrho{1-\varrho}EG$, then
#    $\lVert e_j^{t+1}\rVert\le\varrho\big(\frac\varrho{1-\varrho}+1\big)EG=\frac\varrho{1-\varrho}EG$. So the bound
#    holds by induction.
# 2. *F's constant and $\tilde e_t$.* Since $1-\varrho^2=q$, we have
#    $\frac\varrho{1-\varrho}=\frac{\varrho(1+\varrho)}q\le\frac{2\varrho}q$. The bound on $\tilde e_t$ follows, since
#    $\tilde e_t$ is $\frac Nn$ times the mean of all residuals.
# 3. *Message.* By the triangle inequality $\lVert\mathcal C_j(y)\rVert\le(1+\varrho)\lVert y\rVert$, and by step 1
#    $\lVert y\rVert\le\big(\frac\varrho{1-\varrho}+1\big)EG=\frac1{1-\varrho}EG$.
# 4. *Gap.* As $x_t\in\mathcal X$, $\lVert x_{t+1}-x_t\rVert\le\eta\lVert v_t\rVert$. The gap $\hat e_{t+1}$ is what
#    $\mathcal C_0$ leaves out of $x_{t+1}-w_t=\hat e_t+(x_{t+1}-x_t)$. Repeat step 1 with $\varrho_0$ for $\varrho$ and
#    $\eta\lVert v_t\rVert$ for $EG$.
# ```
#

# %% [markdown]
# ## Theorems 1 and 7
#
# ```{prf:theorem} F Theorem 1 (sampled clients) and Theorem 7, as they can be proved
# :label: part-theorem-1
#
# Let {prf:ref}`part-assumption` hold, let the compressors be deterministic, and let all $w_t$ lie in $\mathcal X$.
# Switch hard, with $\eta=\eta(\Gamma)$ for a $\Gamma$ named below, and let
#
# $$
# \begin{aligned}
# b&=B(\Gamma)+\frac Nn\cdot\frac{2DG\sqrt{1-q}}{qT}+\frac{2GD}{\sqrt{nT}}\sqrt{2\log\frac3\delta},\\
# r&=\sigma\sqrt{\frac2n\log\frac{6T}\delta} .
# \end{aligned}
# $$ (eq-part-b1)
#
# With the threshold $b+r$ and probability at least $1-\delta$, the set $\mathcal A$ is not empty,
# $f(\bar w)-f(w^*)\le b$, and $g(\bar w)\le b+2r$. The conclusion holds with the $\Gamma$ of
# {eq}`eq-comp-gamma-partial`, hence with the larger $\Gamma$ of F Theorem 1. It also holds if $\frac\varrho{1-\varrho}$
# replaces $\frac{2\sqrt{1-q}}q$ in $b$ and
#
# $$
# \Gamma=E-1+\frac E2\mu^2+E\mu\,\frac{\varrho_0}{1-\varrho_0}+\frac Nn\,E\mu\,\frac\varrho{1-\varrho},\qquad\mu=\frac{1+\varrho}{1-\varrho} .
# $$ (eq-part-gamma)
# ```
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. *Direct expansion.* The projection breaks the recursion of the virtual iterate ({prf:ref}`comp-lemma-virtual`), but
#    it is nonexpansive:
#
#    $$
#    \lVert x_{t+1}-w^*\rVert^2\le\lVert x_t-w^*\rVert^2-2\eta\langle x_t-w^*,v_t\rangle+\eta^2\lVert v_t\rVert^2 .
#    $$
#
# 2. *Three products.* By {eq}`eq-comp-partial`, $v_t=\bar\Delta_t+\tilde e_t-\tilde e_{t+1}$. By
#    {prf:ref}`comp-lemma-cancel`, the cross term is
#
#    $$
#    -2\eta\langle w_t-w^*,\bar\Delta_t\rangle-2\eta\langle x_t-w^*,\tilde e_t-\tilde e_{t+1}\rangle-2\eta\langle\hat e_t,\bar\Delta_t\rangle .
#    $$ (eq-part-products)
#
# 3. *First product.* Bound it as in the proof of {prf:ref}`part-theorem-4`, where Lemma 4 needs
#    $\lVert w_t-w^*\rVert\le D$. The local steps add $2\eta^2EG^2(\Gamma_0-\frac E2)$ to the bound, with $\Gamma_0$ of
#    {eq}`eq-hard-gammas`, or $2\eta^2EG^2(E-1)$ by {prf:ref}`hard-lemma-direct`. Neither contains the square term,
#    which step 6 bounds.
# 4. *Third product.* It is at most $2\eta\lVert\hat e_t\rVert EG$. Bound $\hat e_t$ by {prf:ref}`part-lemma-9` and
#    divide by $2\eta^2EG^2$: the contribution to $\Gamma$ is $E\mu\frac{\varrho_0}{1-\varrho_0}$.
# 5. *Second product.* Sum by parts, with $\tilde e_0=0$:
#
#    $$
#    -\sum_{t=0}^{T-1}\langle x_t-w^*,\tilde e_t-\tilde e_{t+1}\rangle=\langle x_{T-1}-w^*,\tilde e_T\rangle-\sum_{t=1}^{T-1}\langle x_t-x_{t-1},\tilde e_t\rangle .
#    $$ (eq-part-abel)
#
#    The boundary term is at most $D\lVert\tilde e_T\rVert$. Divided by $ET$, it is at most
#    $\frac Nn\frac{DG}T\cdot\frac{2\varrho}q$, the second term of $b$. In the remaining sum,
#    $\lVert x_t-x_{t-1}\rVert\le\eta\lVert v_{t-1}\rVert$. So a round adds at most
#    $2\eta^2\cdot\mu EG\cdot\frac Nn\frac\varrho{1-\varrho}EG$. Divided by $2\eta^2EG^2$, this is the last term of
#    $\Gamma$.
# 6. *Square term.* It is at most $\eta^2\mu^2E^2G^2$. Divided by $2\eta^2EG^2$, it contributes $\frac E2\mu^2$ to
#    $\Gamma$.
# 7. *Conclusion.* Sum over the rounds, with $x_0=w_0$. This yields {eq}`eq-part-regret` with the $b$ of this theorem.
#    Conclude by steps 3 and 4 of the proof of {prf:ref}`part-theorem-4`.
#
# In place of our bound $\lVert v_t\rVert\le\mu EG$, F has $\frac{\sqrt{40}}qEG$. It is larger, since
# $\mu=\frac{(1+\varrho)^2}q\le\frac4q$.
# F's constants in steps 4 to 6, $\frac{2\varrho_0}{q_0}\cdot\frac{\sqrt{40}}q$,
# $\frac{\sqrt{40}}q\cdot\frac{2\varrho}q$ and $\frac{40}{q^2}$, yield the terms of {eq}`eq-comp-gamma-partial`.
# ```
#
# At $q=q_0=1$ the $\Gamma$ of {eq}`eq-part-gamma` is $\frac{3E}2-1$, and the theorem becomes Theorem 4.
#
# *Can $w_t$ leave $\mathcal X$?* Lemma 4 needs $w_t\in\mathcal X$, but only $x_t$ is projected. If $\mathcal C_0$ is
# Top-K or unscaled Rand-K, every coordinate of $w_{t+1}$ is that of $x_{t+1}$ or that of $w_t$. So $w_t$ stays in
# $\mathcal X$ if $\mathcal X$ is a box, but can leave a ball. As $\lVert w_t-x_t\rVert=\lVert\hat e_t\rVert$, the proof
# remains valid with $D+\frac{\varrho_0}{1-\varrho_0}\mu\,\eta EG$ for $D$ in Lemma 4, provided that the losses are
# Lipschitz outside $\mathcal X$.

# %% [markdown]
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **One sample for query and step.** Algorithm 1 contradicts F-A4 (our point 4) and misses the promised accuracy
#   ({prf:ref}`part-one-sample`). {prf:ref}`part-theorem-one-sample` states what holds.
# * **The bound on $g(\bar w)$ has four versions:** $\epsilon+2r$ in F's list of contributions, $\epsilon+r$ in the
#   proofs, $\epsilon$ in Theorems 4 and 7, and $\epsilon+\sqrt{\frac{3\sigma^2}n\log\frac T\delta}$ in Theorem 1. The
#   last is valid if $\frac T\delta\ge36$, as its root is then at least $r$. The threshold $b+r$ of the proofs ensures
#   $g(\bar w)\le b+2r$, the threshold $b+2r$ of the statements only $g(\bar w)\le b+3r$.
# * **Sampling.** Theorem 7 samples with replacement, Theorems 1 and 4 without. A client drawn twice sends its message
#   twice but changes its residual once, so {eq}`eq-comp-partial` fails.
# * **F Theorem 7** prints $\sqrt{1-q}$ for $\sqrt{1-q_0}$ in the third term of $\Gamma$, if our text has not lost a
#   subscript. Its proof uses
#   $\lVert v_t\rVert\le2EG$, which {prf:ref}`comp-lemma-counterexample` refutes.
# * **F Lemma 9** has $E^2G^2$ in place of $EG$ in the text that we have, which may have lost where a root ends. Read so,
#   residuals can exceed the bound for $EG<1$.
# * **F Theorem 1 (ii)**, on full participation, prints $g(\bar w)-g(w^*)\le\epsilon$. Its proof yields only
#   $g(\bar w)\le\epsilon$. The [note on compression](note_compression.ipynb) has a run that violates the printed bound.
# ```

# %% [markdown]
# ## Checks
#
# The random instances are sums of distances in a cube of side 1 ($G=1$, $D=\sqrt3$). The clients' constraint values
# differ by at most $2\sigma$.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the first instance
instances = None  # number of random instances; None: 48 in the full profile, 9 in the quick one
rounds = None  # T of the theorems; None: 1000 in the full profile, 200 in the quick one
trials = None  # of each Monte Carlo experiment; None: 20000 in the full profile, 2000 in the quick one

# %% tags=["hide-input"]
from dataclasses import replace
from functools import cache
from math import log, sqrt

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from torch.func import vmap

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.compress import Identity, RandK, TopK
from fedlib.core import Vectorized
from fedlib.core.sampling import seeded
from fedlib.sets import Ball, Box
from papers.fedsgm.checks import gaps_of_rates, mean_gaps, play, share
from papers.fedsgm.concentration import (
    estimate_error,
    gamma_sampled,
    residual_bound,
    sampled_rate,
    sampling_walk,
)
from papers.fedsgm.gamma import gamma_local, gamma_partial, gamma_partial_direct
from papers.fedsgm.noise import sample_means
from papers.fedsgm.problems.norms import random_norms
from papers.fedsgm.problems.sampled import boxed_norms, skewed_levels, split_objectives
from papers.fedsgm.theory import Setting, theorem_1_partial, theorem_4
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.parameters import settle
from papers.kit.quantities import curves

settle(globals(), seed=0, instances=(48, 9), rounds=(1000, 200), trials=(20_000, 2000))
seeds = range(seed, seed + instances)
instance = cache(boxed_norms)  # its reference solution is computed once
rng = seeded(seed, "rounds")


# %% [markdown]
# **Lemma 4.** We compare quantiles of the sum in {eq}`eq-part-lemma4` with our bound, from Hoeffding's lemma, and with
# F's. Round $t$ is in $\mathcal A$ always, by a coin flip ("coin"), or if the sum so far is not above 0 ("past"). Four
# of 40 clients take part in each of 100 rounds. The inner product $\langle\Delta_j,w_t-w^*\rangle$ is $EGD$ for half of
# the clients and $-EGD$ for the others, and $\eta=E=G=D=1$.

# %% tags=["hide-input", "nbval-check-output"]
def sum_past(terms):
    """The sums over the rounds before which the sum is not above 0."""
    total = torch.zeros(len(terms))
    for term in terms.T:
        total = total + (total <= 0) * term
    return total


walk = Setting(D=1.0, G=1.0, E=1, T=100, N=40, n=4, delta=0.1)
signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(20)  # [40], with mean 0
sampled = sample_means(signs, 4, 100 * trials, rng).view(trials, 100)
terms = -2 * sampled  # Y_t for eta = 1
coins = torch.rand(trials, 100, generator=rng) < 0.5
sums = {
    "always": terms.sum(1),
    "coin": (terms * coins).sum(1),
    "past": sum_past(terms)
}
quantiles = pd.DataFrame(sums).quantile(0.9)
bounds = {proxy: sampling_walk(walk, lr=1.0, proxy=proxy) for proxy in (16, 4, 1)}

check(
    f"always, coin, past: 90 % quantile of {trials} sums <= Hoeffding's bound",
    quantiles.max() <= bounds[4],
)
check(
    "F's bound is twice Hoeffding's, and more than 3 times the largest of the three quantiles",
    bounds[16] == 2 * bounds[4] and bounds[16] > 3 * quantiles.max(),
)
check(
    "a proxy four times smaller than Hoeffding's is exceeded (always)",
    quantiles["always"] > bounds[1],
)

# %% tags=["hide-input"]
deltas = np.geomspace(0.5, 0.01, 30)
lines = pd.DataFrame(index=pd.Index(deltas, name="delta"))
for proxy in bounds:
    by_delta = [sampling_walk(replace(walk, delta=delta), 1.0, proxy) for delta in deltas]
    lines[f"proxy {proxy}"] = by_delta
lines["measured"] = np.quantile(sums["always"], 1 - deltas)
fig = plot.figure((5.2, 3.4))
style = ["-", "-", "-", "."]
lines.plot(ax=fig.subplots(), logx=True, style=style, ylabel="sum of 100 rounds")
plot.show(
    fig,
    alt="Three falling curves against delta on a logarithmic axis. The dots lie below the middle curve everywhere and, "
    "for delta below 0.15, above the lowest.",
    caption="With all rounds in A, the quantiles of the sum in Lemma 4 at level 1 - delta (dots) are below Hoeffding's "
    "bound (proxy 4) and F's (proxy 16). For each bound, a round's term is (proxy / n)-sub-Gaussian; proxy "
    "1 is too small.",
)

# %% [markdown]
# **Lemma 7.** We compare the largest $\lvert\hat G_t-g(w_t)\rvert$ of 100 rounds with {eq}`eq-part-lemma7`. Half of 400
# clients have the value $\sigma$, half $-\sigma$; 30 take part in each round.

# %% tags=["hide-input", "nbval-check-output"]
query = Setting(D=1.0, G=1.0, E=1, T=100, N=400, n=30, sigma=1.0, delta=0.1)
query_trials = trials // 10
reports = signs.repeat(10)  # [400], with mean g(w_t) = 0
errors = sample_means(reports, 30, 100 * query_trials, rng).view(query_trials, 100)
largest_errors = errors.abs().amax(1)
bound_7 = estimate_error(query)

check(
    f"largest error of 100 rounds within the bound in at least 90 % of {query_trials} trials",
    share(largest_errors <= bound_7) >= 0.9,
)
check("within half the bound in fewer than 90 %", share(largest_errors <= bound_7 / 2) < 0.9)

# %% [markdown]
# **One sample for both: the increment.** Lemma 4 needs
# $\mathbb 1\{t\in\mathcal A\}\langle\nu-\bar\Delta_{\mathcal S},w-w^*\rangle$ to have mean zero over all samples
# $\mathcal S$. We compute the mean for $h=f$, on the problem of {prf:ref}`part-one-sample` (`split_objectives`), at a
# point with $g(w)=\epsilon$. Either $\mathcal S$ or another sample judges whether $t\in\mathcal A$.

# %% tags=["hide-input", "nbval-check-output"]
split = split_objectives()
w = torch.tensor([0.1, 0.35], dtype=torch.float64)  # any point; the threshold is put at g(w)
losses = vmap(split.losses, in_dims=(None, 0))(w, split.all_clients())
reports = losses[:, 1]  # g_j(w) of the two clients
in_a = (reports <= reports.mean()).double()  # for each sample of one client
gradients = split.data[0]
inner_products = (gradients.mean(0) - gradients) @ (w - split.heldout[0])
mean_one_sample = (in_a * inner_products).mean()
mean_two_samples = in_a.mean() * inner_products.mean()
clients = torch.randint(2, (3000,), generator=rng)
terms = 2 * (in_a * inner_products)[clients]  # eta = 1
bound_4 = sampling_walk(Setting(D=1.0, G=1.0, E=1, T=3000, N=2, n=1, delta=1e-6), lr=1.0)

check("the mean is 0 if another sample judges, to 1e-12", abs(mean_two_samples) < 1e-12)
check("the mean is above 0.1 if the same sample judges", mean_one_sample > 0.1)
check(
    "the sum of 3000 rounds with one sample exceeds Lemma 4's bound, as printed, at delta = 1e-6",
    terms.sum() > bound_4,
)

# %% [markdown]
# **One sample for both: the theorem.** On the same problem we compare the promise of Theorem 4 with FedSGM's objective
# gap, once with one sample and once with a second sample for the step. The constants are the printed ones, but the
# threshold is $b+r$. Here $D=G=1$ and $\sigma=s$.

# %% tags=["hide-input", "nbval-check-output"]
if profile == "full":
    T = 20_000
    delta = 0.1
    repeats = 10
else:
    T = 6_000
    delta = 0.5
    repeats = 2
case = Setting(D=1.0, G=1.0, E=1, T=T, N=2, n=1, sigma=0.003, delta=delta)
rate = theorem_4(case, "corrected")
often = {
    "rounds": T,
    "seeds": range(repeats),
    "evaluate_every": T // 50,
    "progress": False,
}
one_sample = FedSGM(lr=rate.lr, local_steps=1, participants=1, tolerance=rate.tolerance)
two_samples = replace(one_sample, resample_for_update=True)
traces = {
    "one sample": run(one_sample, split, **often),
    "a second sample": run(two_samples, split, **often),
}
gap_one, gap_two = (mean_gaps(trace, [split] * repeats).f_gap for trace in traces.values())
bound_one_sample = sampled_rate(case, one_sample=True).accuracy

check(
    f"one sample: the promise for f, meant for {1 - delta:.0%} of the runs, is missed on all {repeats} (T = {T})",
    (gap_one > rate.accuracy).all(),
)
check(
    f"a second sample: it is met on all {repeats}",
    (gap_two <= rate.accuracy).all()
)
check(
    "the bound for one sample is larger than any gap there can be, and is met",
    bound_one_sample > 1 > gap_one.max(),
)


# %% tags=["hide-input"]
gaps = plot.over_seeds(curves(traces), {"f_gap": "f(w_t) - f*"})
gaps["queries"] = gaps["run"]
plot.theme()
grid = sns.relplot(gaps, hue="queries", **plot.LINES)
plot.levels([grid.ax], rate.accuracy, "promise of Theorem 4")
plot.finish(grid, size=(6.2, 3.4))
plot.show(
    grid,
    alt="Objective gap against rounds: with one sample it stays near 0.2, above the dotted promise; with a second "
    "sample it falls quickly below the promise and settles slightly below zero.",
    caption="On the two-client problem the mean objective gap stays above the promise if one sample serves for query "
    "and step, and falls below it if a second sample makes the step.",
)

# %% [markdown]
# **The threshold is not the promise.** On the problem of {prf:ref}`part-threshold` (`skewed_levels`), Theorem 4
# promises $g(\bar w)\le b+2r$. With the printed threshold, which is also $b+2r$, runs break this promise. With the
# threshold $b+r$ they keep it.

# %% tags=["hide-input", "nbval-check-output"]
if profile == "full":
    T = 10_000
    repeats = 20
else:
    T = 4_000
    repeats = 2
s = 0.001
skewed = skewed_levels(10, s)
case = Setting(D=1.0, G=1.0, E=1, T=T, N=10, n=1, sigma=10 * s / 2, delta=0.1)
rates = {"printed": theorem_4(case), "corrected": theorem_4(case, "corrected")}
gaps = gaps_of_rates(
    rates,
    lambda _: skewed,
    rounds=T,
    seeds=range(repeats),
    local_steps=1,
    participants=1,
    resample_for_update=True,
)
epsilon = rates["printed"].tolerance
r = epsilon - rates["corrected"].tolerance

check(
    f"printed threshold: g(w_bar) > eps + s/2 on all {repeats} runs, promised is g <= eps on 90 %",
    (gaps["printed"].g > epsilon + s / 2).all(),
)
check(
    f"g(w_bar) <= eps + r on all {repeats} runs",
    (gaps["printed"].g <= epsilon + r).all(),
)
check(
    f"corrected threshold: g(w_bar) <= the promise on all {repeats} runs",
    (gaps["corrected"].g <= rates["corrected"].accuracy).all(),
)

# %% [markdown]
# **Theorem 4 on random instances.** FedSGM runs with Theorem 4 as printed ("printed"), with only the threshold
# corrected to $b+r$ ("corrected"), and with the constants of {prf:ref}`part-theorem-4` ("ours"). A run meets its
# promise if $f(\bar w)-f(w^*)$ and $g(\bar w)$ are at most $b+2r$. In each round 4 of 8 clients make the step and a
# second sample answers the query, with $\delta=0.1$ and $\sigma=0.01$.


# %% tags=["hide-input", "nbval-check-output"]
start = max(float(instance(s).mean_losses(instance(s).w0)[1]) for s in seeds)
boxed = Setting(D=sqrt(3), G=1.0, E=1, T=rounds, N=8, n=4, sigma=0.01, delta=0.1)


def compare(name, rates, rounds, **options):
    """Check how often three versions of a theorem keep their promises, and how large these are."""
    gaps = gaps_of_rates(
        rates,
        instance,
        rounds=rounds,
        seeds=seeds,
        participants=4,
        resample_for_update=True,
        **options,
    )
    for version, rate in rates.items():
        met = share(gaps[version].within(rate.accuracy))
        check(
            f"{name}, {version}: promise met on {met:.0%} of {instances} runs, 90 % wanted",
            met >= 0.9,
        )
    printed = rates["printed"].accuracy
    ours = rates["ours"].accuracy
    check(
        "    ours is less than 2/3 of the printed one, and below the largest g at the start",
        ours < min(2 / 3 * printed, start),
        f"promises {ours:.2f} and {printed:.2f}, start {start:.2f}",
    )
    return share(gaps["ours"].within(ours / 2))


for E in (1, 5):
    setting = replace(boxed, E=E)
    rates = {
        "printed": theorem_4(setting),
        "corrected": theorem_4(setting, "corrected"),
        "ours": sampled_rate(setting),
    }
    half_met = compare(f"E={E}", rates, rounds, local_steps=E)
    check(
        "    half of ours is exceeded by g(w_bar) on more than half of the runs",
        half_met < 0.5,
    )

# %% [markdown]
# **Theorem 1 with sampled clients.** We repeat the last check for Theorem 1 and its promises, with Top-K in both
# directions ($K=2$ of 3 coordinates) and runs four times as long.

# %% tags=["hide-input", "nbval-check-output"]
compressed = replace(boxed, T=4 * rounds, q=2 / 3, q0=2 / 3)
rates = {
    "printed": theorem_1_partial(compressed),
    "corrected": theorem_1_partial(compressed, "corrected"),
    "ours": sampled_rate(compressed),
}
both_ways = {"uplink": TopK(2 / 3), "downlink": TopK(2 / 3)}
compare("Top-K", rates, 4 * rounds, local_steps=1, **both_ways)
check(
    "    here ours is less than half of the printed one",
    rates["ours"].accuracy < rates["printed"].accuracy / 2,
)

# %% [markdown]
# **Lemma 9.** We compare the largest $\lVert\tilde e_t\rVert$ of 60 rounds with our bound and F's; the brackets show
# these three numbers. FedSGM has 20 clients, $d=20$, $E=5$ and Top-K on the uplink.


# %% tags=["hide-input", "nbval-check-output"]
crowd = random_norms(seed, clients=20, dim=20)
for q, n in ((0.1, 10), (0.1, 2), (0.5, 10)):
    algorithm = FedSGM(lr=0.05, local_steps=5, participants=n, tolerance=0.1, uplink=TopK(q))
    states, _ = play(algorithm, crowd, 60, seed)
    largest = max(float(state.residual.sum(0).norm()) / n for state in states)
    ours = residual_bound(5, 1.0, q, 20 / n, "direct")
    corrected = residual_bound(5, 1.0, q, 20 / n, "corrected")
    check(
        f"q={q}, n={n}: residual <= ours <= F's",
        largest <= ours <= corrected,
        f"{largest:.0f}, {ours:.0f}, {corrected:.0f}",
    )

step = torch.full((20,), 0.1 / sqrt(20), dtype=torch.float64)  # of norm EG = 0.1 in every round
residual = torch.zeros_like(step)
for _ in range(100):
    residual = residual + step
    residual = residual - TopK(0.1)(residual)
printed, corrected = (residual_bound(1, 0.1, 0.1, 1.0, v) for v in ("printed", "corrected"))
check(
    "EG = 0.1, one client: the residual exceeds Lemma 9 as printed, and keeps the corrected bound",
    printed < residual.norm() <= corrected,
)

# %% [markdown]
# **With replacement.** We compare the error of {eq}`eq-comp-partial`, $v_t-\bar\Delta_t-\tilde e_t+\tilde e_{t+1}$, in
# a round with client 0 drawn twice and in a round with distinct clients.

# %% tags=["hide-input", "nbval-check-output"]
algorithm = FedSGM(lr=0.05, local_steps=2, participants=2, tolerance=0.1, uplink=TopK(0.1))
states, _ = play(algorithm, crowd, 20, seed)
state = states[-1]


def error_of_the_identity(clients):
    """The norm of the error in a round of these two clients, times eta."""
    draw = algorithm.draw(crowd, rng)._replace(participants=torch.tensor(clients))
    uncompressed = replace(algorithm, uplink=Identity())
    after, *_ = algorithm.round(Vectorized(crowd), state, draw)
    after_uncompressed, *_ = uncompressed.round(Vectorized(crowd), state, draw)
    residual_change = algorithm.lr * (state.residual - after.residual).sum(0) / 2
    return float((after_uncompressed.x - after.x - residual_change).norm())


check("distinct clients 0 and 1: nothing, to 1e-10", error_of_the_identity([0, 1]) < 1e-10)
check(
    "client 0 drawn twice: more than 0.1 eta is left",
    error_of_the_identity([0, 0]) > 0.1 * algorithm.lr,
)


# %% [markdown]
# **Leaving the set.** We check whether some $w_t$ leaves a ball or a box around the start; neither contains the
# solution. The downlink uses Top-K, and in the box also unscaled Rand-K.

# %% tags=["hide-input", "nbval-check-output"]
def stays_inside(feasible, downlink):
    """Whether all w_t of a run that starts in the middle of the set are in it."""
    problem = replace(crowd, w0=torch.zeros_like(crowd.w0), set=feasible)
    algorithm = FedSGM(lr=0.2, local_steps=2, participants=10, tolerance=0.1, downlink=downlink)
    states, _ = play(algorithm, problem, 60, seed)
    return all(bool(feasible.contains(state.w)) for state in states)


points = 0.5 * torch.randn(2, 200, 20, generator=rng, dtype=torch.float64)
x, w = points.clamp(-0.2, 0.2)
sent = torch.stack([TopK(0.1)(row) for row in x - w])

check("a ball and Top-K: some w_t is outside", not stays_inside(Ball(1.0), TopK(0.1)))
check("a box and Top-K: none", stays_inside(Box(0.2), TopK(0.1)))
check("a box and unscaled Rand-K: none", stays_inside(Box(0.2), RandK(0.1, scaled=False)))
check(
    "200 random steps w + TopK(x - w) stay in the box",
    (w + sent).abs().max() <= 0.2 + 1e-12,
)

# %% [markdown]
# **The constants.** In F's classification setting ($E=5$, $q=q_0=0.1$, $N/n=2$) we compare four $\Gamma$: ours of
# {eq}`eq-part-gamma`, {eq}`eq-comp-gamma-partial` with F's constants, the printed one of F Theorem 1, and that of F's
# proof with only the false step ({prf:ref}`comp-lemma-counterexample`) repaired.

# %% tags=["hide-input", "nbval-check-output"]
at = (5, 0.1, 0.1, 2.0)  # E, q, q0, N / n
gammas = [
    gamma_sampled(*at),
    gamma_partial_direct(*at),
    gamma_partial(*at),
    gamma_partial(*at, "corrected"),
]
check(
    "Gamma: ours < by F's constants < printed < one step repaired",
    gammas == sorted(gammas),
    ", ".join(f"{gamma:.2e}" for gamma in gammas),
)

without = [(E, 1.0, 1.0, 1.0) for E in (1, 5, 20)]  # compression
check(
    "no compression: the printed Gamma is 2E^2 + 20E, ours is that of Theorem 4 (E = 1, 5, 20)",
    all(
        gamma_partial(*at) == gamma_local(at[0]) + 20 * at[0]
        and gamma_sampled(*at) == gamma_local(at[0], "direct")
        for at in without
    ),
)

slacks = [3 * log(ratio) - 2 * log(6 * ratio) for ratio in (35.9, 36.1)]  # for n = 1, sigma = 1
check("Theorem 1's bound on g is valid from T / delta = 36 on", slacks[0] < 0 <= slacks[1])

case = Setting(D=sqrt(3), G=1.0, E=5, T=500, N=8, n=4, q=0.1, q0=0.1, sigma=0.5, delta=0.05)
excess_proofs = estimate_error(replace(case, delta=0.05 / 3))
excess_contributions = 2 * excess_proofs
rate = theorem_1_partial(case)
excess_theorem_1 = rate.accuracy - rate.tolerance
check(
    "the four versions of the excess over eps at T = 500, sigma = 0.5, n = 4",
    excess_contributions > excess_theorem_1 > excess_proofs > 0,
    f"contribution list {excess_contributions:.2f}, Theorem 1 {excess_theorem_1:.2f}, proofs {excess_proofs:.2f}, "
    "Theorems 4 and 7: 0",
)

# %% [markdown]
# The checks are in {download}`note_partial.py <src/note_partial.py>`.
