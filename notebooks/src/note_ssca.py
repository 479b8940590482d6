# %% [markdown]
# # SSCA: convergence without constraints
#
# Stochastic successive convex approximation (SSCA) replaces the loss by a running average of quadratics and moves the
# model towards the minimizer of this average. {cite:t}`ye2021ssca` (Y below) apply SSCA to clients that hold samples
# (Algorithm 1) or features (Algorithm 3). This note proves Lemmas 2 to 4 and Theorems 1 and 3 for their quadratic
# surrogate. Equation numbers in plain brackets are the paper's.
#
# Our findings:
#
# * **Theorem 1 does not cover the experiments.** Their step sizes $\gamma_t$ violate $\sum_t\gamma_t^2<\infty$. Our
#   condition for $\nabla F\to0$, $\sum_t\gamma_t\rho_t<\infty$ with the averaging weights $\rho_t$, is violated too. A
#   weighted mean of $\mathbb E\lVert\nabla F\rVert^2$ still tends to 0 ({prf:ref}`ssca-theorem-1`).
# * **The proof of Lemma 3 lacks a square.** Its bound on the distance between the minimizers of two close functions
#   holds if their gradients are close, but not if only their values are close ({prf:ref}`ssca-example-3`).
# * **The average of the quadratics starts at zero.** Therefore its printed minimizers are too short at first, by a
#   factor of 2.5 if $\rho_1=0.4$ ({prf:ref}`ssca-lemma-bias`).

# %% [markdown]
# ## Setting
#
# Let $F=\frac1N\sum_nf_n$ on $\mathbb R^d$, not necessarily convex, and let $g^t$ be round $t$'s estimate of
# $\nabla F(w^t)$. A round of Algorithm 1 or 3 uses averaging weights $\rho_t$, step sizes $\gamma_t$, $b^0=0$ and
# $\tau>0$, and computes (8), (9) and (5):
#
# $$
# \begin{aligned}
# b^t&=(1-\rho_t)\,b^{t-1}+\rho_t\,(g^t-2\tau w^t),\\
# \bar w^t&=\operatorname*{arg\,min}_w\big\{\langle b^t,w\rangle+\tau\lVert w\rVert^2\big\}=-\frac{b^t}{2\tau},\\
# w^{t+1}&=(1-\gamma_t)\,w^t+\gamma_t\,\bar w^t .
# \end{aligned}
# $$ (eq-ssca-round)
#
# Let $v^t=w^t-\bar w^t$, so that $w^{t+1}=w^t-\gamma_tv^t$. The gradient of the averaged surrogate at $w^t$ is
# $b^t+2\tau w^t=2\tau v^t$. This gradient has the error
#
# $$
# e^t=2\tau v^t-\nabla F(w^t).
# $$ (eq-ssca-error)
#
# ```{prf:assumption}
# :label: ssca-assumption
#
# 1. $\nabla F$ is $L$-Lipschitz, and $F\ge F_{\inf}$.
# 2. Given the past, $\mathbb Eg^t=\nabla F(w^t)$ and $\mathbb E\lVert g^t-\nabla F(w^t)\rVert^2\le\sigma^2$.
# 3. $0<\rho_t\le1$, $0<\gamma_t\le1$.
# ```
#
# If the iterates stay in a ball, as the paper assumes, items 1 and 2 are needed only there.
#
# ```{prf:lemma} The round's gradient
# :label: ssca-lemma-sampling
#
# Let client $i$ draw $B$ of its $N_i$ samples without replacement. Then
# $g^t=\sum_i\frac{N_i}{BN}\sum_{n\in\mathcal N_i^t}\nabla f_n(w^t)$ is unbiased, and
#
# $$
# \mathbb E\lVert g^t-\nabla F\rVert^2=\sum_i\Big(\frac{N_i}N\Big)^2\frac{N_i-B}{B(N_i-1)}\,S_i^2,
# $$ (eq-ssca-sampling)
#
# where $\nabla F_i$ and $S_i^2$ are the means of $\nabla f_n$ and of $\lVert\nabla f_n-\nabla F_i\rVert^2$ over the
# samples of client $i$. Algorithm 3 is the case of a single client that holds all samples.
# ```
#
# ```{prf:proof}
# The expected mean over client $i$'s batch is $\nabla F_i$, and $\sum_i\frac{N_i}N\nabla F_i=\nabla F$.
#
# 1. The mean square error of this batch mean is $\frac{N_i-B}{B(N_i-1)}S_i^2$, as computed in the proof of
#    {prf:ref}`cmoo-lemma-2` with samples instead of clients.
# 2. The clients draw independently, so the mean square errors add up with the squared weights $(N_i/N)^2$.
# 3. In Algorithm 3 the server draws $B$ of all $N$ samples, and the clients assemble the gradient by the chain rule
#    (16), (17).
# ```
#
# Therefore Theorem 3 (features) is Theorem 1 (samples) with another value of $\sigma^2$.

