# %% [markdown]
# # SSCA with constraints: the server's program and the penalty
#
# In every round of Algorithms 2 and 4 of {cite:t}`ye2021ssca` (Y below), the server solves a convex program of averaged
# quadratic surrogates. This note proves Lemmas 1, 5 and 6 and Theorems 2, 4 and 5 for the quadratic surrogate. Equation
# numbers in plain brackets are the paper's.
#
# Our findings:
#
# * **One formula is enough to solve the program, for any number of constraints.** It maximises the dual coordinate by
#   coordinate ({prf:ref}`ssca-lemma-dual`).
# * **Part ii of Theorem 2 is false without a constraint qualification** ({prf:ref}`ssca-example-penalty`). With one,
#   the slack vanishes at a finite penalty ({prf:ref}`ssca-theorem-exact`).
# * **Part i of Theorem 2** is proved here under stronger step-size conditions than (6) ({prf:ref}`ssca-theorem-2`).

# %% [markdown]
# ## The server's program
#
# The constraint functions have the averaged surrogates $\bar F_m(w)=A_m+\langle B_m,w\rangle+\tau\lVert w\rVert^2$ with
# the curvature $\tau$; the level $U_m$ is already subtracted from $A_m$. The objective
# $\langle a_0,w\rangle+\tau_0\lVert w\rVert^2$ is either an averaged surrogate ($\tau_0=\tau$) or the exact
# $\lVert w\rVert^2$ of (38) ($a_0=0$, $\tau_0=1$). With slacks $s_m$ and a penalty $c$, Problem 5 of the paper is
#
# $$
# \min_{w,\,s}\;\langle a_0,w\rangle+\tau_0\lVert w\rVert^2+c\sum_{m=1}^Ms_m\quad\text{s.t.}\quad\bar F_m(w)\le s_m,\;s_m\ge0 .
# $$ (eq-ssca-program)
#
# ```{prf:lemma} The dual, one coordinate at a time
# :label: ssca-lemma-dual
#
# Write $u(\nu)=\tau_0+\tau\sum_m\nu_m$ and $a(\nu)=a_0+\sum_m\nu_mB_m$. The dual of {eq}`eq-ssca-program` is
#
# $$
# \max_{0\le\nu\le c}h(\nu),\qquad h(\nu)=\sum_m\nu_mA_m-\frac{\lVert a(\nu)\rVert^2}{4u(\nu)},
# $$ (eq-ssca-dual)
#
# where $h$ is concave. There is no duality gap. For a maximiser $\nu$ of $h$, the solution of {eq}`eq-ssca-program` is
#
# $$
# w=-\frac{a(\nu)}{2u(\nu)},\qquad s_m=\max\{0,\bar F_m(w)\} .
# $$ (eq-ssca-response)
#
# Fix all coordinates but $\nu_m$. Let $a'$ and $u'$ be the values of $a$ and $u$ at $\nu_m=0$, and let
# $p=a'-\frac{u'}\tau B_m$ and $D=\lVert B_m\rVert^2-4\tau A_m$. A maximiser of $h$ in $\nu_m$ alone is
#
# $$
# \nu_m=\Big[\frac1\tau\Big(\frac{\tau\lVert p\rVert}{\sqrt D}-u'\Big)\Big]_0^c\ \text{ if }D>0,\qquad\nu_m=c\ \text{ if }D\le0,
# $$ (eq-ssca-coordinate)
#
# which is unique unless $p=0$ and $D=0$.
# ```
#
# ```{prf:proof}
# Let $\nu_m$ be the multipliers of $\bar F_m\le s_m$ and $\mu_m$ those of $s_m\ge0$.
#
# 1. *Dual.* The Lagrangian is linear in $s_m$ with slope $c-\nu_m-\mu_m$. Its infimum over $s_m$ is finite exactly if
#    this slope is 0, which requires $0\le\nu_m\le c$. As a function of $w$ the Lagrangian is
#    $\langle a(\nu),w\rangle+u(\nu)\lVert w\rVert^2+\sum_m\nu_mA_m$, with the minimizer {eq}`eq-ssca-response` and the
#    minimum $h(\nu)$.
# 2. *Concavity.* $h$ is an infimum of affine functions of $\nu$. (The paper calls the dual convex.)
# 3. *No gap.* The program is convex, and large $s_m$ are strictly feasible (Slater). It is strongly convex in $w$, so
#    the optimal $w$ is unique. This $w$ minimises the Lagrangian at every maximiser $\nu$.
# 4. *One coordinate.* Put $u=u'+\tau\nu_m$. Then $a(\nu)=a'+\frac{u-u'}\tau B_m=p+\frac u\tau B_m$, and
#
#    $$
#    h=\text{const}-\frac{\lVert p\rVert^2}{4u}-\frac{u}{4\tau^2}\lVert B_m\rVert^2+\frac u\tau A_m,\qquad\frac{dh}{du}=\frac1{4\tau^2}\Big(\frac{\tau^2\lVert p\rVert^2}{u^2}-D\Big).
#    $$ (eq-ssca-slope-u)
#
#    If $D\le0$, $h$ does not decrease in $u$. If $D>0$, $h$ increases up to $u=\tau\lVert p\rVert/\sqrt D$ and then
#    decreases. Only for $p=0$ and $D=0$ is $h$ constant.
# ```
#
# ```{prf:corollary} Y Lemma 1
# :label: ssca-lemma-1
#
# Let $M=1$, $a_0=0$, $\tau_0=1$ and $b=\lVert B\rVert^2$, and let the level $U$ not be subtracted from $A$. Then
#
# $$
# w=\frac{-\nu B}{2(1+\nu\tau)},\qquad\nu=\Big[\frac1\tau\Big(\sqrt{\frac b{b+4\tau(U-A)}}-1\Big)\Big]_0^c\ \text{ or }\ c,
# $$ (eq-ssca-lemma1)
#
# where $\nu=c$ if $b+4\tau(U-A)\le0$. If $A\le U$, then $w=0$, and $\nu=0$ unless $b=0$ and $A=U$. If $\nu<c$, then
# $s=0$.
# ```
#
# ```{prf:proof}
# In {prf:ref}`ssca-lemma-dual`, $a'=0$ and $u'=1$, so $p=-\frac B\tau$ and $\tau\lVert p\rVert=\sqrt b$. This proves
# {eq}`eq-ssca-lemma1`. Let $A\le U$, so $D\ge0$. If $D>0$, the root in {eq}`eq-ssca-lemma1` is at most 1, so $\nu=0$
# and $w=0$. If $D=0$, then $b=0$ and $A=U$, so $B=0$ and $w=0$. If $\nu<c$, the multiplier $\mu=c-\nu$ of $s\ge0$ is
# positive, and $\mu s=0$ implies $s=0$.
# ```
#
# ```{prf:lemma} Sweeps converge
# :label: ssca-lemma-sweeps
#
# A sweep applies {eq}`eq-ssca-coordinate` to every coordinate in turn. If $D\ne0$ for all coordinates, every limit
# point of the sweeps is a maximiser of $h$, and $w$ converges to the solution.
# ```
#
# ```{prf:proof}
# Since $D\ne0$, the maximiser in each coordinate is unique. So {eq}`eq-ssca-coordinate` and a whole sweep $S$ are
# continuous in $\nu$.
#
# 1. The value $h$ does not decrease along the sweeps and is bounded, so $h(S(\nu))=h(\nu)$ at a limit point $\nu$.
#    Hence no step of the sweep from $\nu$ raises $h$. By uniqueness, no step moves $\nu$, so $\nu$ is maximal in each
#    coordinate.
# 2. The dual $h$ is concave and differentiable on the box $[0,c]^M$. On a box, a point that is maximal in each
#    coordinate satisfies the optimality conditions, so $\nu$ is a maximiser. By {prf:ref}`ssca-lemma-dual`, $w(\nu)$ is
#    the unique solution, so $w$ converges to it.
# ```
#
# Some random programs need hundreds of sweeps (table below). So the library uses the formula only for $M=1$,
# where one step is exact. For $M\ge2$ an interior point method follows the central path of the dual by forty Newton
# steps.

