# %% [markdown]
# # FedCMOO: the convergence theorem
#
# FedCMOO {cite}`askin2025fedcmoo` (C below) trains one model on a weighted sum of many objectives. It chooses the
# weights from an estimate of the gradients' Gram matrix. This note proves C's Lemmas 1 to 7 (Lemma 6 in a corrected
# form), Theorem 1 and Corollary 1.1, which concern C's Algorithm 10.
#
# Our findings:
#
# * **Lemma 6**, the bound on the length of a round's step, **is false as printed** for more than one local step
#   ({prf:ref}`cmoo-example-6`), because later local gradients depend on earlier noise. The correct bound has one more
#   term. Corollary 1.1 keeps its rate.
# * **Two constants can be smaller.** In Theorem 1, the constant $C_1$ can be replaced by $C_2\le C_1$
#   ({eq}`eq-cmoo-constants`). In Lemma 7, on the effect of local steps, the term without the noise $\sigma_l$ shrinks
#   by a factor of at least $2\sqrt2$, and no condition on the step size is needed.
# * **Corollary 1.1** hides the initial losses in its $O$, as it declares, and its step size $\beta$ for the weights has
#   the wrong units ({prf:ref}`cmoo-corollary`).

# %% [markdown]
# ## Setting
#
# There are $M$ objectives and $N$ clients. Objective $k$ is $F_k=\frac1N\sum_if_{i,k}$, with client $i$'s loss
# $f_{i,k}$. The Jacobian is $J(x)=[\nabla F_1(x),\dots,\nabla F_M(x)]\in\mathbb R^{d\times M}$. (C writes
# $\nabla\mathbf F$ for $J$.) The Gram matrix is $G=J^\top J$, and $\Pi_{\mathcal S_M}$ projects onto the probability
# simplex $\mathcal S_M$. With the step sizes $\beta$, $\eta_c$ and $\eta_s$ and $\tau$ local steps, a round of
# Algorithm 10 starts from the model $x$ and the weights $w$ and computes:
#
# $$
# \begin{aligned}
# w'&=\Pi_{\mathcal S_M}\big(w-\beta\,Y_1^\top Y_2\,w\big),&Y_j&=\frac1{n'}\sum_{i\in\mathcal A_j}\mathcal Q\big(\tilde H_i^{(j)}\big),\\
# x_i^0&=x,\quad x_i^{s+1}=x_i^s-\eta_c\textstyle\sum_kw'_k\tilde\nabla f_{i,k}(x_i^s),&\Delta_i&=\frac{x-x_i^\tau}{\tau\eta_c},\\
# x'&=x-\eta\,\bar\Delta,\qquad\eta=\eta_s\eta_c\tau,&\bar\Delta&=\frac1n\sum_{i\in\mathcal B}\Delta_i .
# \end{aligned}
# $$ (eq-cmoo-round)
#
# The sets $\mathcal A_1,\mathcal A_2$ of $n'$ clients and $\mathcal B$ of $n$ clients are drawn uniformly and
# independently. The columns of $\tilde H_i^{(j)}\in\mathbb R^{d\times M}$ are client $i$'s stochastic gradients at $x$,
# drawn anew for every use. The compressor $\mathcal Q$ acts on every column separately. Expectations $\mathbb E$ are
# conditional on $x$ and $w$.
#
# ```{prf:assumption} C-A1 to C-A5
# :label: cmoo-assumption
#
# 1. Every $f_{i,k}$ is $L$-smooth.
# 2. $\mathbb E\tilde\nabla f_{i,k}(x)=\nabla f_{i,k}(x)$ and
#    $\mathbb E\lVert\tilde\nabla f_{i,k}(x)-\nabla f_{i,k}(x)\rVert^2\le\sigma_l^2$, independently over clients and
#    uses.
# 3. $\frac1N\sum_i\lVert\nabla f_{i,k}(x)-\nabla F_k(x)\rVert^2\le\sigma_g^2$ for every $k$.
# 4. $\lVert\nabla f_{i,k}(x)\rVert\le b$.
# 5. $\mathbb E\mathcal Q(y)=y$ and $\mathbb E\lVert\mathcal Q(y)-y\rVert^2\le q\lVert y\rVert^2$, independently over
#    clients.
# ```
#
# Random masking that keeps $K$ of $d$ entries and rescales them satisfies point 5 with $q=\frac dK-1$
# ({prf:ref}`unb-lemma-randk`). The bounds below contain the constants
#
# $$
# S_1=\frac{1+q}{n'}\sigma_l^2+\frac q{n'}b^2+\frac{N-n'}{n'(N-1)}\sigma_g^2,\qquad C_1=\big(\sqrt{S_1}+b\big)^2,\qquad C_2=S_1+b^2 .
# $$ (eq-cmoo-constants)
#
# C's bounds contain $C_1$ where ours contain $C_2$, and $\frac12C_1\le C_2\le C_1$.