# %% [markdown]
# ## The start at zero, and momentum
#
# ```{prf:lemma} The start at zero
# :label: ssca-lemma-bias
#
# Let $\kappa_t=1-\prod_{s\le t}(1-\rho_s)$. Started at the zero function, the averaged surrogate (3) is
# $\langle b^t,w\rangle+\kappa_t\tau\lVert w\rVert^2$ up to a constant. Its minimizer is $\bar w^t/\kappa_t$, not the
# $\bar w^t$ of (9). Moving towards $\bar w^t/\kappa_t$ is equivalent to replacing $\rho_t$ by the weights
#
# $$
# \tilde\rho_t=\frac{\rho_t}{\kappa_t},\qquad\tilde\rho_1=1 .
# $$ (eq-ssca-bias)
# ```
#
# ```{prf:proof}
# Let $k_t$ be the quadratic coefficient of the averaged surrogate.
#
# 1. We have $k_t=(1-\rho_t)k_{t-1}+\rho_t\tau$ with $k_0=0$. So $\tau-k_t=(1-\rho_t)(\tau-k_{t-1})$, and by induction
#    $k_t=\kappa_t\tau$. Therefore the minimizer is $-\frac{b^t}{2\kappa_t\tau}=\bar w^t/\kappa_t$.
# 2. Divided by $\kappa_t$, the recursion of $b^t$ is
#    $\frac{b^t}{\kappa_t}=\frac{(1-\rho_t)\kappa_{t-1}}{\kappa_t}\cdot\frac{b^{t-1}}{\kappa_{t-1}}+\frac{\rho_t}{\kappa_t}(g^t-2\tau w^t)$.
#    By step 1, $(1-\rho_t)\kappa_{t-1}=\kappa_t-\rho_t$, so the first factor is $1-\tilde\rho_t$.
# ```
#
# So $\bar w^t$ is too short by the factor $\kappa_t$, and the model is pulled to the origin. For $\rho_t=0.4\,t^{-0.4}$
# the exact minimizer is longer than $\bar w^t$ by the factors 2.5, 1.72 and 1.45 in the first three rounds. Later,
# $\kappa_t\to1$ if $\sum_t\rho_t=\infty$. Every statement below also covers the corrected form, with $\tilde\rho_t$ for
# $\rho_t$.
#
# ```{prf:lemma} SSCA is momentum SGD
# :label: ssca-lemma-momentum
#
# With $v^0=w^1$ and $\gamma_0=0$, the round {eq}`eq-ssca-round` is equivalent to
#
# $$
# v^t=(1-\rho_t)(1-\gamma_{t-1})\,v^{t-1}+\frac{\rho_t}{2\tau}\,g^t,\qquad w^{t+1}=w^t-\gamma_tv^t .
# $$ (eq-ssca-momentum)
# ```
#
# ```{prf:proof}
# By definition $v^t=w^t+\frac{b^t}{2\tau}$, so $\frac{b^{t-1}}{2\tau}=v^{t-1}-w^{t-1}$. With the recursion of $b^t$,
# $v^t=w^t+(1-\rho_t)(v^{t-1}-w^{t-1})+\frac{\rho_t}{2\tau}g^t-\rho_tw^t=(1-\rho_t)(v^{t-1}+w^t-w^{t-1})+\frac{\rho_t}{2\tau}g^t$.
# Then insert $w^t-w^{t-1}=-\gamma_{t-1}v^{t-1}$. For $t=1$, $b^0=0$ implies
# $v^1=(1-\rho_1)w^1+\frac{\rho_1}{2\tau}g^1$, which is {eq}`eq-ssca-momentum` with $v^0=w^1$ and $\gamma_0=0$.
# ```

# %% [markdown]
# ## Tracking: Lemma 2
#
# Lemma 2 states that $e^t\to0$. The paper's proof cites a lemma of Ruszczyński (1980), which we know only from
# quotations. That lemma needs $\sum_t\rho_t^2<\infty$, but the paper's condition (4) does not include this. We use the
# following lemma instead.
#
# ```{prf:lemma} Tracking
# :label: ssca-lemma-tracking
#
# Let $x^t=(1-\rho_t)x^{t-1}+\rho_t(y^t+\xi^t)$. Suppose that $y^t$ is known before $\xi^t$ is drawn, and that
# $\mathbb E\xi^t=0$ and $\mathbb E\lVert\xi^t\rVert^2\le\sigma^2$ given the past. Let $\sum_t\rho_t=\infty$,
# $\rho_t\to0$ and $\lVert y^t-y^{t-1}\rVert/\rho_t\to0$. Then $x^t-y^t\to0$ almost surely if
#
# 1. $\sum_t\rho_t^2<\infty$; or
# 2. $\lVert\xi^t\rVert$ is bounded, $\rho_t\log t\to0$, and $\rho_{t-1}\le\rho_t(1+\rho_t)$ from some round on.
# ```
#
# ```{prf:proof}
# Write $x^t-y^t=n^t+z^t$.
#
# 1. *Two parts.* The noise part satisfies $n^t=(1-\rho_t)n^{t-1}+\rho_t\xi^t$ with $n^0=0$, and the drift part
#    satisfies $z^t=(1-\rho_t)(z^{t-1}-(y^t-y^{t-1}))$.
# 2. *Drift.* By assumption $\lVert z^t\rVert\le(1-\rho_t)\lVert z^{t-1}\rVert+\rho_td_t$ with $d_t\to0$. Let
#    $\varepsilon>0$. For large $t$, $d_t\le\varepsilon$ and therefore
#    $(\lVert z^t\rVert-\varepsilon)_+\le(1-\rho_t)(\lVert z^{t-1}\rVert-\varepsilon)_+$. Since $\prod_t(1-\rho_t)=0$,
#    $\limsup\lVert z^t\rVert\le\varepsilon$.
# 3. *Noise in case 1.* Given the past,
#    $\mathbb E\lVert n^t\rVert^2\le(1-\rho_t)\lVert n^{t-1}\rVert^2+\rho_t^2\sigma^2$. So
#    $\lVert n^t\rVert^2+\sigma^2\sum_{s>t}\rho_s^2$ is a nonnegative supermartingale, and $\lVert n^t\rVert^2$
#    converges almost surely. By the argument of step 2 with $d_t=\rho_t\sigma^2$, $\mathbb E\lVert n^t\rVert^2\to0$. By
#    Fatou's lemma the limit is 0.
# 4. *Noise in case 2.* Unrolling the recursion gives $n^t=\sum_{s\le t}\varphi_{s,t}\xi^s$ with
#    $\varphi_{s,t}=\rho_s\prod_{r=s+1}^t(1-\rho_r)$. Let $q_t=\sum_s\varphi_{s,t}^2$, so that
#    $q_t=(1-\rho_t)^2q_{t-1}+\rho_t^2$. By induction, $q_t\le C\rho_t$ for some $C\ge1$: if $q_{t-1}\le C\rho_{t-1}$,
#    then $q_t\le(1-\rho_t)^2C\rho_t(1+\rho_t)+\rho_t^2\le C\rho_t(1-\rho_t)+\rho_t^2\le C\rho_t$. Azuma's inequality,
#    applied to every entry of $n^t$, gives $\mathbb P(\lVert n^t\rVert>\varepsilon)\le2d\exp(-c\varepsilon^2/\rho_t)$
#    with some $c>0$. These probabilities are summable since $\rho_t\log t\to0$, so $n^t\to0$ by the Borel-Cantelli
#    lemma.
# ```
#
# ```{prf:corollary} Y Lemma 2
# :label: ssca-lemma-2
#
# If $\gamma_{t-1}/\rho_t\to0$, the $v^t$ are bounded, and condition 1 or 2 of {prf:ref}`ssca-lemma-tracking` holds,
# then $e^t\to0$ almost surely.
# ```
#
# ```{prf:proof}
# Apply {prf:ref}`ssca-lemma-tracking` to $x^t=b^t$ and $y^t=\nabla F(w^t)-2\tau w^t$. Its assumption on $y^t$ holds,
# since $\lVert y^t-y^{t-1}\rVert\le(L+2\tau)\gamma_{t-1}\lVert v^{t-1}\rVert$. By definition $e^t=x^t-y^t$.
# ```
#
# With bounded iterates and finitely many samples, the noise is bounded. By case 2, averages with
# $\rho_t=a\,t^{-\alpha}$ then track their targets for every $0<\alpha<1$. In place of $\gamma_{t-1}/\rho_t\to0$, (6)
# prints $\gamma_t/\rho_t\to0$. For powers of $t$ the two conditions are equivalent.