# %% [markdown]
# ## Convergence for a fixed penalty: Lemmas 5 and 6, Theorem 2, i
#
# Let the levels be subtracted from $F_1,\dots,F_M$, let $c$ be fixed, and let
#
# $$
# \Phi(w)=F_0(w)+c\sum_m[F_m(w)]_+,\qquad\bar\Phi^t(w)=\bar F_0^t(w)+c\sum_m[\bar F_m^t(w)]_+ .
# $$ (eq-ssca-phi)
#
# Without the slacks $s$, Problem 4 of the paper is to minimise $\Phi$, and the server's program {eq}`eq-ssca-program`
# is to minimise $\bar\Phi^t$. Let $\bar w^t$ be the minimizer of $\bar\Phi^t$, and $\Delta^t=\bar w^t-w^t$. The
# iterates move by $w^{t+1}=w^t+\gamma_t\Delta^t$, and the surrogates are averaged with the weights $\rho_t$. The errors
# of the averaged surrogates are $e_m=\nabla\bar F_m^t(w^t)-\nabla F_m(w^t)$ and $\epsilon_m=\bar F_m^t(w^t)-F_m(w^t)$.
#
# ```{prf:assumption}
# :label: ssca-assumption-2
#
# There are finitely many samples. The iterates stay in a ball, on which every $\nabla F_m$ is $L$-Lipschitz.
# ```
#
# Under this assumption all functions, gradients and noise terms are bounded.
#
# ```{prf:lemma} Y Lemma 5
# :label: ssca-lemma-5
#
# If $\gamma_{t-1}/\rho_t\to0$, $\sum_t\rho_t=\infty$, $\rho_t\log t\to0$ and $\rho_{t-1}\le\rho_t(1+\rho_t)$ from some
# round on, then $e_m\to0$ and $\epsilon_m\to0$ almost surely.
# ```
#
# ```{prf:proof}
# The coefficients $B_m$ and $A_m$ are averages with the targets $\nabla F_m-2\tau w$ and
# $F_m-\langle\nabla F_m,w\rangle+\tau\lVert w\rVert^2$ at $w=w^t$. Both targets are Lipschitz in $w$ on the ball and
# move by $O(\gamma_{t-1})$ per round, so point 2 of {prf:ref}`ssca-lemma-tracking` applies. The error of $B_m$ is
# $e_m$. The error of $A_m$ is $\epsilon_m-\langle e_m,w^t\rangle$.
# ```
#
# The paper's Lemma 6 says that the averaged surrogates converge uniformly along a subsequence. For quadratics with
# curvature $\tau$, it is enough that $A_m$ and $B_m$ converge. By Lemma 5 they do along every subsequence with
# $w^t\to w^\star$, and the limit is the exact surrogate $\hat F_m$, which has the value and the gradient of $F_m$ at
# $w^\star$.
#
# ```{prf:lemma} Descent of the penalty
# :label: ssca-lemma-penalty
#
# With $\gamma=\gamma_t$ and $\Delta=\Delta^t$,
#
# $$
# \begin{aligned}
# \Phi(w^{t+1})\le\Phi(w^t)&-\gamma\Big(2\tau_0-\frac{L(1+cM)}2\gamma\Big)\lVert\Delta\rVert^2\\
# &+\gamma\lVert e_0\rVert\lVert\Delta\rVert+\gamma c\sum_m\big(2\lvert\epsilon_m\rvert+\lVert e_m\rVert\lVert\Delta\rVert\big).
# \end{aligned}
# $$ (eq-ssca-penalty)
# ```
#
# ```{prf:proof}
# Functions without an argument are evaluated at $w=w^t$.
#
# 1. *Smoothness.*
#    $F_m(w+\gamma\Delta)\le F_m+\gamma\langle\nabla F_m,\Delta\rangle+\frac L2\gamma^2\lVert\Delta\rVert^2$. Since
#    $[\cdot]_+$ is convex, increasing and 1-Lipschitz,
#    $[F_m(w+\gamma\Delta)]_+\le(1-\gamma)[F_m]_++\gamma[F_m+\langle\nabla F_m,\Delta\rangle]_++\frac L2\gamma^2\lVert\Delta\rVert^2$.
# 2. *Surrogate.* Since $\bar F_m$ is quadratic,
#    $F_m+\langle\nabla F_m,\Delta\rangle=\bar F_m(\bar w)-\tau\lVert\Delta\rVert^2-\epsilon_m-\langle e_m,\Delta\rangle$.
#    Likewise
#    $\langle\nabla F_0,\Delta\rangle=\bar F_0(\bar w)-\bar F_0(w)-\tau_0\lVert\Delta\rVert^2-\langle e_0,\Delta\rangle$.
#    Moreover $[F_m]_+\ge[\bar F_m(w)]_+-\lvert\epsilon_m\rvert$.
# 3. *Sum.* Insert step 2 into step 1. Then $\Phi$ grows by at most
#    $\gamma\big(\bar\Phi(\bar w)-\bar\Phi(w)-\tau_0\lVert\Delta\rVert^2\big)$ plus the terms with $e_m$, $\epsilon_m$
#    and $\gamma^2$. Since $\bar\Phi$ is $2\tau_0$-strongly convex with minimizer $\bar w$,
#    $\bar\Phi(\bar w)-\bar\Phi(w)\le-\tau_0\lVert\Delta\rVert^2$.
# ```
#
# ```{prf:theorem} Y Theorems 2 and 4, i
# :label: ssca-theorem-2
#
# Under {prf:ref}`ssca-assumption-2`, let $\rho_t$ be as in {prf:ref}`ssca-lemma-5`, let $r_t=\gamma_t/\rho_t$ not
# increase, and suppose that
#
# $$
# \sum_t\gamma_t=\infty,\qquad\sum_t\gamma_t\sqrt{\rho_t}<\infty,\qquad\sum_t\gamma_tr_t^2<\infty .
# $$ (eq-ssca-steps)
#
# Then $\Delta^t\to0$ almost surely. Every limit point $w^\star$ has multipliers $0\le\lambda_m\le c$ with
#
# $$
# \nabla F_0+\sum_m\lambda_m\nabla F_m=0,\quad\lambda_m=0\text{ where }F_m<0,\quad\lambda_m=c\text{ where }F_m>0,
# $$ (eq-ssca-kkt)
#
# with all functions evaluated at $w^\star$. If no $F_m(w^\star)$ is positive, $w^\star$ is a KKT point of Problem 3.
# ```
#
# ```{prf:proof}
# $K$ denotes constants, which may differ from line to line.
#
# 1. *Noise.* As in the proof of {prf:ref}`ssca-lemma-tracking`, split the errors into a noise part $n^t$ and a drift
#    part $z^t$: $\lVert e_m\rVert$ and $\lvert\epsilon_m\rvert$ are at most $K(\lVert n^t\rVert+\lVert z^t\rVert)$ with
#    $\mathbb E\lVert n^t\rVert^2\le K\rho_t$ and
#    $\lVert z^t\rVert\le(1-\rho_t)\big(\lVert z^{t-1}\rVert+K\gamma_{t-1}\lVert\Delta^{t-1}\rVert\big)$. So
#    $\mathbb E\sum_t\gamma_t\lVert n^t\rVert\le K\sum_t\gamma_t\sqrt{\rho_t}<\infty$.
# 2. *Drift.* The bound on $\lVert z^t\rVert$ yields
#    $\rho_t\lVert z^{t-1}\rVert\le\lVert z^{t-1}\rVert-\lVert z^t\rVert+K\gamma_{t-1}\lVert\Delta^{t-1}\rVert$.
#    Multiply by $r_t$, which does not increase, and sum over the rounds. For every $\eta>0$,
#
#    $$
#    \sum_t\gamma_t\lVert z^{t-1}\rVert\le r_1\lVert z^0\rVert+K\sum_tr_t\gamma_t\lVert\Delta^t\rVert\le K+\eta\sum_t\gamma_t\lVert\Delta^t\rVert^2+\frac{K^2}{4\eta}\sum_t\gamma_tr_t^2 ,
#    $$ (eq-ssca-drift)
#
#    where all sums have the same last round. With another $K$, this also bounds $\sum_t\gamma_t\lVert z^t\rVert$.
# 3. *Sum of squares.* Since $\lVert\Delta^t\rVert$ is bounded, the second line of {eq}`eq-ssca-penalty` is at most
#    $K\gamma(\lVert n^t\rVert+\lVert z^t\rVert)$. Sum {eq}`eq-ssca-penalty` and insert steps 1 and 2, with $\eta$ so
#    small that the drift cancels at most half of the negative terms $-2\tau_0\gamma\lVert\Delta\rVert^2$. Since
#    $\gamma_t\to0$, the term with $\gamma^2$ is small from some round on. As $\Phi$ is bounded below on the ball,
#    $\sum_t\gamma_t\lVert\Delta^t\rVert^2<\infty$.
# 4. *Best response.* Let $D(w)=\arg\min\hat\Phi_w-w$, where $\hat\Phi_w$ is $\Phi$ with the exact surrogates at $w$ in
#    place of the $F_m$. By the bound from function values in {prf:ref}`ssca-lemma-3`, $D$ is continuous on the ball,
#    and hence uniformly continuous. By the same bound and Lemma 5, $\Delta^t-D(w^t)\to0$.
# 5. *Limit.* By step 3 and $\sum_t\gamma_t=\infty$, $\lVert\Delta^t\rVert\le\delta$ infinitely often for every
#    $\delta>0$. If $\lVert\Delta^t\rVert\ge2\delta$ infinitely often as well, take stretches $s,\dots,u$ of rounds with
#    $\lVert\Delta^s\rVert\le\delta$, $\lVert\Delta^u\rVert\ge2\delta$ and $\lVert\Delta^t\rVert>\delta$ in between. By
#    step 4, $\lVert D(w^u)-D(w^s)\rVert\ge\frac\delta2$ on late stretches, so $\lVert w^u-w^s\rVert$ is at least some
#    fixed number. But
#    $\lVert w^u-w^s\rVert\le\gamma_s\delta+\delta^{-1}\sum_{s<t<u}\gamma_t\lVert\Delta^t\rVert^2\to0$. This
#    contradiction shows that $\Delta^t\to0$.
# 6. *Limit points.* By steps 4 and 5, $D(w^\star)=0$. So $w^\star$ solves {eq}`eq-ssca-program` with the exact
#    surrogates at $w^\star$, which have the values and gradients of the $F_m$ there. The KKT conditions of this
#    program, with $\lambda$ for $\nu$, are {eq}`eq-ssca-kkt`.
# ```
#
# For powers $\rho_t=a_1t^{-\alpha}$, $\gamma_t=a_2t^{-\beta}$, the conditions {eq}`eq-ssca-steps` are $\beta\le1$,
# $\beta+\frac\alpha2>1$ and $3\beta-2\alpha>1$. The pair 0.6, 0.75 satisfies them, but 0.6, 0.65 and the paper's
# exponents do not. The conditions of {prf:ref}`ssca-theorem-1` (without constraints) are weaker, because errors enter
# its proof squared, but {eq}`eq-ssca-penalty` contains $\lvert\epsilon_m\rvert$ itself. We do not know whether
# {eq}`eq-ssca-steps` is necessary.