# %% [markdown]
# ## The direction: MGDA
#
# The multiple-gradient descent algorithm (MGDA) {cite}`desideri2012mgda` steps along $-v^\circ$, where $v^\circ$ is the
# shortest vector $Jw$ with $w\in\mathcal S_M$.
#
# ```{prf:lemma} The minimum-norm problem
# :label: cmoo-lemma-mgda
#
# Let $w^\circ\in\mathcal S_M$ minimise $\lVert Jw\rVert$, and let $v^\circ=Jw^\circ$. Then
# $\langle\nabla F_k,v^\circ\rangle\ge\lVert v^\circ\rVert^2$ for every $k$, with equality if $w^\circ_k>0$. Moreover,
#
# $$
# \max_v\min_k\Big\{\langle v,\nabla F_k\rangle-\frac12\lVert v\rVert^2\Big\}=\frac12\min_{w\in\mathcal S_M}\lVert Jw\rVert^2 ,
# $$ (eq-cmoo-mgda)
#
# and the maximum is attained at $v^\circ$. If the $F_k$ are $L$-smooth, then
# $F_k(x-\eta v^\circ)\le F_k(x)-\eta\big(1-\frac{L\eta}2\big)\lVert v^\circ\rVert^2$ for every $k$.
# ```
#
# ```{prf:proof}
# Let $w\in\mathcal S_M$.
#
# 1. *Optimality.* For $0\le\epsilon\le1$ the point $w^\circ+\epsilon(w-w^\circ)$ is in $\mathcal S_M$, so
#    $\lVert J\cdot\rVert^2$ is not smaller there than at $w^\circ$. The derivative at $\epsilon=0$ is therefore not
#    negative: $\langle J(w-w^\circ),v^\circ\rangle\ge0$. Choose $w=e_k$ to obtain
#    $\langle\nabla F_k,v^\circ\rangle\ge\lVert v^\circ\rVert^2$. The left sides have the mean $\lVert v^\circ\rVert^2$
#    with weights $w^\circ_k$, so each inequality with $w^\circ_k>0$ is an equality.
# 2. *Lower bound.* By step 1, the minimum over $k$ in {eq}`eq-cmoo-mgda` is at least $\frac12\lVert v^\circ\rVert^2$ at
#    $v=v^\circ$.
# 3. *Upper bound.* For any $v$, the minimum over $k$ is at most the mean with weights $w^\circ$. This mean is
#    $\langle v,v^\circ\rangle-\frac12\lVert v\rVert^2=\frac12\lVert v^\circ\rVert^2-\frac12\lVert v-v^\circ\rVert^2\le\frac12\lVert v^\circ\rVert^2$.
# 4. *Descent.* By smoothness, $F_k(x-\eta v)\le F_k(x)-\eta\langle\nabla F_k,v\rangle+\frac{L\eta^2}2\lVert v\rVert^2$.
#    Insert $v=v^\circ$ and use step 1.
# ```
#
# A point with $v^\circ=0$ is *Pareto stationary*.
#
# If the same noisy gradients determine the weights and the step, the step is biased. For example, let $\nabla F_1=1$
# and $\nabla F_2=-2$ in one dimension, with noise $\pm3$ on the second gradient. The point is Pareto stationary, but
# the mean minimum-norm step is $\frac12$ (checked below). Therefore, {eq}`eq-cmoo-round` draws new gradients for $Y_1$,
# $Y_2$ and the step.

# %% [markdown]
# ## The weights: Lemmas 1 to 5
#
# ```{prf:lemma} C Lemma 1
# :label: cmoo-lemma-1
#
# Let the columns of $A\in\mathbb R^{d\times M}$ have length at most $b$ and let $w\in\mathcal S_M$. Then
# $\lVert Aw\rVert\le b$, $\lVert A\rVert_{\rm op}\le b\sqrt M$ and $\lVert A^\top Aw\rVert\le\sqrt Mb^2$.
# ```
#
# ```{prf:proof}
# The first bound holds because the norm is convex. The second is
# $\lVert A\rVert_{\rm op}\le\lVert A\rVert_F\le\sqrt{Mb^2}$. The third is the product of the first two.
# ```
#
# ```{prf:lemma} C Lemmas 2 and 3
# :label: cmoo-lemma-2
#
# Let $E_j=Y_j-J$. Every column of $E_j$ has mean zero, and $\mathbb E\lVert E_je_k\rVert^2\le S_1$. Hence
# $\mathbb E\lVert E_j\rVert_F^2\le MS_1$ and $\mathbb E\lVert E_j\rVert_{\rm op}\le\sqrt{MS_1}$. If $w\in\mathcal S_M$
# is fixed given the past, then $\mathbb E\lVert E_jw\rVert^2\le S_1$.
# ```
#
# ```{prf:proof}
# Fix a column $k$. Let $h_i=\nabla f_{i,k}(x)$, $\bar h=\nabla F_k(x)$ and $\tilde h_i=h_i+\xi_i$ with the noise
# $\xi_i$.
#
# 1. *Three errors.* With $\mathcal A=\mathcal A_j$,
#    $Y_je_k-\bar h=\frac1{n'}\sum_{\mathcal A}(\mathcal Q(\tilde h_i)-\tilde h_i)+\frac1{n'}\sum_{\mathcal A}\xi_i+\frac1{n'}\sum_{\mathcal A}(h_i-\bar h)$.
#    The first sum has mean zero given $\mathcal A$ and the $\xi_i$, the second has mean zero given $\mathcal A$, and
#    the third has mean zero. The sums are therefore uncorrelated, and their mean squares add up.
# 2. *Compression.* The compressors are independent over clients, so the mean square of the first sum is at most
#    $\frac1{n'^2}\sum_{\mathcal A}q\,\mathbb E\lVert\tilde h_i\rVert^2\le\frac q{n'}(b^2+\sigma_l^2)$.
# 3. *Noise.* The noise is independent over clients, so the mean square of the second sum is at most
#    $\frac{\sigma_l^2}{n'}$.
# 4. *Sampling.* When $n'$ of $N$ clients are drawn without replacement, $\mathbb P(i\in\mathcal A)=\frac{n'}N$ and
#    $\mathbb P(i,l\in\mathcal A)=\frac{n'(n'-1)}{N(N-1)}$. Since $\sum_i(h_i-\bar h)=0$, the products
#    $\langle h_i-\bar h,h_l-\bar h\rangle$ with $i\ne l$ add up to $-\sum_i\lVert h_i-\bar h\rVert^2$. The mean square
#    of the third sum is therefore
#    $\frac1{n'^2}\big(\frac{n'}N-\frac{n'(n'-1)}{N(N-1)}\big)\sum_i\lVert h_i-\bar h\rVert^2\le\frac{N-n'}{n'(N-1)}\sigma_g^2$.
# 5. *All columns.* Sum over $k$ to bound $\mathbb E\lVert E_j\rVert_F^2$. The bound of the operator norm uses
#    $\lVert\cdot\rVert_{\rm op}\le\lVert\cdot\rVert_F$ and Jensen's inequality for the square root. The bound of
#    $E_jw=\sum_kw_kE_je_k$ uses Jensen's inequality for the square.
# ```
#
# ```{prf:lemma} C Lemma 4
# :label: cmoo-lemma-4
#
# $\mathbb E\lVert w'-w\rVert\le\beta\sqrt MC_1$. The stronger bound $\mathbb E\lVert w'-w\rVert^2\le\beta^2MC_2^2$ also
# holds.
# ```
#
# ```{prf:proof}
# Since $\Pi_{\mathcal S_M}$ is nonexpansive and $\Pi_{\mathcal S_M}(w)=w$,
# $\lVert w'-w\rVert\le\beta\lVert Y_1^\top Y_2w\rVert$.
#
# 1. *C's bound.* The four terms of $Y_1^\top Y_2w=(J+E_1)^\top(J+E_2)w$ are bounded by Lemmas 1 to 3:
#
#    $$
#    \begin{aligned}
#    \lVert J^\top Jw\rVert&\le\sqrt Mb^2,&\mathbb E\lVert E_1^\top Jw\rVert&\le\sqrt{MS_1}\,b,\\
#    \mathbb E\lVert J^\top E_2w\rVert&\le b\sqrt M\cdot\sqrt{S_1},&\mathbb E\lVert E_1^\top E_2w\rVert&\le\sqrt{MS_1}\sqrt{S_1}.
#    \end{aligned}
#    $$
#
#    The last bound uses that $E_1$ and $E_2$ are independent. The sum is $\sqrt M(b^2+2b\sqrt{S_1}+S_1)=\sqrt MC_1$.
# 2. *Our bound.* For every vector $y$,
#    $\mathbb E\lVert Y_1^\top y\rVert^2\le\mathbb E\lVert Y_1\rVert_F^2\lVert y\rVert^2$. Since $Y_1$ and $Y_2$ are
#    independent,
#
#    $$
#    \mathbb E\lVert Y_1^\top Y_2w\rVert^2\le\mathbb E\lVert Y_1\rVert_F^2\;\mathbb E\lVert Y_2w\rVert^2\le M(b^2+S_1)\cdot(b^2+S_1)=MC_2^2 ,
#    $$ (eq-cmoo-square)
#
#    because $\mathbb E\lVert J+E_1\rVert_F^2=\lVert J\rVert_F^2+\mathbb E\lVert E_1\rVert_F^2$, and likewise for
#    $Y_2w$.
# ```
#
# ```{prf:lemma} C Lemma 5
# :label: cmoo-lemma-5
#
# For every $u\in\mathcal S_M$,
#
# $$
# \langle J(w-u),Jw\rangle\le\frac{\lVert w-u\rVert^2-\mathbb E\lVert w'-u\rVert^2}{2\beta}+\frac{\beta MC^2}2,\qquad C=C_1\text{ or even }C_2 .
# $$ (eq-cmoo-lemma5)
# ```
#
# ```{prf:proof}
# Since $\Pi_{\mathcal S_M}$ is nonexpansive and $\Pi_{\mathcal S_M}(u)=u$,
# $\lVert w'-u\rVert^2\le\lVert w-u\rVert^2-2\beta\langle w-u,Y_1^\top Y_2w\rangle+\beta^2\lVert Y_1^\top Y_2w\rVert^2$.
#
# Take expectations. Since $Y_1$ and $Y_2$ are independent and unbiased, $\mathbb E[Y_1^\top Y_2]=J^\top J$, and the
# mean of the inner product is $\langle J(w-u),Jw\rangle$. Bound the last term by {eq}`eq-cmoo-square`, and divide by
# $2\beta$.
# ```
#
# This proof fails if $Y_1=Y_2=Y$. With $E=Y-J$, $\mathbb E[Y^\top Y]=G+\mathbb E[E^\top E]$, so the estimate of $G$ is
# biased.