# %% [markdown]
# ## Best response and descent: Lemmas 3 and 4
#
# ```{prf:lemma} Y Lemma 3, repaired
# :label: ssca-lemma-3
#
# Let $\Phi_1,\Phi_2$ be differentiable and $\mu$-strongly convex, with minimizers $\bar w_1,\bar w_2$. Then
#
# $$
# \mu\,\lVert\bar w_1-\bar w_2\rVert\le\lVert\nabla\Phi_1(\bar w_2)-\nabla\Phi_2(\bar w_2)\rVert .
# $$ (eq-ssca-lemma3)
#
# If only $\lvert\Phi_1-\Phi_2\rvert\le\delta$ is known, then $\lVert\bar w_1-\bar w_2\rVert\le\sqrt{2\delta/\mu}$. The
# $\bar w^t$ of {eq}`eq-ssca-round` satisfy
# $\lVert\bar w^s-\bar w^t\rVert\le\frac{L+2\tau}{2\tau}\lVert w^s-w^t\rVert+\frac{\lVert e^s\rVert+\lVert e^t\rVert}{2\tau}$.
# ```
#
# ```{prf:proof}
# We prove the three bounds in turn.
#
# 1. Strong monotonicity of $\nabla\Phi_1$ gives
#    $\mu\lVert\bar w_1-\bar w_2\rVert^2\le\langle\nabla\Phi_1(\bar w_2)-\nabla\Phi_1(\bar w_1),\bar w_2-\bar w_1\rangle$.
#    Since $\nabla\Phi_1(\bar w_1)=\nabla\Phi_2(\bar w_2)=0$, the left factor equals
#    $\nabla\Phi_1(\bar w_2)-\nabla\Phi_2(\bar w_2)$. Apply Cauchy-Schwarz and divide by
#    $\lVert\bar w_1-\bar w_2\rVert$.
# 2. Strong convexity of $\Phi_1$ gives $\frac\mu2\lVert\bar w_1-\bar w_2\rVert^2\le\Phi_1(\bar w_2)-\Phi_1(\bar w_1)$.
#    Add the same inequality with 1 and 2 exchanged. The sum of the right sides is at most $2\delta$.
# 3. By {eq}`eq-ssca-error`, $2\tau\bar w^t=-b^t=2\tau w^t-\nabla F(w^t)-e^t$. Subtract this equation for $t$ from the
#    one for $s$. The map $2\tau w-\nabla F(w)$ is $(L+2\tau)$-Lipschitz.
# ```
#
# ```{prf:example} Values are not enough
# :label: ssca-example-3
#
# The functions $\Phi_2(w)=\frac12w^2$ and $\Phi_1(w)=\Phi_2(w)+\frac\delta2\sin\frac w{\sqrt\delta}$ differ by at most
# $\frac\delta2$, and $\Phi_1''\ge\frac12$. The minimizer of $\Phi_2$ is 0, and that of $\Phi_1$ is $\sqrt\delta\,y$
# with $y=-\frac12\cos y$, that is, $y=-0.45$. So the minimizers are $0.45\sqrt\delta$ apart.
# ```
#
# In (47) to (50) the paper argues from function values, and prints $\frac\mu2\lVert\cdot\rVert$ where strong convexity
# yields $\frac\mu2\lVert\cdot\rVert^2$. With the square, the bound of the distance is a multiple of $\sqrt\delta$
# instead of $\delta$.
#
# ```{prf:lemma} Y Lemma 4
# :label: ssca-lemma-4
#
# Suppose that the averaged surrogate is $\mu$-strongly convex, with gradient $\nabla F(w^t)+e^t$ at $w^t$ and minimizer
# $\bar w^t$. Let $\Delta=\bar w^t-w^t$ and $\gamma=\gamma_t$. Then
#
# $$
# F(w^{t+1})-F(w^t)\le\gamma\lVert e^t\rVert\lVert\Delta\rVert-\gamma\Big(\mu-\frac L2\gamma\Big)\lVert\Delta\rVert^2 .
# $$ (eq-ssca-lemma4)
# ```
#
# ```{prf:proof}
# The gradient of the surrogate is 0 at $\bar w^t$. So strong monotonicity between $\bar w^t$ and $w^t$ yields
# $\langle\nabla F(w^t)+e^t,\Delta\rangle\le-\mu\lVert\Delta\rVert^2$. For {eq}`eq-ssca-round` this is an equality with
# $\mu=2\tau$.
#
# Since $\nabla F$ is $L$-Lipschitz,
# $F(w^t+\gamma\Delta)\le F(w^t)+\gamma\langle\nabla F(w^t),\Delta\rangle+\frac L2\gamma^2\lVert\Delta\rVert^2$. Insert
# the bound of the inner product.
# ```
#
# From Lemma 4 and $e^t\to0$ the paper concludes that $\liminf\lVert\Delta\rVert=0$. It then concludes that
# $\limsup\lVert\Delta\rVert=0$, because every excursion of $\lVert\Delta\rVert$ above a fixed level lowers $F$ by a
# fixed amount. As we read it, the second conclusion needs a further condition. Between excursions, {eq}`eq-ssca-lemma4`
# allows $F$ to grow by $\frac{\gamma_t}{4(\mu-L\gamma_t/2)}\lVert e^t\rVert^2$ per round, and these amounts need not be
# summable.