# %% [markdown]
# ## Exact penalty: Theorem 2, ii
#
# Let $w_j$ be a limit point of the algorithm with the penalty $c_j$, and let $c_j\to\infty$. The paper states that the
# slack vanishes and that limit points of the $w_j$ are KKT points. It cites a proof, but states no constraint
# qualification. Two examples show that one is needed.
#
# ```{prf:example} Without a condition
# :label: ssca-example-penalty
#
# 1. *No KKT point.* Let $F_0(w)=w$ and $F_1(w)=w^2$. Only $w=0$ is feasible, and $1+\lambda\cdot0=0$ has no solution.
#    The minimizer of $\Phi$ is $w_j=-\frac1{2c_j}$, with the slack $\frac1{4c_j^2}>0$. So the slack vanishes only in
#    the limit, and the limit is not a KKT point.
# 2. *The slack stays.* Let $F_0(w)=\frac{w^2}{20}$ and $F_1(w)=\frac{3w^2}{16\pi}+\sin w$. Both gradients are
#    Lipschitz. The feasible set is an interval $[w_-,0]$. Since $F_1(-\frac\pi2)<0$ and $F_1'\ne0$ at both ends, every
#    feasible point is regular. For every $c_j\ge1$, $\Phi$ has a local minimum $w_j$ just left of $\frac{4\pi}3$, where
#    $F_1$ has a local minimum. The slack at $w_j$ tends to $F_1(\frac{4\pi}3)=\frac\pi3-\frac{\sqrt3}2=0.181$, so the
#    limit is not feasible.
#
# In the second example $F_1'=0$ at an *infeasible* point, so regularity of all feasible points is not enough.
# ```
#
# ```{prf:theorem} Y Theorems 2 and 4, ii
# :label: ssca-theorem-exact
#
# Let $w_j$ satisfy {eq}`eq-ssca-kkt` with $c_j\to\infty$. Let $w_\infty$ be a limit point of $w_j$ at which the *extended
# Mangasarian-Fromovitz condition* holds: some $v$ has $\langle\nabla F_m(w_\infty),v\rangle<0$ for all $m$ with
# $F_m(w_\infty)\ge0$. Then along the subsequence that converges to $w_\infty$ the slack is 0 from some $j$ on, and
# $w_\infty$ is a KKT point of Problem 3.
#
# For convex $F_1,\dots,F_M$ the condition holds everywhere if some $\hat w$ has $F_m(\hat w)<0$ for all $m$ (Slater).
# If $F_0$ is convex too and $\lambda^\star$ are multipliers of Problem 3, the slack is 0 for every
# $c>\max_m\lambda^\star_m$.
# ```
#
# ```{prf:proof}
# We consider the subsequence with $w_j\to w_\infty$.
#
# 1. *The multipliers $\lambda_m$ are bounded.* Otherwise divide {eq}`eq-ssca-kkt` by $\max_m\lambda_m$ and pass to a
#    limit: $\sum_m\hat\lambda_m\nabla F_m(w_\infty)=0$ with $\hat\lambda\ge0$ and $\max_m\hat\lambda_m=1$. If
#    $F_m(w_\infty)<0$, then $\lambda_m=0$ for large $j$, so $\hat\lambda_m=0$. Take the inner product of the sum with
#    $v$: no term is positive and one is negative, which is a contradiction.
# 2. *Slack.* If $F_m(w_j)>0$, then $\lambda_m=c_j$, which exceeds the bound of step 1 for large $j$. So $s_j=0$ for
#    large $j$. In the limit {eq}`eq-ssca-kkt` holds with $F_m(w_\infty)\le0$, and with $\lambda_m=0$ where
#    $F_m(w_\infty)<0$.
# 3. *Slater.* Let $v=\hat w-w$. By convexity $\langle\nabla F_m(w),v\rangle\le F_m(\hat w)-F_m(w)<0$ where
#    $F_m(w)\ge0$.
# 4. *Convex.* A solution $w^\star$ of Problem 3 minimises $F_0+\sum_m\lambda_m^\star F_m$. So
#    $\Phi(w)\ge F_0(w)+\sum_m\lambda^\star_mF_m(w)+\sum_m(c-\lambda_m^\star)[F_m(w)]_+\ge F_0(w^\star)+\sum_m(c-\lambda^\star_m)[F_m(w)]_+$,
#    and $\Phi(w^\star)=F_0(w^\star)$. Points that satisfy {eq}`eq-ssca-kkt` minimise the convex $\Phi$. So for
#    $c>\max_m\lambda^\star_m$ their slack is 0.
# ```
#
# For the network and the constraint $F\le U$ of (37), the condition is that $\nabla F(w_\infty)\ne0$ if
# $F(w_\infty)\ge U$. We cannot rule out that $w_\infty$ is a stationary point of $F$ with a loss of $U$ or more.

