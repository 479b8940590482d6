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
# # FedCMOO-Pref: balancing, and when its programme can be solved
#
# With preferences, {cite:t}`askin2025fedcmoo` (C below) choose the weights by a linear programme: lower the imbalance of the losses, or, once they are balanced, lower them all. C takes the idea from {cite}`mahapatra2020preferences`, and asks neither whether the programme has a feasible point nor whether its solution does what it is for. This note answers both.
#
# **Feasible.** The programme has a solution, for all preferences and losses, exactly if a matrix game with the estimated Gram matrix has a value that is not negative ({prf:ref}`pref-theorem-feasible`). Every positive semidefinite estimate is of this kind, and so is one whose only defect is that it is not symmetric. Indefinite ones need not be.
#
# **Not always balancing.** For two objectives the solution does not raise the imbalance, to first order, if any mixture of the gradients lowers it. For three objectives this is false: in {prf:ref}`pref-example-three`, with exact gradients, all weights that the programme allows raise it.

# %% [markdown]
# ## The balancing direction
#
# The notation is that of the note on FedCMOO's theorem. The losses $F_k>0$ and preferences $r_k>0$ give $v_k=r_kF_k$, $S=\sum_kv_k$, $u=\frac vS\in\mathcal S_M$, the imbalance and the direction
#
# $$
# \mu=\sum_ku_k\log(Mu_k),\qquad a_k=r_k\big(\log(Mu_k)-\mu\big).
# $$ (eq-pref-mu)
#
# $\mu$ is the divergence of $u$ from the uniform distribution: $\mu\ge0$, with equality exactly if all $r_kF_k$ are equal.
#
# ```{prf:lemma} C Appendix C.2
# :label: pref-lemma-direction
#
# 1. $\nabla\mu=\frac1SJa$. So for smooth losses, $\mu(x-\eta Ja)=\mu(x)-\frac\eta S\lVert Ja\rVert^2+O(\eta^2)$.
# 2. For weights $w$, $\mu(x-\eta Jw)=\mu(x)-\frac\eta S\,w^\top Ga+O(\eta^2)$.
# 3. $a^\top\mathbf F=0$. The worst objectives, where $r_kF_k$ is largest, have $a_k\ge0$. Unless $\mu=0$, these $a_k$ are positive and some other $a_k$ is negative.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. $d\mu=\sum_k(\log(Mu_k)+1)\,du_k=\sum_k\log(Mu_k)\,du_k$, because $\sum_kdu_k=0$. With $du_k=\frac1S\big(dv_k-u_k\sum_jdv_j\big)$ this is $\frac1S\sum_k\big(\log(Mu_k)-\sum_ju_j\log(Mu_j)\big)dv_k=\frac1S\sum_k\big(\log(Mu_k)-\mu\big)r_k\,dF_k=\frac1Sa^\top d\mathbf F$,
#    and $d\mathbf F=J^\top dx$.
# 2. The first-order change along $-\eta Jw$ is $-\eta\langle\frac1SJa,Jw\rangle=-\frac\eta Sw^\top Ga$. With $w=a$ (no weights, but the formula is the same) it is $-\frac\eta S\lVert Ja\rVert^2$.
# 3. $a^\top\mathbf F=\sum_kv_k(\log(Mu_k)-\mu)=S(\mu-\mu)=0$. $\mu$ is the mean of the numbers $\log(Mu_k)$ with positive weights $u_k$; the largest of them is at least the mean, and above it unless all are equal. $F_k>0$ and $a^\top\mathbf F=0$ then ask for a negative $a_k$.
# ```
#
# So $-Ja$ balances, but it is no direction of weights: $a$ has entries of both signs. C's programme looks for weights $w\in\mathcal S_M$ that come close.