# %% [markdown]
# ## Theorems 1 and 3
#
# ```{prf:theorem} Stationarity
# :label: ssca-theorem-1
#
# Under {prf:ref}`ssca-assumption`, suppose that $r_t=\gamma_t/\rho_t$ does not increase, and that $\gamma_t\le\tau/L$,
# $\rho_t\le2\rho_{t+1}$ and $\gamma_t\le2\gamma_{t+1}$. Write $R_T=\sum_{t\le T}\gamma_t\rho_t$ and
#
# $$
# V_T=\frac2\tau\Big(F(w^1)-F_{\inf}+\tau r_1\lVert w^1\rVert^2+\frac{\sigma^2}{2\tau}R_T\Big).
# $$ (eq-ssca-v)
#
# 1. $\sum_{t\le T}\gamma_t\,\mathbb E\lVert v^t\rVert^2\le V_T$.
# 2. With $G_1=(1-\rho_1)^2\lVert\nabla F(w^1)-2\tau w^1\rVert^2$,
#
#    $$
#    \sum_{t\le T}\gamma_t\,\mathbb E\lVert\nabla F(w^t)\rVert^2\le8\big(\tau^2+r_1^2(L+2\tau)^2\big)V_T+4r_1G_1+4\sigma^2R_{T+1} .
#    $$ (eq-ssca-mean)
#
# 3. If $\sum_t\gamma_t=\infty$ and $\sum_t\gamma_t\rho_t<\infty$, then $\nabla F(w^t)\to0$ almost surely.
# ```
#
# ```{prf:proof}
# The proof uses the momentum form {eq}`eq-ssca-momentum` and the energy $F(w^{t+1})+\tau r_t\lVert v^t\rVert^2$. Let
# $q=(1-\rho_t)(1-\gamma_{t-1})$, $\xi=g^t-\nabla F(w^t)$ and $r_0=r_1$.
#
# 1. *The slope along $v$.* Solving {eq}`eq-ssca-momentum` for the gradient yields
#    $\nabla F(w^t)=\frac{2\tau}{\rho_t}(v^t-qv^{t-1})-\xi$. Any vectors $v,v'$ satisfy
#    $\langle v-qv',v\rangle\ge\frac12(\lVert v\rVert^2-\lVert v'\rVert^2)+\frac{1-q}2(\lVert v\rVert^2+\lVert v'\rVert^2)$.
#    Only the summand $\frac{\rho_t}{2\tau}\xi$ of $v^t$ depends on $\xi$, so
#    $\mathbb E\langle\xi,v^t\rangle=\frac{\rho_t}{2\tau}\mathbb E\lVert\xi\rVert^2$. Moreover $1-q\ge\rho_t$. Take the
#    inner product of $\nabla F(w^t)$ with $\gamma_tv^t$:
#
#    $$
#    \gamma_t\mathbb E\langle\nabla F(w^t),v^t\rangle\ge\mathbb E\big[\tau r_t\big(\lVert v^t\rVert^2-\lVert v^{t-1}\rVert^2\big)+\tau\gamma_t\lVert v^t\rVert^2\big]-\frac{\gamma_t\rho_t\sigma^2}{2\tau} .
#    $$ (eq-ssca-slope)
#
# 2. *Energy.* By smoothness,
#    $F(w^{t+1})\le F(w^t)-\gamma_t\langle\nabla F(w^t),v^t\rangle+\frac L2\gamma_t^2\lVert v^t\rVert^2$. Insert
#    {eq}`eq-ssca-slope`, and use $L\gamma_t\le\tau$ and $r_t\le r_{t-1}$. Given the past,
#
#    $$
#    \mathbb E\big[F(w^{t+1})+\tau r_t\lVert v^t\rVert^2+\tfrac\tau2\gamma_t\lVert v^t\rVert^2\big]\le F(w^t)+\tau r_{t-1}\lVert v^{t-1}\rVert^2+\frac{\gamma_t\rho_t\sigma^2}{2\tau} .
#    $$ (eq-ssca-energy)
#
#    Sum these inequalities from $t=1$, where $v^0=w^1$. This proves point 1.
# 3. *Error.* Let $y^t=\nabla F(w^t)-2\tau w^t$ as in {prf:ref}`ssca-lemma-2`. Then
#    $\mathbb E\lVert e^t\rVert^2\le(1-\rho_t)^2\lVert e^{t-1}+y^{t-1}-y^t\rVert^2+\rho_t^2\sigma^2$. Since
#    $\lVert x+y\rVert^2\le(1+\rho)\lVert x\rVert^2+(1+\frac1\rho)\lVert y\rVert^2$ and $(1-\rho)^2(1+\rho)\le1-\rho$,
#
#    $$
#    \mathbb E\lVert e^t\rVert^2\le(1-\rho_t)\lVert e^{t-1}\rVert^2+\frac{(L+2\tau)^2\gamma_{t-1}^2}{\rho_t}\lVert v^{t-1}\rVert^2+\rho_t^2\sigma^2 .
#    $$ (eq-ssca-error-step)
#
# 4. *Sum of the errors.* Multiply {eq}`eq-ssca-error-step` by $r_t$, and sum over $t=2,\dots,T+1$. Since $r_t$ does not
#    increase and $r_t\gamma_{t-1}^2/\rho_t\le2r_1^2\gamma_{t-1}$, this bounds
#    $\sum_{t\le T}\gamma_{t+1}\mathbb E\lVert e^t\rVert^2$. Since $\gamma_t\le2\gamma_{t+1}$, the sum with the weights
#    $\gamma_t$ is at most twice as large:
#
#    $$
#    \sum_{t\le T}\gamma_t\mathbb E\lVert e^t\rVert^2\le2r_1\mathbb E\lVert e^1\rVert^2+4r_1^2(L+2\tau)^2V_T+2\sigma^2(R_{T+1}-\gamma_1\rho_1) .
#    $$ (eq-ssca-error-sum)
#
#    From $e^1=(1-\rho_1)(2\tau w^1-\nabla F(w^1))+\rho_1\xi$ follows
#    $2r_1\mathbb E\lVert e^1\rVert^2\le2r_1G_1+2\gamma_1\rho_1\sigma^2$.
# 5. *Point 2.* By {eq}`eq-ssca-error`,
#    $\lVert\nabla F\rVert^2=\lVert2\tau v-e\rVert^2\le8\tau^2\lVert v\rVert^2+2\lVert e\rVert^2$. Multiply by
#    $\gamma_t$, sum, and insert point 1 and {eq}`eq-ssca-error-sum`.
# 6. *Point 3.* Since $\sum_t\gamma_t\rho_t<\infty$, points 1 and 2 show that $\sum\gamma_t\lVert v^t\rVert^2$ and
#    $\sum\gamma_t\lVert\nabla F(w^t)\rVert^2$ are finite almost surely. Since $\sum\gamma_t=\infty$,
#    $\lVert\nabla F(w^t)\rVert\le\delta$ infinitely often for every $\delta>0$. If
#    $\lVert\nabla F(w^t)\rVert\ge2\delta$ infinitely often as well, there are infinitely many disjoint stretches
#    $s,\dots,u$ of rounds such that $\lVert\nabla F\rVert$ is at most $\delta$ at $s$, above $\delta$ in between, and
#    at least $2\delta$ at $u$. On each stretch,
#
#    $$
#    \delta\le L\lVert w^u-w^s\rVert\le L\gamma_s\lVert v^s\rVert+L\Big(\sum_{s<t<u}\gamma_t\Big)^{1/2}\Big(\sum_{s<t<u}\gamma_t\lVert v^t\rVert^2\Big)^{1/2},
#    $$ (eq-ssca-excursion)
#
#    and $\sum_{s<t<u}\gamma_t\le\delta^{-2}\sum_{s<t<u}\gamma_t\lVert\nabla F(w^t)\rVert^2$. So the right side tends to
#    0, which is a contradiction.
# ```
#
# If $\gamma_t\le\tau/L$ holds only from some round on, start the sums in this round. The paper requires that
# $\gamma_t/\rho_t$ tends to zero; we require only that it does not increase. On the other hand, our condition
# $\sum_t\gamma_t\rho_t<\infty$ implies the paper's $\sum_t\gamma_t^2<\infty$, because
# $\sum_t\gamma_t^2\le r_1\sum_t\gamma_t\rho_t$.
#
# ```{prf:corollary} Powers of $t$
# :label: ssca-corollary-powers
#
# Let $\rho_t=a_1t^{-\alpha}$ and $\gamma_t=a_2t^{-\beta}$ with $0<\alpha\le\beta<1$. The mean of
# $\mathbb E\lVert\nabla F(w^t)\rVert^2$ over $t\le T$ with the weights $\gamma_t$ is $O(T^{-\min(\alpha,1-\beta)})$, up
# to a logarithm if $\alpha+\beta=1$. If $\alpha+\beta>1$, then $\nabla F(w^t)\to0$ almost surely.
# ```
#
# ```{prf:proof}
# The sum $\sum_{t\le T}\gamma_t$ grows like $T^{1-\beta}$. $R_T$ grows like $T^{1-\alpha-\beta}$ if $\alpha+\beta<1$
# and like $\log T$ if $\alpha+\beta=1$, and is bounded if $\alpha+\beta>1$. Divide {eq}`eq-ssca-mean` by
# $\sum_{t\le T}\gamma_t$.
# ```
#
# In the table, *tracking* means that $e^t\to0$ by {prf:ref}`ssca-lemma-tracking`. The last column is the rate of
# {prf:ref}`ssca-corollary-powers`.
#
# | exponents $\alpha,\beta$ | $\sum\gamma_t^2<\infty$ | $\sum\rho_t^2<\infty$ | $\sum\gamma_t\rho_t<\infty$ | tracking | rate of the mean |
# | --- | --- | --- | --- | --- | --- |
# | paper: 0.4, 0.45 | no | no | no | yes | $T^{-0.4}$ |
# | paper: 0.3, 0.35 | no | no | no | yes | $T^{-0.3}$ |
# | our valid steps: 0.6, 0.65 | yes | yes | yes | yes | $T^{-0.35}$ |
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# Further differences:
#
# * **Assumptions.** The paper's Assumption 1, applied to its network, and items 3 and 4 of its Assumption 2, applied to
#   the quadratic surrogate, hold only on bounded sets.
# * **Indices.** The set $\mathcal N$ is partitioned into $I$ subsets, not $K$. Equation (20) lacks $\frac1B$. Theorem 4
#   should refer to Problem 8.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the random instances
runs = None  # of the method, at once; None: 100 in the full profile, 20 in the quick one