# %% [markdown]
# ## Penalty or constraint: Theorem 5
#
# Problem (27) minimises $F+\lambda\lVert w\rVert^2$. Problem (37) minimises $\lVert w\rVert^2$ subject to $F\le U$.
#
# ```{prf:theorem} Y Theorem 5
# :label: ssca-theorem-5
#
# 1. If $w^*$ is a local minimum of (27) with $\lambda>0$, it is also a local minimum of (37) with $U=F(w^*)$.
# 2. If $w^\dagger$ is a local minimum of (37) and $\nabla F(w^\dagger)\ne0$, its constraint has a multiplier $\xi\ge0$.
#    If $\xi>0$, $w^\dagger$ is a stationary point of (27) with $\lambda=\frac1\xi$.
# 3. In part 2, suppose that $F$ is twice continuously differentiable. If $\nabla^2F(w^\dagger)+2\lambda I$ is positive
#    definite, $w^\dagger$ is a local minimum of (27). The paper's condition $\nabla^2F(w^\dagger)+\lambda I\succeq0$
#    suffices for this, but $\nabla^2F(w^\dagger)+2\lambda I\succeq0$ does not.
# ```
#
# ```{prf:proof}
# The proof has three parts.
#
# 1. For $w$ near $w^*$ with $F(w)\le F(w^*)$, local minimality implies
#    $\lambda\lVert w^*\rVert^2\le F(w)-F(w^*)+\lambda\lVert w\rVert^2\le\lambda\lVert w\rVert^2$. So
#    $\lVert w^*\rVert\le\lVert w\rVert$.
# 2. Since $\nabla F(w^\dagger)\ne0$ is a constraint qualification, $2w^\dagger+\xi\nabla F(w^\dagger)=0$ with some
#    $\xi\ge0$. If $\xi>0$, divide by $\xi$.
# 3. Under the paper's condition the Hessian of (27) is $\nabla^2F+2\lambda I\succeq\lambda I\succ0$. But
#    $\nabla^2F+2\lambda I\succeq0$ is not enough. Let $F(w)=(w-1)^3-w^2$, $w^\dagger=1$ and $U=-1$. Since $F'(1)=-2$,
#    the feasible points near 1 are those with $w\ge1$. So $w^\dagger$ is a local minimum of (37), with $\xi=\lambda=1$
#    and $F''(1)+2\lambda=0$. But the objective of (27), $(w-1)^3$, has no local minimum at 1.
# ```
#
# For $F(w)=-w^4$ and $U=-1$, the local minimum $w^\dagger=1$ of (37) is even a local *maximum* of (27) with
# $\lambda=2$.
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# Further differences:
#
# * **Theorem 4** should refer to the constraints of Problem 8, not of Problem 3.
# * **Equation (32)** lacks a minus sign before the sum of $y\log Q$.
# * **The averages start at zero.** This scales $A_m$ and $B_m$ by the factor $\kappa_t$ ({prf:ref}`ssca-lemma-bias`),
#   but not $U$. In the first rounds the server therefore underestimates the loss.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer instances, shorter runs
seed = 0  # of the random instances
instances = None  # of the program; None: 1000 in the full profile, 300 in the quick one