# %% [markdown]
# ## The programme
#
# With any square $G$, columns $g_k$ (in the method an estimate; $(Ga)_k$ and $a^\top g_k$ agree if it is symmetric): $\mathcal J=\{k:a^\top g_k>0\}$, $\bar{\mathcal J}$ the others, $\mathcal J^*=\arg\max_kr_kF_k$. C's equation (19) is
#
# $$
# \begin{aligned}
# \max_{w\in\mathcal S_M}\;&w^\top Ga\ \text{ if }\mu>\varepsilon,\qquad w^\top G\mathbf 1\ \text{ if }\mu\le\varepsilon,\\
# \text{s.t. }\;&w^\top g_k\ge0\quad(k\in\mathcal J^*),\\
# &w^\top g_k\ge a^\top g_k\,\mathbb 1\{\mathcal J\ne\emptyset\}\quad(k\in\bar{\mathcal J}\setminus\mathcal J^*).
# \end{aligned}
# $$ (eq-pref-programme)
#
# To first order $w^\top g_k$ is the decrease of $F_k$: the worst objectives must not grow, and the others not faster than along $a$. $\varepsilon=0.01$ in C; for two objectives, $\mu\le0.01$ leaves $\frac{r_1F_1}{r_2F_2}$ anywhere between 0.75 and 1.33.
#
# ```{prf:theorem} Feasibility
# :label: pref-theorem-feasible
#
# Let $\operatorname{val}(G)=\max_{w\in\mathcal S_M}\min_kw^\top g_k$.
#
# 1. {eq}`eq-pref-programme` is feasible for all $r$ and $\mathbf F$ if and only if $\operatorname{val}(G)\ge0$.
# 2. $\operatorname{val}(G)\ge\min_{p\in\mathcal S_M}p^\top Gp$. In particular it is feasible if $G$ is positive semidefinite, or the sum of such a matrix and an antisymmetric one, or has no negative entry.
# 3. If $G=J^\top J$ with $\nu=\min_{w\in\mathcal S_M}\lVert Jw\rVert^2$, it is feasible for every estimate $\hat G$ with $\lVert\hat G-G\rVert_{\rm op}\le\nu$.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. *If.* All right sides are at most 0: $a^\top g_k\le0$ on $\bar{\mathcal J}$. A $w$ with $w^\top g_k\ge0$ for all $k$ meets all constraints. *Only if.* With $r_kF_k$ all equal, $\mathcal J^*$ is everything, and the constraints are $w^\top g_k\ge0$ for all $k$.
# 2. $\min_kw^\top g_k=\min_{p\in\mathcal S_M}w^\top Gp$. By von Neumann's minimax theorem, $\operatorname{val}(G)=\min_p\max_ww^\top Gp$, and $w=p$ makes $w^\top Gp$ at least $p^\top Gp$. An antisymmetric part does not change $p^\top Gp$.
# 3. $p^\top\hat Gp\ge p^\top Gp-\lVert\hat G-G\rVert_{\rm op}\lVert p\rVert^2\ge\nu-\nu$, because $\lVert p\rVert\le1$ on $\mathcal S_M$.
# ```
#
# For $G=J^\top J$ a feasible point can be named: the minimum-norm weights $w^\circ$, since $(Gw^\circ)_k\ge\nu\ge0$ for all $k$ by {prf:ref}`cmoo-lemma-mgda`. This makes them the natural fall-back, with the positive semidefinite part of an indefinite estimate. Point 3 says when trouble is to be expected: near the Pareto front $\nu\to0$, and any error may do it.