# %% tags=["hide-input"]
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle
from papers.ssca.checks import bias, binned_means, power_law, ripples, ssca
from papers.ssca.common import STEPS

settle(globals(), seed=0, runs=(100, 20))
rng = np.random.default_rng(seed)

# %% [markdown]
# **Unequal clients.** We check {prf:ref}`ssca-lemma-sampling` on all batches of size $B=2$ of three clients with 3, 7
# and 20 samples.

# %% tags=["hide-input"]
sizes = (3, 7, 20)
B = 2
centres = np.repeat([0.0, 1.0, -2.0], sizes)
samples = rng.standard_normal((sum(sizes), 4)) + centres[:, None]
clients = np.split(samples, np.cumsum(sizes)[:-1])

mean = 0.0
variance = 0.0
formula = 0.0
for client in clients:
    N_i = len(client)
    share = N_i / len(samples)
    batches = np.array([*combinations(client, B)])
    messages = share * batches.mean(1)
    mean += messages.mean(0)
    variance += messages.var(0).sum()
    formula += share**2 * (N_i - B) / (B * (N_i - 1)) * client.var(0).sum()

# %% tags=["hide-input", "nbval-check-output"]
check(
    "the weights N_i / (B N) are unbiased, to 1e-12",
    np.abs(mean - samples.mean(0)).max() < 1e-12,
)
check("the variance is the formula's, to 1e-12", abs(variance - formula) < 1e-12)