# %% tags=["hide-input"]
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import torch
from scipy.optimize import brentq, minimize

from fedlib.solvers.interior_point import best_response
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle
from papers.ssca.checks import (
    Program,
    binned_means,
    dual,
    evaluate,
    minimizer,
    multipliers,
    no_surrogates,
    power_law,
    primal,
    ripples,
    ssca,
)

settle(globals(), seed=0, instances=(1000, 300, 100))
rng = np.random.default_rng(seed)


def random_programs(R, M, d, *, exact):
    """R random programs, with the exact objective |w|^2 or with an averaged one."""
    a0 = np.zeros((R, d)) if exact else rng.standard_normal((R, d))
    tau0 = 1.0 if exact else 0.1
    A = 2 * rng.standard_normal((R, M))
    size = np.exp(rng.standard_normal((R, M, 1)))
    B = size * rng.standard_normal((R, M, d))
    return Program(a0=a0, A=A, B=B, tau0=tau0, tau=0.1, c=5.0)


def duality_gap(p, w, nu):
    """Between primal and dual, relative."""
    height = dual(p, nu)
    return (primal(p, w) - height) / (1 + np.abs(height))


def library_solutions(p):
    """w and nu that the library's server finds."""
    solve = partial(best_response, tau=p.tau, penalty=p.c, curvature=p.tau0)
    a0, B, A = map(torch.from_numpy, (p.a0, p.B, p.A))
    response = torch.vmap(solve)(a0, B, A, torch.zeros_like(A))
    return response.w.numpy(), response.nu.numpy()