# %% [markdown]
# ## The step: Lemmas 6 and 7
#
# Lemma 6 bounds the length of the step $\bar\Delta$, and Lemma 7 its deviation from $Jw'$. Write
# $\Delta_i=\frac1\tau\sum_{s<\tau}(m_i^s+\xi_i^s)$ with the mean $m_i^s=\sum_kw'_k\nabla f_{i,k}(x_i^s)$ and the noise
# $\xi_i^s$. By Jensen's inequality, $\lVert m_i^s\rVert\le b$. Since $w'$ is independent of the noise, Jensen's
# inequality also gives $\mathbb E\lVert\xi_i^s\rVert^2\le\sum_kw'_k\sigma_l^2=\sigma_l^2$.
#
# ```{prf:lemma} C Lemma 6, as it can be proved
# :label: cmoo-lemma-6
#
# $\mathbb E\lVert\bar\Delta\rVert^2\le\big(b+\frac{\sigma_l}{\sqrt{n\tau}}\big)^2$. If $\tau=1$, then
# $\mathbb E\lVert\bar\Delta\rVert^2\le b^2+\frac{\sigma_l^2}n$. (C prints $b^2+\frac{\sigma_l^2}{n\tau}$ for every
# $\tau$.)
# ```
#
# ```{prf:proof}
# Write $\bar\Delta=\bar m+\bar\xi$ with the means $\bar m$ and $\bar\xi$ of the $n\tau$ vectors $m_i^s$ and $\xi_i^s$.
# By convexity of the norm, $\lVert\bar m\rVert\le b$.
#
# 1. Given the past, $\xi_i^s$ has mean zero. Given $\mathcal B$, the noise is independent between clients. The
#    $\xi_i^s$ are therefore uncorrelated, and $\mathbb E\lVert\bar\xi\rVert^2\le\frac{n\tau\sigma_l^2}{(n\tau)^2}$.
# 2. By Minkowski's inequality in $L^2$,
#    $\sqrt{\mathbb E\lVert\bar m+\bar\xi\rVert^2}\le b+\frac{\sigma_l}{\sqrt{n\tau}}$.
# 3. If $\tau=1$, then $\bar m$ is fixed given $\mathcal B$. Hence $\mathbb E\langle\bar m,\bar\xi\rangle=0$, and the
#    squares add up. If $\tau>1$, the later $m_i^s$ depend on earlier noise, and $\mathbb E\langle\bar m,\bar\xi\rangle$
#    need not vanish.
# ```
#
# ```{prf:example} C Lemma 6 as printed fails
# :label: cmoo-example-6
#
# Consider one client and one objective. Its gradient is $-Lx$, clipped to $[-b,b]$, so points 1 and 4 of
# {prf:ref}`cmoo-assumption` hold. Start at $x=0$ with $\tau=2$, $\eta_c=\frac1{2L\tau}=\frac1{4L}$, and noise
# $\pm\sigma_l$ with $\sigma_l=4b$.
#
# 1. The first gradient is 0, so the first step leads to $x=-\eta_c\xi^0=\mp\frac bL$. There the gradient is $\pm b$,
#    with the sign of $\xi^0$.
# 2. Hence $2\Delta=\xi^0+\operatorname{sign}(\xi^0)\,b+\xi^1$, which has mean square $(4b+b)^2+16b^2=41b^2$.
# 3. So $\mathbb E\Delta^2=10.25\,b^2$. The printed bound is $b^2+\frac{16b^2}2=9\,b^2$. The bound of
#    {prf:ref}`cmoo-lemma-6` is $(1+\sqrt8)^2b^2=14.7\,b^2$.
# ```
#
# ```{prf:lemma} C Lemma 7, with smaller constants
# :label: cmoo-lemma-7
#
# For fixed $u\in\mathcal S_M$,
#
# $$
# \mathbb E\langle Ju,\,Jw'-\bar\Delta\rangle\le L\eta_cb\Big(\frac{\tau-1}2\,b+\sqrt{\frac{\tau-1}2}\,\sigma_l\Big) .
# $$ (eq-cmoo-lemma7)
#
# C's bound is $L\eta_cb\big(\sqrt{2\tau(\tau-1)}\,b+\sqrt\tau\,\sigma_l\big)$, for $\eta_c\le\frac1{2L\tau}$.
# ```
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. *Means.* The weights $w'$ depend neither on $\mathcal B$ nor on the noise of local steps. Given $w'$, the mean of
#    $\bar\Delta$ is $\frac1{N\tau}\sum_{i,s}\mathbb Em_i^s$, and $Jw'=\frac1N\sum_im_i^0$.
# 2. *Smoothness.* Since $\sum_kw'_kf_{i,k}$ is $L$-smooth, $\lVert m_i^0-m_i^s\rVert\le L\lVert x_i^s-x\rVert$. With
#    $\lVert Ju\rVert\le b$ (Lemma 1), the left side of {eq}`eq-cmoo-lemma7` is at most
#    $\frac{bL}{N\tau}\sum_{i,s}\mathbb E\lVert x_i^s-x\rVert$.
# 3. *Drift.* We have $x_i^s-x=-\eta_c\sum_{r<s}(m_i^r+\xi_i^r)$. The sum of the $m_i^r$ has length at most $sb$, and
#    the sum of the $\xi_i^r$ has mean square at most $s\sigma_l^2$. So
#    $\mathbb E\lVert x_i^s-x\rVert\le\eta_c(sb+\sqrt s\,\sigma_l)$.
# 4. *Sum.* The claim follows from $\frac1\tau\sum_{s<\tau}s=\frac{\tau-1}2$, and
#    $\frac1\tau\sum_{s<\tau}\sqrt s\le\sqrt{\frac{\tau-1}2}$ by Jensen's inequality.
#
# The right side of {eq}`eq-cmoo-lemma7` is at most C's bound for every $\tau$, so C's lemma follows.
# ```