# %% [markdown]
# **The start at zero, and momentum.** We compute $\kappa_t$ for the paper's three schedules, one for each batch size.
# We compare the $\bar w^t$ of the weights {eq}`eq-ssca-bias` with the exact minimizer of (3) for $\rho_t$. For both
# weights, we compare the iterates of {eq}`eq-ssca-momentum` with those of {eq}`eq-ssca-round`.

# %% tags=["hide-input", "nbval-check-output"]
factors = bias(power_law(0.4, 0.4, 20))
products = [np.prod(1 - power_law(rho.scale, rho.exponent, 20)) for rho, _ in STEPS.values()]

tau = 0.3
T = 60
objective = ripples(rng, 40, 3, 0.5, 2.0)
rho = power_law(0.4, 0.4, T)
gamma = power_law(0.4, 0.45, T)
start = 3 * rng.standard_normal((8, 3))
batches = np.random.default_rng(1).integers(40, size=(T, 8, 2))


def compared(weights):
    """A run with these weights, and by how much momentum SGD differs from it."""
    path = ssca([objective], weights, gamma, tau, 2, start, np.random.default_rng(1))
    w = start
    v = start
    previous_gamma = 0.0
    errors = []
    for t, batch in enumerate(batches):
        errors.append(np.abs(w - path.w[t]).max())
        gradient = objective.gradient(w, batch)
        v = (1 - weights[t]) * (1 - previous_gamma) * v + weights[t] / (2 * tau) * gradient
        w = w - gamma[t] * v
        previous_gamma = gamma[t]
    return path, max(errors)


_, plain_error = compared(rho)
path, corrected_error = compared(rho * bias(rho))

linear = 0.0  # of the averages (3) along this path
curvature = 0.0
minimizer_errors = []
for t, batch in enumerate(batches):
    slope = objective.gradient(path.w[t], batch) - 2 * tau * path.w[t]
    linear = (1 - rho[t]) * linear + rho[t] * slope
    curvature = (1 - rho[t]) * curvature + rho[t] * tau
    response = path.w[t] + path.step[t]
    minimizer_errors.append(np.abs(response + linear / (2 * curvature)).max())

check(
    "1 / kappa_t is 2.50, 1.72, 1.45 for t = 1, 2, 3",
    np.abs(factors[:3] - [2.5, 1.72, 1.45]).max() < 0.005,
)
check(
    "    prod (1 - rho) at t = 20 is 0.017, 3e-4, 4e-7",
    np.allclose(products, [0.017, 3e-4, 4e-7], rtol=0.15),
)
check(
    "the weights rho / kappa give the exact minimizer of (3), to 1e-12",
    max(minimizer_errors) < 1e-12,
)
check(
    "momentum SGD has the same iterates, plain and corrected, 60 rounds, to 1e-12",
    max(plain_error, corrected_error) < 1e-12,
)