def constrained_minimum(value, gradient, start, function, level, tolerance):
    """SLSQP's local minimizer where the function is at most `level`."""
    constraint = {
        "type": "ineq",
        "fun": lambda w: level - function.value(w),
        "jac": lambda w: -function.gradient(w),
    }
    return minimize(
        value,
        start,
        jac=gradient,
        method="SLSQP",
        constraints=constraint,
        options={"ftol": tolerance},
    ).x

# %% [markdown]
# **Lemma 1.** We check the printed formula by the duality gap and against the library's server step. A third of the
# programs have $b=0$, another third $A=U$.

# %% tags=["hide-input", "nbval-check-output"]
p = random_programs(instances, 1, 4, exact=True)
p.B[::3] = 0.0
p.A[1::3] = 0.0
b = np.square(p.B[:, 0]).sum(1)
D = b - 4 * p.tau * p.A[:, 0]
root = np.sqrt(b / np.where(D > 0, D, 1.0))
inside = np.clip((root - 1) / p.tau, 0, p.c)
nu = np.where(D > 0, inside, p.c)[:, None]  # (38), with b of (42)
w = minimizer(p, nu)
branches = (nu == 0, nu == p.c, (nu > 0) & (nu < p.c), D <= 0)

left, right = rng.uniform(0, p.c, (2, instances, 1))
bend = dual(p, (left + right) / 2) - (dual(p, left) + dual(p, right)) / 2
library_w, _ = library_solutions(p)

check(
    f"all branches occur in {instances} programs",
    all(branch.any() for branch in branches),
)
check("no duality gap, to 1e-10", np.abs(duality_gap(p, w, nu)).max() < 1e-10)
check(
    "Lemma 1 is one step of the coordinate formula, to 1e-12",
    np.abs(multipliers(p) - nu).max() < 1e-12,
)
check("A <= U gives w = 0", np.abs(w[p.A[:, 0] <= 0]).max() == 0)
check("the dual is concave: no chord above it", bend.min() > -1e-12)
check(
    "fedlib.solvers.interior_point gives the same w, to 1e-12",
    np.abs(library_w - w).max() < 1e-12,
)

# %% [markdown]
# **Several constraints.** For $w\in\mathbb R^4$ and both forms of the objective, the table shows the largest relative
# duality gap over the random programs after 1 to 1000 sweeps.