# %% [markdown]
# ## Theorem 1
#
# ```{prf:theorem} C Theorem 1, as it can be proved
# :label: cmoo-theorem
#
# Under {prf:ref}`cmoo-assumption`, let $\delta=\sum_kw_k^{(0)}\big(F_k(x^{(0)})-\inf F_k\big)$. Then
#
# $$
# \begin{aligned}
# \frac1T\sum_{t<T}\mathbb E\big\lVert J(x^{(t)})w^{(t)}\big\rVert^2\le\;&\frac\delta{T\eta}+\beta M\Big(Cb^2+\frac{C^2}2\Big)+\frac{L\eta}2\Big(b+\frac{\sigma_l}{\sqrt{n\tau}}\Big)^2\\
# &+L\eta_cb\Big(\frac{\tau-1}2\,b+\sqrt{\frac{\tau-1}2}\,\sigma_l\Big)
# \end{aligned}
# $$ (eq-cmoo-theorem)
#
# with $\eta=\eta_s\eta_c\tau$ and $C=C_2$. The same bound holds if the norms on the left are replaced by the smaller
# $\min_{w\in\mathcal S_M}\lVert J(x^{(t)})w\rVert^2$.
# ```
#
# The printed theorem has $C=C_1$, $b^2+\frac{\sigma_l^2}{n\tau}$ in place of the square in the third term, and C's
# bound of {prf:ref}`cmoo-lemma-7` as the last term. Only its third term is not proved, because it rests on the printed
# Lemma 6.
#
# ```{prf:proof}
# Fix $u\in\mathcal S_M$. The function $\phi(x)=\sum_ku_kF_k(x)$ is $L$-smooth with gradient $Ju$.
#
# 1. *One round.* By smoothness,
#    $\mathbb E\phi(x')\le\phi(x)-\eta\,\mathbb E\langle Ju,\bar\Delta\rangle+\frac{L\eta^2}2\mathbb E\lVert\bar\Delta\rVert^2$.
#    {prf:ref}`cmoo-lemma-6` bounds the last term.
# 2. *Three products.* Write the inner product as
#    $-\langle Ju,\bar\Delta\rangle=\langle Ju,Jw'-\bar\Delta\rangle+\langle Ju,J(w-w')\rangle+\langle J(w-u),Jw\rangle-\lVert Jw\rVert^2$.
# 3. *Their means.* Lemma 7 bounds the first product. By Lemmas 1 and 4, the second is at most
#    $\lVert J^\top Ju\rVert\,\mathbb E\lVert w'-w\rVert\le\sqrt Mb^2\cdot\beta\sqrt MC=\beta MCb^2$. Lemma 5 bounds the
#    third.
# 4. *All rounds.* Divide by $\eta$ and take the mean over $t<T$. The differences of $\phi$ telescope to at most
#    $\frac{\phi(x^{(0)})-\inf\phi}{T\eta}$, and the squared distances to at most
#    $\frac{\lVert w^{(0)}-u\rVert^2}{2\beta T}$.
# 5. *Choice of $u$.* For $u=w^{(0)}$ the squared distance is zero, and $\phi(x^{(0)})-\inf\phi\le\delta$.
#
# For $\beta=0$ Lemma 5 does not apply, but $w=u$ in all rounds, so the third product is zero.
# ```
#
# The theorem says nothing about the quality of the weights: its bound is smallest for $\beta=0$. The algorithm is then
# FedAvg on one fixed sum, whose stationary points are already Pareto stationary.
#
# ```{prf:corollary} C Corollary 1.1, with constants
# :label: cmoo-corollary
#
# With $\eta_c=\frac1{L\tau\sqrt{\tau T}}$, $\eta_s=\sqrt\tau$ and $\beta=\frac1{M\sqrt T}$, the right side of
# {eq}`eq-cmoo-theorem` is at most
#
# $$
# \frac1{\sqrt T}\bigg[L\delta+Cb^2+\frac{C^2}2+\frac12\Big(b+\frac{\sigma_l}{\sqrt{n\tau}}\Big)^2+\frac{b^2}{2\sqrt\tau}+\frac{b\,\sigma_l}\tau\bigg] .
# $$ (eq-cmoo-corollary)
#
# With $\beta=\frac1{MC\sqrt T}$, the terms $Cb^2+\frac{C^2}2$ are replaced by $b^2+\frac C2$.
# ```
#
# ```{prf:proof}
# Here $\eta=\sqrt\tau\cdot\tau\cdot\frac1{L\tau\sqrt{\tau T}}=\frac1{L\sqrt T}$ and
# $L\eta_c=\frac1{\tau\sqrt{\tau T}}$. The last term of {eq}`eq-cmoo-theorem` is therefore
# $\frac b{\sqrt T}\cdot\frac1{\tau\sqrt\tau}\big(\frac{\tau-1}2b+\sqrt{\frac{\tau-1}2}\sigma_l\big)$. Insert
# $\tau-1\le\tau$ in both summands.
# ```
#
# Apply Young's inequality to the products of $b$ and $\sigma_l$, and $b^2\le C$ to $Cb^2$. Then {eq}`eq-cmoo-corollary`
# is $O\big(\frac{L\delta+b^2+C^2}{\sqrt T}\big)+O\big(\frac{\sigma_l^2}{\tau\sqrt T}(\frac1n+\frac1\tau)\big)$. C
# declares that $O$ swallows numerical constants and $L$, and with them its rate hides $L\delta$. It is right for a fixed
# problem and $T\to\infty$, but not uniformly in $\delta$: a model that starts far away on a slope $b$ is still on this slope after $T$ rounds (checked below).
#
# Moreover, $b^2+C^2$ adds the square of a gradient to a fourth power, since $C$ has the unit of $b^2$. The cause is
# that $\beta=\frac1{M\sqrt T}$ lacks the unit $\frac1{\text{gradient}^2}$, which $\beta=\frac1{MC\sqrt T}$ has.