# %% [markdown]
# **Step sizes.** To see whether the conditions hold for the paper's schedules, the table shows the conditions' sums up
# to $t=10^7$ (quick profile: $10^6$), and $\gamma_t/\rho_t$ at $t=100$ and $t=10^6$.

# %% tags=["hide-input", "nbval-check-output"]
terms = {"quick": 10**6, "full": 10**7}[profile]
rows = {}
growth = []
for B, (rho, gamma) in STEPS.items():
    gamma_squares = power_law(gamma.scale**2, 2 * gamma.exponent, terms)
    growth.append(gamma_squares.sum() / gamma_squares[: terms // 10].sum())
    products = power_law(rho.scale * gamma.scale, rho.exponent + gamma.exponent, terms)
    rows[f"B = {B}"] = {
        "sum gamma^2": gamma_squares.sum(),
        "sum rho^2": power_law(rho.scale**2, 2 * rho.exponent, terms).sum(),
        "sum gamma rho": products.sum(),
        "gamma / rho at 100": gamma(100) / rho(100),
        "at 10^6": gamma(10**6) / rho(10**6),
    }
table = pd.DataFrame(rows).T
ratios = table[["gamma / rho at 100", "at 10^6"]]
expected = {10**6: [4.86, 168, 168], 10**7: [6.5, 338, 338]}[terms]
missing = 4 * terms**-0.25  # of the sum of t^-1.25 beyond these terms
limit = power_law(1.0, 0.6 + 0.65, terms).sum() + missing

check(
    f"sum gamma^2 up to {terms} is {expected}, within 2 %",
    np.allclose(table["sum gamma^2"], expected, rtol=0.02),
)
check("    and still grows by a tenth or more for ten times the rounds", min(growth) > 1.1)
check(
    "gamma / rho is 0.79, 1.19, 0.79 at 100 and 0.50, 0.75, 0.50 at 10^6",
    np.allclose(ratios, [[0.79, 0.50], [1.19, 0.75], [0.79, 0.50]], atol=0.01),
)
check("0.6 and 0.65: sum gamma rho converges, to 4.595", abs(limit - 4.5951) < 1e-3)

# %% tags=["hide-input"]
displayed(table.round(2))

# %% [markdown]
# **Tracking.** We compare the error $e^t$ for three schedules with its value without averaging ($\rho_t=1$). The loss
# $F$ has ripples ($L=1+4\cdot0.5$) and is not convex. There are 40 samples, $B=2$ and $\tau=\frac12$.

# %% tags=["hide-input", "nbval-check-output"]
T = {"quick": 1000, "full": 2000}[profile]
exponents = {  # of rho_t = t^-alpha and gamma_t = t^-beta
    "0.6, 0.75": (0.6, 0.75),
    "Y: 0.4, 0.45": (0.4, 0.45),
    "Y: 0.3, 0.35": (0.3, 0.35),
    "no averaging": (0.0, 0.75),
}
start = 3 * rng.standard_normal((min(runs, 40), 3))
paths = {}
for name, (alpha, beta) in exponents.items():
    rho = power_law(1.0, alpha, T)
    gamma = power_law(1.0, beta, T)
    paths[name] = ssca([objective], rho, gamma, 0.5, 2, start, rng)
errors = pd.DataFrame({name: np.square(path.error).mean(1) for name, path in paths.items()})
errors **= 0.5
last = errors[-100:].mean()
ratio = last / errors[:100].mean()

check(
    "0.6, 0.75: the error falls below 2/5 of that of the first 100 rounds",
    ratio["0.6, 0.75"] < 0.4,
)
check(
    "Y's exponents: the error falls too, below 3/4",
    ratio.filter(like="Y").max() < 0.75,
)
check(
    "    in the end, the larger the exponent of rho, the smaller the error, by a fifth or more each time",
    (last / last.shift(-1)).max() < 0.8,
)
check("no averaging: the error does not fall below 3/4", ratio["no averaging"] > 0.75)

# %% tags=["hide-input"]
fig = plot.figure((5.2, 3.4))
ax = fig.subplots()
ax.set(xlabel="round t", ylabel="error of the surrogate's gradient", xscale="log")
for name, error in errors.items():
    ax.plot(*binned_means(error.to_numpy(), first=10), label=name)
plot.plain_log(ax)
ax.legend()
plot.show(
    fig,
    alt="Root mean square error of the averaged surrogate's gradient against the round, both axes logarithmic: level without averaging, falling for all three "
    "pairs of exponents, fastest for 0.6 and 0.75.",
    caption="With averaging, the root mean square error $\\lVert e^t\\rVert$ falls; without, it stays level. "
    "The labels are the exponents of $\\rho_t$ and $\\gamma_t$; Y marks the paper's.",
)

# %% [markdown]
# **Lemmas 3 and 4.** We check both lemmas along the runs with averaging above, in their first 500 rounds, and
# {prf:ref}`ssca-example-3`.

# %% tags=["hide-input", "nbval-check-output"]
L = objective.smoothness
lemma_3 = []
lemma_4 = []
for name in ("0.6, 0.75", "Y: 0.4, 0.45", "Y: 0.3, 0.35"):
    w = paths[name].w[:500]
    step = paths[name].step[:500]
    error = paths[name].error[:500]
    s, t = rng.integers(500, size=(2, 50))  # 50 pairs of rounds of every run
    move = np.linalg.norm(w[s] - w[t], axis=-1)
    response_move = np.linalg.norm((w + step)[s] - (w + step)[t], axis=-1)
    lemma_3.append(response_move - ((L + 1) * move + error[s] + error[t]))

    gamma = power_law(1.0, exponents[name][1], 500)[:, None]
    size = np.linalg.norm(step, axis=-1)
    bound = gamma * error * size - gamma * (1 - L * gamma / 2) * size**2
    values = np.array([objective.value(models) for models in w])
    lemma_4.append(np.diff(values, axis=0) - bound[:-1])


def example_root(delta):
    """The minimizer near 0 of the example's function, over sqrt(delta)."""
    root = np.sqrt(delta)
    return abs(brentq(lambda w: w + root / 2 * np.cos(w / root), -root, 0)) / root


roots = [example_root(delta) for delta in (1.0, 1e-2, 1e-4, 1e-6)]

check(
    f"Lemma 3: the best response is Lipschitz up to errors, on {np.size(lemma_3)} pairs",
    np.max(lemma_3) <= 1e-12,
)
check("Lemma 4 in all rounds of all runs", np.max(lemma_4) <= 1e-12)
check(
    "the example: minimizers 0.45 sqrt(delta) apart for delta = 1 to 1e-6",
    np.allclose(roots, 0.45, rtol=0, atol=0.005),
)

# %% [markdown]
# **Theorem 1.** We check points 1 and 2 on another loss with ripples, with its $\sigma^2$ and $F_{\inf}$ and with
# $\tau=3$, so that $\gamma_t\le\tau/L$. The last three columns of the table are means of $\lVert\nabla F\rVert^2$: with
# the weights $\gamma_t$ over all rounds, the same over the first tenth, and with equal weights over the last tenth.

# %% tags=["hide-input", "nbval-check-output"]
T = {"quick": 400, "full": 1000}[profile]
tau = 3.0
batch = 2
objective = ripples(rng, 40, 3, 0.25, 2.0)
L = objective.smoothness
ticks = np.linspace(-3, 6, 40)
grid = np.stack(np.meshgrid(ticks, ticks, ticks), -1).reshape(-1, 3)
floor = objective.value(grid).min() - 0.1  # below the least value of a fine grid
sample_gradients = objective.h * (grid[:, None] - objective.a)  # without ripples
sigma2 = sample_gradients.var(1).sum(-1).max() / batch
w1 = np.array([4.0, -1.0, 3.0])
schedules = {  # a1, alpha, a2, beta of rho_t = a1 t^-alpha and gamma_t = a2 t^-beta
    "Y, B = 1": (0.4, 0.4, 0.4, 0.45),
    "Y, B = 100": (0.9, 0.3, 0.9, 0.35),
    "0.45, 0.6": (0.9, 0.45, 0.9, 0.6),
}


def theorem_1_bounds(rho, gamma):
    """V_T of point 1, and the bound of point 2."""
    noise = np.cumsum(gamma * rho)
    r1 = gamma[0] / rho[0]
    fall = objective.value(w1) - floor
    V = 2 / tau * (fall + tau * r1 * w1 @ w1 + sigma2 / (2 * tau) * noise[T - 1])
    G1 = (1 - rho[0]) ** 2 * np.square(objective.gradient(w1) - 2 * tau * w1).sum()
    factor = tau**2 + r1**2 * (L + 2 * tau) ** 2
    return V, 8 * factor * V + 4 * r1 * G1 + 4 * sigma2 * noise[T]


rows = {}
for name, (a1, alpha, a2, beta) in schedules.items():
    rho = power_law(a1, alpha, T + 1)
    gamma = power_law(a2, beta, T + 1)
    V, bound = theorem_1_bounds(rho, gamma)
    start = np.tile(w1, (runs, 1))
    path = ssca([objective], rho[:T], gamma[:T], tau, batch, start, rng)
    gradients = np.array([objective.gradient(w) for w in path.w])
    speed = np.square(path.step).sum(-1).mean(1)  # |v|^2, mean over the runs
    slope = np.square(gradients).sum(-1).mean(1)
    tenth = T // 10
    rows[name] = {
        "sum gamma |v|^2": gamma[:T] @ speed,
        "bound V_T": V,
        "sum gamma |F'|^2": gamma[:T] @ slope,
        "bound": bound,
        "weighted mean": np.average(slope, weights=gamma[:T]),
        "mean, T / 10": np.average(slope[:tenth], weights=gamma[:tenth]),
        "last": slope[-tenth:].mean(),
        "farthest": np.abs(path.w - 1.5).max(),
        "gamma": gamma[0],
    }
table = pd.DataFrame(rows).T

check(
    "the runs stay where sigma and the floor were measured, and gamma <= tau / L",
    table["farthest"].max() <= 4.5 and table["gamma"].max() <= tau / L,
)
check(
    "point 1: the sum of gamma |v|^2 is below V_T",
    (table["sum gamma |v|^2"] <= table["bound V_T"]).all(),
)
check(
    "    and above a fiftieth of it",
    (table["sum gamma |v|^2"] > 0.02 * table["bound V_T"]).all(),
)
check(
    "point 2: the sum of gamma |grad F|^2 is below its bound",
    (table["sum gamma |F'|^2"] <= table["bound"]).all(),
)
check(
    "the weighted mean falls with T, Y's exponents included",
    (table["weighted mean"] < 0.6 * table["mean, T / 10"]).all(),
)

# %% tags=["hide-input"]
displayed(table.drop(columns=["farthest", "gamma"]).round(3))

# %% [markdown]
# The checks are in {download}`note_ssca.py <src/note_ssca.py>`.