# %% [markdown]
# ## What the solution does
#
# From here on $G=J^\top J$ is exact, and $w$ solves {eq}`eq-pref-programme`.
#
# ```{prf:theorem} First-order behaviour
# :label: pref-theorem-behaviour
#
# 1. *Descent mode*, $\mu\le\varepsilon$: the sum of the losses falls at the rate $\sum_k(Gw)_k\ge M\nu$, so it falls unless the point is Pareto stationary.
# 2. *If $\mathcal J=\emptyset$*, no loss grows: $(Gw)_k\ge0$ for all $k$. But no weights in $\mathcal S_M$ lower $\mu$, not even the programme's.
# 3. *Balance mode, two objectives*: if $\mathcal J\ne\emptyset$, then $w^\top Ga\ge0$, so $\mu$ does not grow.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. $w^\circ$ is feasible, and $(Gw^\circ)_k\ge\nu$. The optimum is at least $w^{\circ\top}G\mathbf 1\ge M\nu$.
# 2. Then $\bar{\mathcal J}$ is everything, and all right sides are 0. And $w^\top Ga=\sum_kw_k(Ga)_k\le0$ for $w\in\mathcal S_M$.
# 3. Let $r_1F_1>r_2F_2$ (if they are equal, $a=0$). So $a=(\alpha,-\gamma)$ with $\alpha,\gamma>0$ by {prf:ref}`pref-lemma-direction`, and $\mathcal J^*=\{1\}$. Write $g_{kl}$ for the entries of $G$.
#    * *$2\in\mathcal J$ implies $1\in\mathcal J$.* Suppose $\alpha g_{12}>\gamma g_{22}$ and $\alpha g_{11}\le\gamma g_{12}$. Then $g_{12}>0$, $g_{22}<\frac\alpha\gamma g_{12}$ and $g_{11}\le\frac\gamma\alpha g_{12}$. The product, $g_{11}g_{22}<g_{12}^2$, is impossible for a Gram matrix. So $1\in\mathcal J$.
#    * *If $w=(1,0)$ is feasible*, the optimum is at least $(Ga)_1>0$. This is so if $2\in\mathcal J$, or $g_{12}\ge(Ga)_2$.
#    * *Otherwise* $g_{12}<(Ga)_2\le0$, and $g_{22}>0$, as $g_{12}\ne0$. Take $w=(g_{22},-g_{12})/(g_{22}-g_{12})$: $(Gw)_2=0$ and $(Gw)_1=\frac{g_{11}g_{22}-g_{12}^2}{g_{22}-g_{12}}\ge0$. It is feasible, and $a^\top Gw=\alpha(Gw)_1\ge0$.
# ```
#
# ```{prf:example} Three objectives
# :label: pref-example-three
#
# Let $r=\mathbf 1$, $\mathbf F=(1,3,6)$, $\nabla F_1=\nabla F_3=(0,-1)$ and $\nabla F_2=(1,1)$.
#
# 1. $u=(0.1,0.3,0.6)$, so $\mu=0.20$, far above $\varepsilon$; $a_2=\log0.9-\mu<0$ and $a_1<0<a_3$. With $c=a_1+a_3$: $(Ga)_1=(Ga)_3=c-a_2$ and $(Ga)_2=2a_2-c$.
# 2. $c=-1.02$, so $(Ga)_1<0<(Ga)_2$: $\mathcal J=\{2\}$, and $\mathcal J^*=\{3\}$. The constraint for objective 3 is $w_1-w_2+w_3\ge0$, that is, $w_2\le\frac12$. That for objective 1 has the same left side and a negative right side.
# 3. The programme maximises $(1-w_2)(Ga)_1+w_2(Ga)_2$, which grows with $w_2$. The optimum is at $w_2=\frac12$, with value $\frac12\big((Ga)_1+(Ga)_2\big)=\frac12a_2=-0.15$.
#
# All feasible weights raise $\mu$, at a rate of at least $\frac{0.15}S$. The best direction, $Jw=(\frac12,0)$, leaves the worst and the best loss as they are, and lowers the one between.
# ```
#
# The reason is the constraint for $\mathcal J^*$: without it, $w=(0,1,0)$ would lower $\mu$, and raise the worst loss. It is one objective of C's against another, "the worst must not grow" against "balance", and the programme gives the former precedence. No loss grows here, to first order; on random instances this happens in about one case in a hundred (table below).
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **Feasibility** is assumed in C. {prf:ref}`pref-theorem-feasible` says when it holds. With the two-way estimate, which can be indefinite, it may not.
# * **Symmetry.** The missing symmetrisation ({prf:ref}`cmoo-lemma-two-way`) does no harm to feasibility; it changes $a^\top g_k$, and with it the sets and the solution.
# * **Balance mode** need not balance for $M\ge3$, and not if $\mathcal J=\emptyset$. That $\mu$ falls along $-Ja$ says nothing of $-Jw$.
# * **The minimum weight** ($w$ is mixed with uniform weights) is applied after the programme; the mixture need not keep its constraints (below).
# * **The method stops at the edge** $\mu=\varepsilon$, not at $r_1F_1=\dots=r_MF_M$.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "remove-input"]
profile = "full"  # "quick": fewer instances
seed = 0  # of the random instances
instances = None  # of each kind; None: 400 in the full profile, 60 in the quick one