# %% [markdown]
# ## The two-way estimate
#
# In C's experiments client $i$ sends $H_i$, a low-rank approximation of $\tilde H_i=H_i+R_i$ with the error $R_i$. It
# also sends $\tilde H_i^\top\tilde H_i$ and, by C's equations, $R_i^\top(H-H_i)$ with $H=\sum_iH_i$. By the following
# lemma, these messages determine the Gram matrix of $\sum_i\tilde H_i$ up to products of two errors.
#
# ```{prf:lemma} C equations 13 and 14
# :label: cmoo-lemma-two-way
#
# Let $\operatorname{sym}X=\frac12(X+X^\top)$. Then
#
# $$
# \Big(\sum_i\tilde H_i\Big)^\top\Big(\sum_i\tilde H_i\Big)=\operatorname{sym}\Big[\sum_i\tilde H_i^\top\tilde H_i+\sum_{i\ne j}H_i^\top H_j+2\sum_iR_i^\top(H-H_i)\Big]+\sum_{i\ne j}R_i^\top R_j .
# $$ (eq-cmoo-two-way)
# ```
#
# ```{prf:proof}
# The first sum on the right consists of the terms $i=j$ of the left side. For $i\ne j$, expand
# $\tilde H_i^\top\tilde H_j=H_i^\top H_j+H_i^\top R_j+R_i^\top H_j+R_i^\top R_j$. Let
# $Z=\sum_{i\ne j}R_i^\top H_j=\sum_iR_i^\top(H-H_i)$. Its transpose is $\sum_{i\ne j}H_i^\top R_j$, so the mixed terms
# add up to $Z+Z^\top=\operatorname{sym}(2Z)$. The other sums are symmetric.
# ```
#
# C drops the last sum and omits $\operatorname{sym}$. The missing $\operatorname{sym}$ does not change the quadratic
# form $w^\top Gw$, but it changes the step $w-\beta Gw$.
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **Lemma 6** (eq. 21) is false for $\tau>1$ ({prf:ref}`cmoo-example-6`). We know no run that violates the printed
#   theorem.
# * **Assumption 3** compares $\nabla f_{i,k}$ with $F_k$ instead of $\nabla F_k$.
# * **Lemmas 2, 4 and 5** drop the factor $\sigma_l^2$ after $\frac{1+q}{n'}$ in some displays, a slip: Lemma 3,
#   Theorem 1 and the proofs have it. Read literally, these displays are false for $\sigma_l>1$ (checked below).
# * **Equations 13 and 14** print $2\sum_iR_i^\top(H-H_i)$ in two forms that differ by a transpose. Each is right only
#   after symmetrisation.
# * **Corollary 1.1** needs $\tau T\ge4$, because the printed Lemma 7 requires $\eta_c\le\frac1{2L\tau}$.
# * **The symbol $\mathbf F(x)w$** is used for $\mathbf F(x)^\top w$.
# * **The theorem does not cover**, as C says, the variant in C's experiments, with a biased randomized SVD, one set of clients for
#   the Gram matrix and the step, $K>1$ steps for the weights, and gradients that are used twice.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer and shorter runs
seed = 0  # of the random instances
draws = None  # of the randomness of a round; None: 20000 in the full profile, 2000 in the quick one

# %% tags=["hide-input"]
from dataclasses import replace
from itertools import product
from math import sqrt

import numpy as np
import pandas as pd

from papers.fedcmoo.theory.balancing import min_norm
from papers.fedcmoo.theory.bounds import (
    Setting,
    corollary,
    drift,
    gram_variance,
    step_square,
    theorem_1,
    weight_move,
    weight_regret,
)
from papers.fedcmoo.theory.reference import (
    column_variance,
    gram_factor,
    local_work,
    project_simplex,
    random_gradients,
    theory_run,
    waves,
)
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle

settle(globals(), seed=0, draws=(20_000, 2000, 20))
rng = np.random.default_rng(seed)

# %% [markdown]
# **MGDA.** For a random Jacobian with $d=6$ and each of $M=2,3,5,11$, we test {eq}`eq-cmoo-mgda` with 2000 random
# directions near $v^\circ$. We then check the descent in one step with $\eta=\frac1L$ on 200 random waves (see Lemma 6
# below).