# %% tags=["hide-input", "nbval-check-output"]
rows = {}
ascents = []
library_gaps = []
for M, objective in product((2, 3, 5), ("exact", "averaged")):
    p = random_programs(instances // 5, M, 4, exact=objective == "exact")
    gaps = {}
    heights = []
    for sweeps in (1, 10, 60, 300, 1000):
        nu = multipliers(p, sweeps)
        gaps[f"{sweeps} sweeps"] = duality_gap(p, minimizer(p, nu), nu).max()
        heights.append(dual(p, nu))
    rows[f"M = {M}, {objective} objective"] = gaps
    ascents.append(np.diff(heights, axis=0) / (1 + np.abs(heights[1:])))
    library_gaps.append(duality_gap(p, *library_solutions(p)))
table = pd.DataFrame(rows).T

check("the dual never falls", np.min(ascents) > -1e-12)
check("weak duality: no gap is negative, to 1e-10", table.min().min() > -1e-10)
check("1000 sweeps: gap below 1e-3, everywhere", table["1000 sweeps"].max() < 1e-3)
check("one sweep is not enough", table["1 sweeps"].min() > 1e-3)
check(
    "fedlib.solvers.interior_point, by interior points: gap below 1e-9",
    np.max(library_gaps) < 1e-9,
)

# %% tags=["hide-input"]
displayed(table.map(lambda x: f"{x:.0e}"))

# %% [markdown]
# **Descent and Theorem 2, i.** We check {eq}`eq-ssca-penalty` in every round, and whether the runs approach a KKT
# point. Each function is a mean of 40 quadratics plus ripples ($L\approx1+4\cdot0.2$). The quadratics in $F_0$ are
# centred around 2, those in $F_1$ around 0. The settings are $\rho_t=t^{-0.6}$, $\gamma_t=t^{-0.75}$, $\tau=\frac12$,
# $c=5$ and batches of 10.

# %% tags=["hide-input", "nbval-check-output"]
T = {"quick": 600, "full": 2000}[profile]
c = 5.0
tau = 0.5
F0 = ripples(rng, 40, 3, 0.2, 2.0)
F1 = ripples(rng, 40, 3, 0.2, 0.0, 2.5)
L = max(F0.smoothness, F1.smoothness)
gamma = power_law(1.0, 0.75, T)
start = 2 * rng.standard_normal((20, 3))
path = ssca([F0, F1], power_law(1.0, 0.6, T), gamma, tau, 10, start, rng, c=c)
step = np.linalg.norm(path.step, axis=-1)

phi = np.array([F0.value(w) + c * np.maximum(F1.value(w), 0) for w in path.w])  # Phi_c
g = gamma[:, None]
descent = g * (2 * tau - L * (1 + c) * g / 2) * step**2
gradient_errors = g * (1 + c) * path.error * step
value_errors = 2 * g * c * path.gap
bound = -descent + gradient_errors + value_errors

ends = path.w[-1]
kkt = constrained_minimum(F0.value, F0.gradient, ends[0], F1, 0.0, 1e-14)
slope_0 = F0.gradient(kkt)
slope_1 = F1.gradient(kkt)
multiplier = -(slope_0 @ slope_1) / (slope_1 @ slope_1)
kkt_error = np.linalg.norm(slope_0 + multiplier * slope_1)


def fall(values):
    """The mean over the last 50 rounds over that of the first 50."""
    return values[-50:].mean() / values[:50].mean()


check(
    f"the inequality holds in all {T} rounds of 20 runs",
    (np.diff(phi, axis=0) <= bound[:-1] + 1e-12).all(),
)
check(
    "the step to the best response: last rounds below a quarter of the first",
    fall(step) < 0.25,
)
check(
    "    the errors of gradients and values fall too, below a third",
    max(fall(path.error), fall(path.gap)) < 1 / 3,
)
check(
    "SLSQP's solution is a KKT point with 0 < multiplier < c",
    kkt_error < 1e-4 and 0 < multiplier < c,
)
check(
    "all runs end within 0.15 of this KKT point",
    np.linalg.norm(ends - kkt, axis=1).max() < 0.15,
)
check(
    "the server's multiplier is within 15 % of it, in the mean of the runs",
    abs(path.nu[-50:].mean() / multiplier - 1) < 0.15,
)

# %% tags=["hide-input"]
curves = {
    "|best response - w|": step,
    "error of gradients": path.error,
    "error of values": path.gap,
}
fig = plot.figure((5.2, 3.4))
ax = fig.subplots()
ax.set(xlabel="round t", ylabel="mean over 20 runs", xscale="log")
for name, values in curves.items():
    ax.plot(*binned_means(values, first=5), label=name)
plot.plain_log(ax)
ax.legend()
plot.show(
    fig,
    alt="Three falling curves against the round, both axes logarithmic: the distance of the best response from the iterate, and the errors of the averaged "
    "surrogates' gradients and values at the iterate.",
    caption="In runs with a constraint, the step to the best response and both tracking errors fall.",
)

# %% [markdown]
# **Exact penalty.** We check {prf:ref}`ssca-example-penalty`. We then make full-batch runs on a convex problem with
# penalties below and above its multiplier $\lambda^\star$. By {prf:ref}`ssca-theorem-exact`, the slack must vanish for
# penalties above $\lambda^\star$.

# %% tags=["hide-input", "nbval-check-output"]
rounds = {"quick": 400, "full": 1000}[profile]


def full_batches(evaluate_all, w, *, tau, c, alpha, beta):
    """The last iterate of Algorithm 2 with full batches and a constraint, from `w` `[1, d]`."""
    surrogates = no_surrogates(runs=1, constraints=1, dim=w.shape[1], tau=tau)
    rho = power_law(1.0, alpha, rounds)
    gamma = power_law(1.0, beta, rounds)
    for t in range(rounds):
        values, slopes = evaluate_all(w)
        surrogates = surrogates.averaged(rho[t], w, values, slopes)
        program = surrogates.program(c)
        response = minimizer(program, multipliers(program))
        w = w + gamma[t] * (response - w)
    return w


def bent(w):
    """F_1 of example 2."""
    return 3 * w**2 / (16 * np.pi) + np.sin(w)


def bent_slope(w):
    """The derivative of `bent`."""
    return 3 * w / (8 * np.pi) + np.cos(w)


def example_2(w):
    """Values and gradients of F_0 = w^2 / 20 and F_1, for the loop above."""
    values = np.stack([w[:, 0] ** 2 / 20, bent(w[:, 0])], axis=1)
    slopes = np.stack([w / 10, bent_slope(w)], axis=1)
    return values, slopes


rows = []
for c in (1.0, 10.0, 100.0, 1000.0):
    w_1 = brentq(lambda w: 1 + 2 * c * w, -1, 1)
    w_2 = brentq(lambda w: w / 10 + c * bent_slope(w), np.pi, 4.5)
    end = full_batches(example_2, np.array([[4.0]]), tau=1.0, c=c, alpha=0.6, beta=0.65)
    rows.append({"1": w_1**2 * 4 * c**2, "2": bent(w_2), "reached": bent(end[0, 0])})
slack = pd.DataFrame(rows)
line = np.linspace(-9, 9, 18001)
feasible = line[bent(line) <= 0]
first_root = brentq(bent, -np.pi, -np.pi / 2)

F0 = ripples(rng, 40, 3, 0.0, 2.0)
F1 = ripples(rng, 40, 3, 0.0, 0.0, 2.5)


def penalized_minimum(multiplier):
    """The minimizer of F_0 + multiplier F_1, which is a quadratic function."""
    curvature = F0.h.mean(0) + multiplier * F1.h.mean(0)
    slope = (F0.h * F0.a).mean(0) + multiplier * (F1.h * F1.a).mean(0)
    return slope / curvature


best_multiplier = brentq(lambda nu: F1.value(penalized_minimum(nu)), 0, 100)
both = lambda w: evaluate([F0, F1], w)
start = np.array([[3.0, 0.0, -1.0]])
values = {}
end_errors = []
for factor in (0.3, 0.7, 1.5, 20):
    c = factor * best_multiplier
    (end,) = full_batches(both, start, tau=0.5, c=c, alpha=0.4, beta=0.6)
    values[factor] = F1.value(end)
    expected = penalized_minimum(min(c, best_multiplier))
    end_errors.append(np.linalg.norm(end - expected))

check("example 1: slack 1 / (4 c^2) > 0 for every c", np.allclose(slack["1"], 1))
check(
    "example 2: slack tends to pi/3 - sqrt(3)/2",
    abs(slack["2"].iloc[-1] - np.pi / 3 + 3**0.5 / 2) < 1e-3 and slack["2"].min() > 0.18,
)
check(
    "    the feasible set is an interval that ends in 0",
    np.allclose([feasible[0], feasible[-1]], [first_root, 0], atol=1e-3)
    and np.ptp(np.diff(feasible)) < 1e-9,
)
check(
    "    regular: F_1 < 0 inside, and not flat at either end",
    bent(-np.pi / 2) < -0.8 and min(abs(bent_slope(first_root)), bent_slope(0.0)) > 0.5,
)
check(
    "    Algorithm 2 from w = 4 ends with that slack, to 1e-4, for c = 10, 100 and 1000",
    np.allclose(slack["reached"][1:], slack["2"][1:], rtol=0, atol=1e-4),
)
check(
    "convex, c = 0.3 and 0.7 lambda*: the constraint stays broken",
    values[0.3] > values[0.7] > 0.01,
)
check(
    "    c = 1.5 and 20 lambda*: F_1 is 0 to 0.002",
    max(abs(values[1.5]), abs(values[20])) < 2e-3,
)
check(
    "    all four end within 0.01 of the minimum of F_0 + min(c, lambda*) F_1",
    max(end_errors) < 0.01,
)

# %% [markdown]
# **Theorem 5.** For losses with ripples, random points near a local minimum of (27) that are feasible for (37) must not
# have a smaller norm than this minimum (point 1). At local minima of (37) that SLSQP finds, the gradient of (27) must
# be zero (point 2).

# %% tags=["hide-input", "nbval-check-output"]
growths = []
stationarity_errors = []
hessian_condition = []
for _ in range({"quick": 10, "full": 40}[profile]):
    F = ripples(rng, 40, 3, 0.3, 1.5)
    lam = rng.uniform(0.05, 0.5)
    objective = lambda w: F.value(w) + lam * w @ w  # of (27)
    start = 2 * rng.standard_normal(3)
    ridge = minimize(objective, start, method="BFGS", options={"gtol": 1e-10}).x
    near = ridge + 0.02 * rng.standard_normal((4000, 3)) * rng.random((4000, 1))
    feasible = near[F.value(near) <= F.value(ridge)]
    growths.extend(np.square(feasible).sum(1) - ridge @ ridge)

    level = F.value(ridge) + 0.1
    w = constrained_minimum(lambda w: w @ w, lambda w: 2 * w, ridge, F, level, 1e-15)
    slope = F.gradient(w)
    xi = -2 * (w @ slope) / (slope @ slope)
    stationarity_errors.append(np.linalg.norm(slope + 2 * w / xi) / np.linalg.norm(slope))
    hessian = F.h.mean(0) - 4 * F.s * np.cos(2 * w) + 1 / xi
    hessian_condition.append(hessian.min() >= 0)

near = 1 + np.linspace(-0.1, 0.1, 201)
cubic = (near - 1) ** 3 - near**2
quartic = -(near**4)

check("1: no feasible point near w* is shorter, to 1e-7", min(growths) > -1e-7)
check(
    "2: the gradient of (27) with lambda = 1 / xi is 0, to 1e-4 of that of F",
    max(stationarity_errors) < 1e-4,
)
check("    Y's Hessian condition holds on some instances", any(hessian_condition))
check(
    "semidefinite is too little: 1 is the shortest feasible point near 1",
    near[cubic <= -1 + 1e-12].min() > 1 - 1e-9,
)
check("    but (27) is lower on its left", (cubic + near**2)[:100].max() < 0)
check(
    "-w^4: shortest feasible point near 1, and a maximum of (27)",
    near[quartic <= -1 + 1e-12].min() > 1 - 1e-9 and (quartic + 2 * near**2).max() <= 1 + 1e-12,
)

# %% [markdown]
# The checks are in {download}`note_ssca_constrained.py <src/note_ssca_constrained.py>`.