# %% tags=["remove-input"]
import numpy as np
import pandas as pd
from scipy.optimize import brentq

from papers.fedcmoo.pref_checks import balance, game_value, min_norm, preference_program
from papers.kit import plot
from papers.kit.claims import check

instances = instances or {"quick": 60, "full": 400}[profile]
rng = np.random.default_rng(seed)


def random_case(M):  # a Jacobian with columns of different lengths, preferences, losses
    d = int(rng.integers(1, 2 * M + 1))
    jac = rng.standard_normal((d, M)) * np.exp(rng.standard_normal(M))
    return jac, np.exp(rng.standard_normal(M)), np.exp(rng.standard_normal(M))


# %% [markdown]
# **The direction.** $\frac{\partial\mu}{\partial F_k}=\frac{a_k}S$ by central differences, and $a^\top\mathbf F=0$, for $M=2,5,40$. Then quadratic losses: the remainder of point 1 must fall a hundredfold when $\eta$ falls tenfold; and along $-Ja$ a long step need not lower $\mu$.

# %% tags=["remove-input"]
slopes, products, signs = [], [], []
for M in np.repeat([2, 5, 40], 20):
    _, r, F = random_case(M)
    mu, a = balance(r, F)
    h = 1e-5 * F
    ends = [balance(r, F + sign * np.diag(h))[0] for sign in (1, -1)]
    slopes.append(np.abs((ends[0] - ends[1]) / (2 * h) - a / (r @ F)).max() * F.max())
    products.append(abs(a @ F) / (r @ F))
    signs.append(a[np.argmax(r * F)] > 0 > a.min())
ratios, long = [], []
for _ in range(20):
    _, r, F = random_case(3)
    centres = rng.standard_normal((3, 4))  # F_k(x) = |x - c_k|^2 / 2 + its minimum, from x = 0
    least, jac, (mu, a) = F, -centres.T, balance(r, F + np.square(centres).sum(1) / 2)
    d, S = jac @ a, r @ (F + np.square(centres).sum(1) / 2)
    at = lambda eta: balance(r, np.square(eta * d + centres).sum(1) / 2 + least)[0]
    rest = [at(eta) - mu + eta * d @ d / S for eta in (1e-2, 1e-3)]
    ratios.append(rest[0] / rest[1])
    long.append(max(at(eta) for eta in (1.0, 10.0, 100.0)) > mu)
pair = lambda ratio: balance(np.ones(2), np.array([ratio, 1.0]))[0]
edge = brentq(lambda ratio: pair(ratio) - 0.01, 1, 3)

# %% tags=["remove-input", "nbval-check-output"]
check("grad mu = J a / S on 60 instances, to 1e-7", max(slopes) < 1e-7)
check(
    "a'F = 0 to 1e-12 S, the worst has a_k > 0, some a_k < 0", max(products) < 1e-12 and all(signs)
)
check(
    "remainder of the step: ratio within 20 % of 100 in the median of 20",
    abs(np.median(ratios) - 100) < 20,
)
check("a long step along -J a raises mu on some instance", any(long))
_ = check(
    "two objectives: mu <= 0.01 up to a ratio of",
    1.32 < edge < 1.34,
    f"{1 / edge:.2f} to {edge:.2f}",
)

# %% [markdown]
# **Feasibility.** The programme on random cases with $M=2,3,5,11$, rank-deficient ones among them: with exact $G$; with an antisymmetric matrix of the same size added; with a symmetric matrix added, which makes it indefinite. The solver's answers are checked against the constraints, and against $\operatorname{val}(G)$ of {prf:ref}`pref-theorem-feasible` for equal losses.


# %% tags=["remove-input"]
def noisy(G, sign):  # plus a random matrix of the size of G, symmetric or antisymmetric
    noise = np.abs(G).max() * rng.standard_normal(G.shape)
    return G + (noise + sign * noise.T) / 2