# %% tags=["hide-input", "nbval-check-output"]
rows = []
for M in (2, 3, 5, 11):
    J = rng.standard_normal((6, M)) * np.exp(rng.standard_normal(M))
    v = J @ min_norm(J)
    reach = np.abs(v).max() * rng.random((2000, 1)) ** 2
    directions = v + reach * rng.standard_normal((2000, 6))
    values = (directions @ J).min(1) - np.square(directions).sum(1) / 2
    rows.append({"<grad F_k, v>": (J.T @ v).min(), "|v|^2": v @ v, "best": values.max()})
mgda = pd.DataFrame(rows)

falls = []
for _ in range(200):
    problem = waves(rng, Setting(b=1.0, M=2, N=4), 3, 0.5)
    x = rng.standard_normal((1, 3))
    J = problem.gradients(x)[0].mean(0)
    v = J @ min_norm(J)
    fall = (problem.losses(x) - problem.losses(x - v)).min()
    falls.append(fall / (v @ v))

noisy_jacobians = np.array([[[1.0, 1.0]], [[1.0, -5.0]]])  # the second gradient is -2 and noise
mean_step = np.mean([J @ min_norm(J) for J in noisy_jacobians])

check(
    "<grad F_k, v> >= |v|^2 for all k and M, to 1e-12",
    (mgda["<grad F_k, v>"] > mgda["|v|^2"] - 1e-12).all(),
)
check(
    "no direction is better than v, to 1e-12",
    (mgda["best"] <= mgda["|v|^2"] / 2 + 1e-12).all(),
)
check(
    "some direction comes within 5 % of the value of v",
    (mgda["best"] > 0.95 * mgda["|v|^2"] / 2).any(),
)
check("all losses fall by |v|^2 / (2 L) in 200 steps of length 1 / L", min(falls) >= 0.5)
check("not always by |v|^2 / L", min(falls) < 1)
check(
    "a Pareto stationary point: the mean of the noisy step is 1/2",
    abs(mean_step - 0.5) < 1e-12,
)

# %% [markdown]
# **Lemma 1.** We check the bounds on a random matrix with each of $M=2,5,11$ columns.


# %% tags=["hide-input", "nbval-check-output"]
def lemma_1_sides(A):
    """|Aw|, |A|_op / sqrt(M) and |A'Aw| / sqrt(M), for columns of length 1 and random w."""
    M = A.shape[1]
    Aw = A @ rng.dirichlet(np.ones(M))
    sides = [np.linalg.norm(Aw), np.linalg.norm(A, 2), np.linalg.norm(A.T @ Aw)]
    return sides / np.sqrt([1, M, M])


matrices = [random_gradients(rng, 1, 6, M, 1.0, 1.0)[0] for M in (2, 5, 11)]
equal_columns = np.repeat(matrices[0][:, :1], 5, axis=1)
equal_sides = lemma_1_sides(equal_columns)

check("all three hold for M = 2, 5, 11", np.max([lemma_1_sides(A) for A in matrices]) <= 1)
check("equal columns: three equalities to 1e-12", np.abs(equal_sides - 1).max() < 1e-12)

# %% [markdown]
# **Lemmas 2 and 3.** We compare the exact variance of every column of $Y_j$ with a simulation and with its bound $S_1$,
# and simulated $\mathbb E\lVert E_j\rVert_{\rm op}$ and $\mathbb E\lVert E_jw\rVert^2$ with theirs. The clients have
# random gradients of length $b=1$ with $d=12$, $M=4$ and $\sigma_l=2$. Each $Y_j$ uses 4 of 10 clients and Rand-K with
# half of the entries ($q=1$). With "common randomness" all columns of a client are equal, with the same noise and the
# same kept entries.


# %% tags=["hide-input", "nbval-check-output"]
def mean_error(values):
    """Mean over the draws and its standard error."""
    return values.mean(0), values.std(0) / sqrt(len(values))


gradients = random_gradients(rng, 10, 12, 4, 1.0, 0.7)  # [N, d, M]
J = gradients.mean(0)
w = rng.dirichlet(np.ones(4))
spread = gradients.var(0).sum(0).max()
setting = Setting(b=1.0, sigma_l=2.0, sigma_g=sqrt(spread), q=1.0, M=4, N=10, n=4, n_gram=4)
copies = np.broadcast_to(gradients, (draws, 10, 12, 4))
E_1 = gram_factor(copies, setting, rng) - J  # [draws, d, M]
E_2 = gram_factor(copies, setting, rng) - J
equal_columns = np.broadcast_to(copies[..., :1], copies.shape)
E_common = gram_factor(equal_columns, setting, rng, common=True) - J[:, :1]

S_1 = gram_variance(setting)
exact = column_variance(gradients, setting)
simulated, standard_error = mean_error(np.square(E_1).sum(1))
length = np.linalg.norm(E_1, 2, axis=(1, 2)).mean()
common = np.square(E_common @ w).sum(1).mean()

check(
    "formula and simulation agree within 5 standard errors",
    (np.abs(simulated - exact) < 5 * standard_error).all(),
)
check(
    "the largest variance of a column is S_1, to 1e-12",
    abs(exact.max() / S_1 - 1) < 1e-12,
)
check(
    "    without the factor sigma_l^2 the bound is exceeded by half or more",
    exact.min() > 1.5 * gram_variance(setting, misprint=True),
)
check(
    "E|E|_op <= sqrt(M S_1), and more than half of it",
    1 / 2 < length / sqrt(4 * S_1) <= 1,
)
check("Lemma 3: E|E w|^2 <= S_1", np.square(E_1 @ w).sum(1).mean() <= S_1)
check(
    "    within 10 % of equality for equal columns with common randomness",
    abs(common / exact[0] - 1) < 0.1,
)

# %% [markdown]
# **Lemmas 4 and 5.** We compare simulated means with the bounds, with the same gradients and $\beta=0.05$. We take the
# stronger bounds, with $C_2$; those with $C_1\ge C_2$ follow, and the bound on $\mathbb E\lVert w'-w\rVert$ follows from
# that on the square. Lemma 5 is checked at the vertices $u=e_k$, which suffices because {eq}`eq-cmoo-lemma5` is affine in
# $u$. Both bounds are attained by exact gradients $v,v,-v,-v$ with equal weights on the first two, so neither $\sqrt M$
# nor the last term of Lemma 5 can be smaller. The last check computes the bias of the estimate of $G$ if $Y_1=Y_2$.


# %% tags=["hide-input", "nbval-check-output"]
beta = 0.05


def new_weights(Y_1, Y_2, w):
    """The weights after one step, for each draw of the Gram factors."""
    slope = np.einsum("rdk,rdm,m->rk", Y_1, Y_2, w)
    return project_simplex(w - beta * slope)


def lemma_5_left(J, w, w_new):
    """Lemma 5's left side less its first term, for every draw and every vertex u = e_k."""
    vertices = np.eye(len(w))
    distance_before = np.square(w - vertices).sum(-1)
    distance_after = np.square(w_new[:, None] - vertices).sum(-1)
    regret = (w - vertices) @ J.T @ J @ w
    return regret + (distance_after - distance_before) / (2 * beta)


w_new = new_weights(J + E_1, J + E_2, w)
square_move = np.square(w_new - w).sum(1).mean()
left, left_error = mean_error(lemma_5_left(J, w, w_new))
bias, bias_error = mean_error(np.square(J + E_1).sum((1, 2)) - np.square(J).sum())

sharp_J = matrices[0][:, :1] * np.array([1.0, 1.0, -1.0, -1.0])
sharp_w = np.array([0.5, 0.5, 0.0, 0.0])
sharp_new = new_weights(sharp_J[None], sharp_J[None], sharp_w)
sharp = Setting(b=1.0, M=4)
sharp_move = np.linalg.norm(sharp_new - sharp_w)
sharp_left = lemma_5_left(sharp_J, sharp_w, sharp_new).max()

check(
    "Lemma 4: E|w' - w|^2 <= beta^2 M C_2^2",
    square_move <= weight_move(setting, beta, "ours") ** 2,
)
check(
    "Lemma 5 with C_2, all u, plus 4 standard errors",
    (left + 4 * left_error).max() <= weight_regret(setting, beta, "ours"),
)
check(
    "equality in Lemma 4 to 1e-12",
    abs(sharp_move / weight_move(sharp, beta) - 1) < 1e-12,
)
check(
    "equality in Lemma 5 to 1e-12",
    abs(sharp_left / weight_regret(sharp, beta) - 1) < 1e-12,
)
check(
    "one factor: E tr(Y'Y) - tr G is E|E|^2, within 5 standard errors",
    abs(bias - exact.sum()) < 5 * bias_error,
)

# %% [markdown]
# **Lemma 6.** We compare the mean square in {prf:ref}`cmoo-example-6`, over its four outcomes, with the printed and the
# corrected bound.

# %% tags=["hide-input", "nbval-check-output"]
noise = np.array([*product((4.0, -4.0), repeat=2)])  # of both steps, in the four outcomes
x = -noise[:, 0] / 4  # after the first step from 0, where the exact gradient is 0
work = (noise.sum(1) + np.clip(-x, -1, 1)) / 2
mean_square = np.square(work).mean()
case = Setting(b=1.0, sigma_l=4.0, tau=2)
corrected = step_square(case, "corrected")

check("the example has mean square 10.25 b^2, to 1e-12", abs(mean_square - 10.25) < 1e-12)
check("    above the printed bound, 9 b^2", mean_square > 1.1 * step_square(case))
check("    below the corrected one", mean_square <= corrected, f"{corrected:.1f} b^2")
check(
    "    for tau = 1 the printed bound holds",
    16 <= step_square(replace(case, tau=1)) == 17,
)

# %% [markdown]
# **Lemmas 6 and 7.** We check the corrected Lemma 6, and {eq}`eq-cmoo-lemma7` for $u=e_k$, on random waves,
# $f_{i,k}(x)=\frac{b^2}L\sin(\frac Lbu_{ik}\cdot x+\varphi_{ik})$ with unit vectors $u_{ik}$. These $f_{i,k}$ are
# $L$-smooth with gradients of length at most $b$. We use $b=L=1$, 3 objectives, 4 of 10 clients, $\tau=5$,
# $\sigma_l=\frac12$ and $\eta_c=\frac1{2L\tau}$. To show that the constant of {eq}`eq-cmoo-lemma7` is sharp without
# noise, we take $f(x)=\frac L2x^2$ from $x=\frac bL$: the local gradients are $b(1-L\eta_c)^s$, so the ratio of the two
# sides tends to 1 as $\eta_c\to0$.

# %% tags=["hide-input", "nbval-check-output"]
crowd = replace(setting, sigma_l=0.5, sigma_g=1.0, M=3, tau=5)
problem = waves(rng, crowd, 6, 0.5)
x = rng.standard_normal((1, 6))
w = rng.dirichlet(np.ones(3))
J = problem.gradients(x)[0].mean(0)
x_copies = np.tile(x, (draws, 1))
w_copies = np.tile(w, (draws, 1))
work = local_work(problem, crowd, x_copies, w_copies, 0.1, rng)
left, left_error = mean_error((J @ w - work) @ J)


def quadratic_ratio(tau, eta_c):
    """Lemma 7's sides over each other for f(x) = x^2 / 2 from x = 1, without noise."""
    local_gradients = (1 - eta_c) ** np.arange(tau)
    return (1 - local_gradients.mean()) / drift(Setting(b=1.0, tau=tau), eta_c, "ours")


def gain(tau, sigma_l):
    """The printed bound of Lemma 7 over ours."""
    setting = Setting(b=1.0, sigma_l=sigma_l, tau=tau)
    return drift(setting, 1e-3) / drift(setting, 1e-3, "ours")


longer_steps = [quadratic_ratio(tau, 1e-2) for tau in (2, 5, 20)]
shorter_steps = [quadratic_ratio(tau, 1e-4) for tau in (2, 5, 20)]
gains = [gain(tau, sigma_l) for tau in range(2, 200) for sigma_l in (0.0, 1.0, 10.0)]

check(
    "random waves: below the corrected bound of Lemma 6",
    np.square(work).sum(1).mean() <= step_square(crowd, "corrected"),
)
check(
    "    Lemma 7: left side plus 4 standard errors <= our bound",
    (left + 4 * left_error).max() <= drift(crowd, 0.1, "ours"),
)
check(
    "quadratic: at most our bound, to 1e-9, for tau = 2, 5, 20 and two steps",
    max(longer_steps + shorter_steps) <= 1 + 1e-9,
)
check("    and above 0.999 of our bound for the shorter step", min(shorter_steps) > 0.999)
check(
    "our bound is below the printed one by a factor above 1.4, tau = 2..199, sigma_l = 0, b, 10 b",
    min(gains) > 1.4,
    f"{min(gains):.2f} to {max(gains):.2f}",
)