kinds = {
    "exact": lambda G: G,
    "plus antisymmetric": lambda G: noisy(G, -1),
    "plus symmetric": lambda G: noisy(G, 1),
}
rows = []
for name, disturb in kinds.items():
    for M in (2, 3, 5, 11):
        for _ in range(instances // 4):
            jac, r, F = random_case(M)
            G = disturb(jac.T @ jac)
            size = np.abs(G).max()
            found = preference_program(r, F, G)
            margin = (found.weights @ G - found.low).min() / size
            equal = preference_program(np.ones(M), np.ones(M), G)
            rows.append(
                (
                    name,
                    M,
                    np.isfinite(found.value),
                    margin,
                    np.isfinite(equal.value),
                    game_value(G) / size,
                )
            )
cases = pd.DataFrame(rows, columns=["G", "M", "feasible", "margin", "equal losses", "value"])
clear = cases[cases["value"].abs() > 1e-6]
zero = preference_program(np.ones(3), np.array([1.0, 2.0, 3.0]), np.zeros((3, 3)))
slack = []
for _ in range(instances):
    jac, _, _ = random_case(3)
    G, nu = jac.T @ jac, np.square(jac @ min_norm(jac)).sum()
    E = 0.5 * noisy(0 * G + np.abs(G).max(), 1)
    slack.append((game_value(G + E) - nu + np.linalg.norm(E, 2)) / np.abs(G).max())
two = game_value(np.ones((2, 2)) - 2.02 * np.eye(2))  # nu = 1, |E|_op = 2.02

# %% tags=["remove-input", "nbval-check-output"]
for name in ("exact", "plus antisymmetric"):
    part = cases[cases["G"] == name]
    check(
        f"{name}: feasible on all {len(part)}, constraints met to 1e-8",
        part["feasible"].all() and part["margin"].min() > -1e-8,
    )
part = cases[cases["G"] == "plus symmetric"]
check(
    "plus symmetric: infeasible on some",
    not part["feasible"].all(),
    f"{(~part['feasible']).sum()} of {len(part)}",
)
check(
    "    but wherever the value of the game is above 1e-6, feasible",
    part[part["value"] > 1e-6]["feasible"].all(),
)
check(
    f"equal losses: feasible exactly if the value is positive, {len(clear)} cases",
    (clear["equal losses"] == (clear["value"] > 0)).all(),
)
check("G = 0 is feasible", np.isfinite(zero.value))
check(f"value of G + E >= nu - |E|_op on {instances} instances", min(slack) >= -1e-9)
_ = check("    and negative for an error of 2.02 nu, two equal gradients", two < 0)

# %% [markdown]
# **What the solution does**, with exact $G$. In descent mode (losses nearly balanced) the value of the programme is compared with $M\nu$; for orthonormal gradients both are equal. In balance mode the value is a share of $\max_k\lvert(Ga)_k\rvert$: the table says how often it is negative for each number of objectives if $\mathcal J\ne\emptyset$, and a check that no weights lower $\mu$ if $\mathcal J=\emptyset$. The last check says how often the weights $0.8w+\frac{0.2}M$ break a constraint.

# %% tags=["remove-input"]
descent, modes = [], []
for M in (2, 3, 5):
    for _ in range(instances):
        jac, r, F = random_case(M)
        G = jac.T @ jac
        nu, size = np.square(jac @ min_norm(jac)).sum(), np.abs(G).max()
        near = preference_program(r, (1 + 0.02 * rng.standard_normal(M)) / r, G)
        descent.append((near.value - M * nu) / size)
        found = preference_program(r, F, G, tolerance=0.0)
        rate = G @ balance(r, F)[1]
        kept = ((0.8 * found.weights + 0.2 / M) @ G - found.low).min() / size > -1e-8
        modes.append(
            (M, found.falling.any(), found.value / np.abs(rate).max(), rate.max() <= 0, kept)
        )
modes = pd.DataFrame(modes, columns=["M", "J", "value", "no w helps", "kept"])
square = preference_program(np.ones(3), np.ones(3), np.eye(3)).value
some, none = modes[modes["J"]], modes[~modes["J"]]

# %% tags=["remove-input", "nbval-check-output"]
check(f"descent mode: value >= M nu on {len(descent)} instances, to 1e-8", min(descent) >= -1e-8)
check(
    "    equality for orthonormal gradients, to 1e-9: 1.01 M nu is not reached",
    abs(square - 1) < 1e-9,
)
check(
    f"M = 2, J not empty: value >= 0 on {(some['M'] == 2).sum()} instances, to 1e-8",
    some[some["M"] == 2]["value"].min() >= -1e-8,
)
check(
    f"J empty: no weights lower mu, {len(none)} instances",
    none["no w helps"].all() and len(none) > 0,
)
_ = check(
    "the minimum weight breaks a constraint on some instances",
    not modes["kept"].all(),
    f"{1 - modes['kept'].mean():.0%}",
)

# %% tags=["remove-input"]
groups = some.groupby("M")["value"]
columns = {
    "instances, J not empty": groups.size(),
    "value < 0": groups.agg(lambda v: (v < -1e-6).mean()),
}
pd.DataFrame(columns | {"smallest value": groups.min().round(3) + 0.0}).round(3)

# %% [markdown]
# **The example** has the losses $F_k+\langle\nabla F_k,x\rangle+\frac12\lVert x\rVert^2$ and starts at $x=0$. The bound of its point 3 is proved by enumeration: $w_1$ and $w_3$ enter through their sum, so a grid of $w_2$ is all there is.

# %% tags=["remove-input"]
jac, F = np.array([[0.0, 1.0, 0.0], [-1.0, 1.0, -1.0]]), np.array([1.0, 3.0, 6.0])
G, (mu, a) = jac.T @ jac, balance(np.ones(3), F)
found = preference_program(np.ones(3), F, G)
grid = np.linspace(0, 1, 1001)
weights = np.stack([1 - grid, grid, 0 * grid], 1)  # w_1 + w_3 on the first
allowed = (weights @ G >= found.low - 1e-12).all(1)
etas = np.linspace(0, 0.5, 101)


def along(d):  # losses [101, 3] on the line x = -eta d
    x = -etas[:, None] * d
    return F + x @ jac + np.square(x).sum(1, keepdims=True) / 2


paths = {"along J a": along(jac @ a), "along J w, the programme's": along(jac @ found.weights)}
imbalance = {name: balance(np.ones(3), losses)[0] for name, losses in paths.items()}

# %% tags=["remove-input", "nbval-check-output"]
check(
    "J = {2} and J* = {3}",
    found.falling.tolist() == [False, True, False] and found.worst.tolist() == [False, False, True],
)
check(
    "w_2 = 1/2 to 1e-9, the value is a_2 / 2 to 1e-9",
    abs(found.weights[1] - 0.5) < 1e-9 and abs(found.value - a[1] / 2) < 1e-9,
    f"{a[1] / 2:.3f}",
)
check(
    "all allowed weights of a grid have w'Ga <= a_2 / 2 < 0",
    (weights[allowed] @ G @ a).max() <= a[1] / 2 + 1e-12 < 0,
)
check("    without the constraint for J*, w = (0, 1, 0) has w'Ga > 0.4", (G @ a)[1] > 0.4)
ahead = imbalance["along J w, the programme's"]
check("mu falls for small steps along -J a", imbalance["along J a"][1] < mu)
check("mu rises for all 100 steps up to 1/2 along -J w", (np.diff(ahead) > 0).all())
slope = (ahead[1] - mu) / etas[1]
_ = check(
    "    at the rate 0.15 / S of the example, within 10 %",
    abs(slope / (-found.value / F.sum()) - 1) < 0.1,
)


# %% tags=["remove-input"]
def draw(fig):
    ax = fig.subplots(subplot_kw={"xlabel": "step eta", "ylabel": "imbalance mu"})
    for name, values in imbalance.items():
        ax.plot(etas, values, label=name)
    plot.level(ax, mu, "at the start")
    ax.legend()


plot.show(
    draw,
    alt="Imbalance against the step size: a line along J a falls almost straight from 0.20 to 0.17; a curve along J w rises slowly from the same "
    "start, above a dotted level, to 0.205.",
    caption="Three objectives: the imbalance after one step along minus J a, and along minus J w with the weights of the programme.",
)

# %% [markdown]
# The cells that make these checks are in {download}`note_balancing.py <src/note_balancing.py>`.