# %% [markdown]
# **Theorem 1 and Corollary 1.1.** We run Algorithm 10 on random waves ($b=L=1$, $d=12$, $q=1$, $\sigma_l=\frac12$,
# $\tau=5$, $\sigma_g\le b$) with the step sizes of the corollary, 16 times for every $T$. We compare the mean of
# $\lVert Jw\rVert^2$ with three bounds: C's as printed, C's with Lemma 6 corrected, which is larger, and ours
# ({eq}`eq-cmoo-theorem` with the second $\beta$ of the corollary).

# %% tags=["hide-input", "nbval-check-output"]
horizons = {"quick": [50, 100, 200], "full": [50, 100, 200, 400, 800, 1600, 3200]}[profile]
versions = ["printed", "corrected", "ours"]
problem = waves(np.random.default_rng(seed), crowd, 12, 0.5)  # the same for all `draws`
gap = float((problem.losses(np.zeros((1, 12))) - problem.floor).mean())

rows = {}
for T in horizons:
    setting = replace(crowd, T=T)
    squares = theory_run(problem, setting, corollary(setting), 16, rng).mean(1)
    with_our_beta = theory_run(problem, setting, corollary(setting, "ours"), 16, rng)
    rows[T] = {"measured": squares.mean(), "measured, our beta": with_our_beta.mean()}
    for version in versions:
        rows[T][version] = theorem_1(setting, corollary(setting, version), gap, version).total
    rows[T]["upper end"] = squares.mean() + 3 * squares.std() / 4
table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("T")
slopes = np.log2(table / table.shift()).iloc[1:]  # of logarithms, from each T to the next
measured = slopes["measured"]
margin = {"quick": 0.15, "full": 0.05}[profile]

check(
    f"mean |J w|^2 + 3 standard errors <= printed bound, T = {horizons[0]}..{horizons[-1]}",
    (table["upper end"] <= table["printed"]).all(),
)
check(
    "    which is at most the corrected one",
    (table["printed"] <= table["corrected"]).all(),
)
check(
    "    with our beta: <= our bound",
    (table["measured, our beta"] <= table["ours"]).all(),
)
check(
    "our bound is less than 2/3 of the corrected one",
    (table["ours"] < 2 / 3 * table["corrected"]).all(),
)
check(
    "all three bounds fall as T^-1/2, to 1e-9",
    np.allclose(slopes[versions], -0.5, atol=1e-9),
)
check(
    f"the measured slope over the last doubling of T is -1/2, to {margin:g}",
    abs(measured.iloc[-1] + 0.5) < margin,
    f"log-log slope {measured.iloc[0]:.2f} over the first, {measured.iloc[-1]:.2f} over the last",
)

# %% tags=["hide-input"]
displayed(table.drop(columns="upper end").round(3))

# %% tags=["hide-input"]
fig = plot.figure((5.2, 3.4))
ax = table[["measured", *versions]].plot(
    ax=fig.subplots(), logx=True, marker="o", xlabel="rounds T"
)
ax.set_ylabel("mean of |J w|^2")
ax.legend(["measured", "bound, printed", "bound, corrected", "bound, ours"])
plot.plain_log(ax)
plot.show(
    fig,
    alt="Mean squared norm against the number of rounds, both axes logarithmic: four nearly straight falling lines. The printed and the "
    "corrected bound lie on top of each other, ours is about a third of them, and the measured values are lowest, about a seventh of ours.",
    caption="In Algorithm 10, the mean of $\\lVert Jw\\rVert^2$ stays below all three bounds.",
)

# %% [markdown]
# **The omitted $\delta$.** One client minimizes Huber's function, which has slope 1 for $\lvert x\rvert\ge1$
# ($L=b=C_1=1$, no noise, $\tau=1$). The run starts at $x=2\sqrt T$. With the corollary's step size $\frac1{\sqrt T}$ it
# stays on this slope for all $T$ rounds. So the mean of $\lvert F'\rvert^2$ does not fall with $T$.

# %% tags=["hide-input", "nbval-check-output"]
without_delta = []
with_delta = []
for T in (100, 2500, 10_000):
    x = 2 * sqrt(T)
    gap = x - 0.5
    squares = []
    for _ in range(T):
        slope = np.clip(x, -1, 1)
        squares.append(slope**2)
        x -= slope / sqrt(T)
    setting = Setting(b=1.0, T=T)
    bound = theorem_1(setting, corollary(setting), gap, "corrected").total
    without_delta.append(np.mean(squares) * sqrt(T) / 2)
    with_delta.append(np.mean(squares) / bound)

check(
    "mean |F'|^2 over (b^2 + C_1^2) / sqrt(T) is 5, 25, 50 for T = 100, 2500, 10000",
    np.allclose(without_delta, [5, 25, 50]),
)
check(
    "    the theorem, with delta, holds, within a factor 3",
    1 / 3 < min(with_delta) <= max(with_delta) <= 1,
)

# %% [markdown]
# **The two-way estimate.** We draw random $H_i$ and $R_i$ for 5 clients with $d=8$ and $M=4$. We compare the two sides
# of {eq}`eq-cmoo-two-way`, with and without $\operatorname{sym}$, relative to the largest entry of the left side.

# %% tags=["hide-input", "nbval-check-output"]
def products(A, B):
    """sum_i A_i' B_i for the clients' matrices `[n, d, M]`."""
    return np.einsum("idk,idm->km", A, B)


H, R = rng.standard_normal((2, 5, 8, 4))
h = H.sum(0)
r = R.sum(0)
w = rng.dirichlet(np.ones(4))
left = (h + r).T @ (h + r) - (r.T @ r - products(R, R))
without_sym = products(H + R, H + R) + h.T @ h - products(H, H) + 2 * products(R, h - H)
error = (without_sym - left) / np.abs(left).max()

check("the expansion is exact with sym, to 1e-12", np.abs(error + error.T).max() < 1e-12)
check(
    "    without sym it is wrong by more than 5 % of the largest entry",
    np.abs(error).max() > 0.05,
)
check("    but w'Gw does not see this error, to 1e-12", abs(w @ error @ w) < 1e-12)

# %% [markdown]
# The checks are in {download}`note_cmoo.py <src/note_cmoo.py>`.
