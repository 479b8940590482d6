# %% [markdown]
# # FedCMOO-Pref: balancing, and when its program can be solved
#
# FedCMOO-Pref of {cite:t}`askin2025fedcmoo` (C below) chooses the objectives' weights by a linear program, as in
# {cite}`mahapatra2020preferences`. The program should lower the imbalance of the losses or, once they are balanced, all
# losses. C shows neither that the program is feasible nor that its solution has this effect.
#
# **Feasibility.** The program is feasible for all preferences and losses if and only if the matrix game of the
# estimated Gram matrix has a nonnegative value ({prf:ref}`pref-theorem-feasible`). A positive semidefinite estimate has
# such a value, also with an antisymmetric matrix added. An indefinite estimate may have a negative one.
#
# **Balance.** For two objectives, the solution does not raise the imbalance to first order, provided that some weights
# in the simplex lower it. For three objectives the solution may raise it: in {prf:ref}`pref-example-three`, with exact
# gradients, all feasible weights do.

# %% [markdown]
# ## The balancing direction
#
# The notation is that of [the note on FedCMOO's theorem](note_cmoo.ipynb). For losses $F_k>0$ and preferences $r_k>0$
# let $v_k=r_kF_k$, $S=\sum_kv_k$ and $u=\frac vS\in\mathcal S_M$. The imbalance $\mu$ and the balancing direction $a$
# are
#
# $$
# \mu=\sum_ku_k\log(Mu_k),\qquad a_k=r_k\big(\log(Mu_k)-\mu\big).
# $$ (eq-pref-mu)
#
# So $\mu$ is the divergence of $u$ from the uniform distribution. It is never negative, and 0 exactly if all $r_kF_k$
# are equal.
#
# ```{prf:lemma} C Appendix C.2
# :label: pref-lemma-direction
#
# 1. $\nabla\mu=\frac1SJa$. For smooth losses, therefore,
#    $\mu(x-\eta Ja)=\mu(x)-\frac\eta S\lVert Ja\rVert^2+O(\eta^2)$.
# 2. For weights $w$, $\mu(x-\eta Jw)=\mu(x)-\frac\eta S\,w^\top Ga+O(\eta^2)$.
# 3. $a^\top\mathbf F=0$. The objectives with the largest $r_kF_k$ (the worst ones) have $a_k\ge0$. If $\mu>0$, these
#    $a_k$ are positive and some other $a_k$ is negative.
# ```
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. Since $\sum_kdu_k=0$, $d\mu=\sum_k(\log(Mu_k)+1)\,du_k=\sum_k\log(Mu_k)\,du_k$. Insert
#    $du_k=\frac1S\big(dv_k-u_k\sum_jdv_j\big)$ to obtain
#    $d\mu=\frac1S\sum_k\big(\log(Mu_k)-\mu\big)dv_k=\frac1Sa^\top d\mathbf F$. The claim follows from
#    $d\mathbf F=J^\top dx$.
# 2. The first-order change of $\mu$ along $-\eta Jw$ is $-\eta\langle\frac1SJa,Jw\rangle=-\frac\eta Sw^\top Ga$.
# 3. We have $a^\top\mathbf F=\sum_kv_k(\log(Mu_k)-\mu)=S(\mu-\mu)=0$. The imbalance $\mu$ is the mean of $\log(Mu_k)$
#    with positive weights $u_k$. So the largest $\log(Mu_k)$ is at least $\mu$, and larger if $\mu>0$. Then the worst
#    objectives have $a_k>0$. Since $F_k>0$, $a^\top\mathbf F=0$ requires a negative $a_k$.
# ```
#
# A short step along $-Ja$ lowers the imbalance. But $a$ has entries of both signs, so C's program looks for weights
# $w\in\mathcal S_M$ instead.

# %% [markdown]
# ## The program
#
# Let $G$ be any square matrix with columns $g_k$, such as the method's estimate of $J^\top J$. (If $G$ is symmetric,
# $(Ga)_k=a^\top g_k$.) Let $\mathcal J=\{k:a^\top g_k>0\}$, let $\bar{\mathcal J}$ be its complement, and let
# $\mathcal J^*=\arg\max_kr_kF_k$ be the set of the worst objectives. C's program (19) is
#
# $$
# \begin{aligned}
# \max_{w\in\mathcal S_M}\;&w^\top Ga\ \text{ if }\mu>\varepsilon,\qquad w^\top G\mathbf 1\ \text{ if }\mu\le\varepsilon,\\
# \text{s.t. }\;&w^\top g_k\ge0\quad(k\in\mathcal J^*),\\
# &w^\top g_k\ge a^\top g_k\,\mathbb 1\{\mathcal J\ne\emptyset\}\quad(k\in\bar{\mathcal J}\setminus\mathcal J^*).
# \end{aligned}
# $$ (eq-pref-program)
#
# To first order, $w^\top g_k$ is the rate at which $F_k$ decreases. So the losses of the worst objectives must not
# grow. Those of the others in $\bar{\mathcal J}$ must not grow faster than along $-Ja$, or not at all if $\mathcal
# J=\emptyset$. C uses $\varepsilon=0.01$. For two objectives, $\mu\le0.01$ allows any $\frac{r_1F_1}{r_2F_2}$ between
# 0.75 and 1.33.
#
# ```{prf:theorem} Feasibility
# :label: pref-theorem-feasible
#
# Let $\operatorname{val}(G)=\max_{w\in\mathcal S_M}\min_kw^\top g_k$.
#
# 1. {eq}`eq-pref-program` is feasible for all $r$ and $\mathbf F$ if and only if $\operatorname{val}(G)\ge0$.
# 2. $\operatorname{val}(G)\ge\min_{p\in\mathcal S_M}p^\top Gp$. In particular, the program is feasible if $G$ has no
#    negative entry, or is the sum of a positive semidefinite and an antisymmetric matrix.
# 3. If $G=J^\top J$ with $\nu=\min_{w\in\mathcal S_M}\lVert Jw\rVert^2$, the program is feasible for every estimate
#    $\hat G$ with $\lVert\hat G-G\rVert_{\rm op}\le\nu$.
# ```
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. *If.* All right sides in {eq}`eq-pref-program` are at most 0, because $a^\top g_k\le0$ on $\bar{\mathcal J}$. Any
#    $w$ with $w^\top g_k\ge0$ for all $k$ is therefore feasible. *Only if.* Let all $r_kF_k$ be equal. Then
#    $\mathcal J^*$ contains all objectives, so a feasible $w$ has $w^\top g_k\ge0$ for all $k$.
# 2. A linear function on $\mathcal S_M$ is smallest at a vertex, so
#    $\min_kw^\top g_k=\min_{p\in\mathcal S_M}w^\top Gp$. By von Neumann's minimax theorem,
#    $\operatorname{val}(G)=\min_p\max_ww^\top Gp$. The choice $w=p$ shows that the inner maximum is at least
#    $p^\top Gp$. An antisymmetric part of $G$ does not change $p^\top Gp$.
# 3. For $p\in\mathcal S_M$, $p^\top\hat Gp\ge p^\top Gp-\lVert\hat G-G\rVert_{\rm op}\lVert p\rVert^2\ge\nu-\nu$,
#    because $\lVert p\rVert\le1$. So $\operatorname{val}(\hat G)\ge0$ by point 2.
# ```
#
# For $G=J^\top J$ the weights $w^\circ$ that minimise $\lVert Jw\rVert$ are feasible, since $(Gw^\circ)_k\ge\nu\ge0$
# for all $k$ by {prf:ref}`cmoo-lemma-mgda`. If the program of an estimate is infeasible, the natural fall-back is
# $w^\circ$ of the estimate's positive semidefinite part. By point 3, this is needed only if the error of the estimate
# exceeds $\nu$. Near the Pareto front $\nu$ tends to 0.

# %% [markdown]
# ## What the solution does
#
# Let $G=J^\top J$ be exact and let $w$ solve {eq}`eq-pref-program`.
#
# ```{prf:theorem} First-order behaviour
# :label: pref-theorem-behaviour
#
# 1. *Descent mode.* If $\mu\le\varepsilon$, the sum of the losses falls at the rate $\sum_k(Gw)_k\ge M\nu$, which is
#    positive unless the point is Pareto stationary.
# 2. *Empty $\mathcal J$.* If $\mathcal J=\emptyset$, no loss grows: $(Gw)_k\ge0$ for all $k$. However, no weights in
#    $\mathcal S_M$ lower $\mu$.
# 3. *Balance mode, two objectives.* If $\mu>\varepsilon$ and $\mathcal J\ne\emptyset$, then $w^\top Ga\ge0$, so $\mu$
#    does not grow.
# ```
#
# ```{prf:proof}
# We proceed in steps.
#
# 1. The weights $w^\circ$ are feasible, and $(Gw^\circ)_k\ge\nu$. The optimum is therefore at least
#    $w^{\circ\top}G\mathbf 1\ge M\nu$.
# 2. If $\mathcal J=\emptyset$, then $\bar{\mathcal J}$ contains all objectives, and all right sides in
#    {eq}`eq-pref-program` are 0. Moreover, $w^\top Ga=\sum_kw_k(Ga)_k\le0$ for $w\in\mathcal S_M$.
# 3. Let $r_1F_1>r_2F_2$ (if they are equal, $a=0$). By {prf:ref}`pref-lemma-direction`, $a=(\alpha,-\gamma)$ with
#    $\alpha,\gamma>0$, and $\mathcal J^*=\{1\}$. Write $g_{kl}$ for the entries of $G$.
#    * *$2\in\mathcal J$ implies $1\in\mathcal J$.* If not, $\alpha g_{12}>\gamma g_{22}$ and
#      $\alpha g_{11}\le\gamma g_{12}$. Then $g_{12}>0$, $g_{22}<\frac\alpha\gamma g_{12}$ and
#      $g_{11}\le\frac\gamma\alpha g_{12}$. Multiply the last two inequalities to obtain $g_{11}g_{22}<g_{12}^2$, which
#      is impossible for a Gram matrix. As $\mathcal J\ne\emptyset$, $1\in\mathcal J$.
#    * *If $w=(1,0)$ is feasible*, the optimum is at least $(Ga)_1>0$. These weights are feasible if $2\in\mathcal J$ or
#      $g_{12}\ge(Ga)_2$.
#    * *Otherwise* $g_{12}<(Ga)_2\le0$, and $g_{22}>0$ because $g_{12}\ne0$. Take $w=(g_{22},-g_{12})/(g_{22}-g_{12})$.
#      Then $(Gw)_2=0$ and $(Gw)_1=\frac{g_{11}g_{22}-g_{12}^2}{g_{22}-g_{12}}\ge0$. So $w$ is feasible. The optimum is
#      at least $a^\top Gw=\alpha(Gw)_1\ge0$.
# ```
#
# ```{prf:example} Three objectives
# :label: pref-example-three
#
# Let $r=\mathbf 1$, $\mathbf F=(1,3,6)$, $\nabla F_1=\nabla F_3=(0,-1)$ and $\nabla F_2=(1,1)$.
#
# 1. Here $u=(0.1,0.3,0.6)$, so $\mu=0.20$, far above $\varepsilon$. Moreover, $a_2=\log0.9-\mu<0$ and $a_1<0<a_3$. With
#    $c=a_1+a_3$, $(Ga)_1=(Ga)_3=c-a_2$ and $(Ga)_2=2a_2-c$.
# 2. Since $c=-1.02$, $(Ga)_1<0<(Ga)_2$. Hence $\mathcal J=\{2\}$ and $\mathcal J^*=\{3\}$. The constraint for objective
#    3 is $w_1-w_2+w_3\ge0$, that is, $w_2\le\frac12$. The constraint for objective 1 is weaker: it has the same left
#    side and a negative right side.
# 3. The program maximises $(1-w_2)(Ga)_1+w_2(Ga)_2$, which grows with $w_2$. The optimum is at $w_2=\frac12$, with
#    value $\frac12\big((Ga)_1+(Ga)_2\big)=\frac12a_2=-0.15$.
#
# So all feasible weights raise $\mu$, at a rate of at least $\frac{0.15}S$. A step along $-Jw=-(\frac12,0)$ lowers only
# the second loss, to first order.
# ```
#
# With two objectives, $\mathcal J$ can be empty: for $r=\mathbf 1$, $\mathbf F=(3,1)$ and $\nabla F_1=\nabla F_2$ both
# entries of $Ga$ are negative, and every $w$ raises $\mu$.
#
# Without the constraint for $\mathcal J^*$, $w=(0,1,0)$ would lower $\mu$ but raise the worst loss. On random instances
# with three or five objectives the program raises $\mu$ in about one case in a hundred (table below).
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **Feasibility** is assumed in the paper ({prf:ref}`pref-theorem-feasible`). It may fail with C's two-way estimate of
#   $G$, which can be indefinite.
# * **Symmetry.** C's missing symmetrisation ({prf:ref}`cmoo-lemma-two-way`) does not affect feasibility, but it changes
#   $\mathcal J$ and the solution.
# * **Balance mode** ($\mu>\varepsilon$) need not lower $\mu$ for $M\ge3$, or if $\mathcal J=\emptyset$.
# * **Minimum weight.** C mixes the solution $w$ with uniform weights. The mixture may violate the constraints.
# * **Balancing stops** at $\mu=\varepsilon$, not at $r_1F_1=\dots=r_MF_M$.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer instances
seed = 0  # of the random instances
instances = None  # of each kind; None: 400 in the full profile, 60 in the quick one

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
from scipy.optimize import brentq

from papers.fedcmoo.theory.balancing import balance, game_value, min_norm, preference_program
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle

settle(globals(), seed=0, instances=(400, 60))
rng = np.random.default_rng(seed)


def random_case(M):
    """J `[d, M]` with columns of different lengths, preferences r and losses F of M objectives."""
    d = int(rng.integers(1, 2 * M + 1))
    jac = rng.standard_normal((d, M)) * np.exp(rng.standard_normal(M))
    r = np.exp(rng.standard_normal(M))
    F = np.exp(rng.standard_normal(M))
    return jac, r, F


def imbalance(r, F):
    """mu, for each row of F."""
    mu, _ = balance(r, F)
    return mu


# %% [markdown]
# **The direction.** For $M=2,5,40$ we check $a^\top\mathbf F=0$ and, by central differences,
# $\frac{\partial\mu}{\partial F_k}=\frac{a_k}S$. For quadratic losses, the remainder in point 1 of
# {prf:ref}`pref-lemma-direction` must fall a hundredfold when $\eta$ falls tenfold.

# %% tags=["hide-input", "nbval-check-output"]
errors = []
products = []
signs = []
for M in (2, 5, 40):
    _, r, F = random_case(M)
    _, a = balance(r, F)
    S = r @ F
    h = np.diag(1e-5 * F)
    differences = (imbalance(r, F + h) - imbalance(r, F - h)) / (2e-5 * F)
    errors.append(np.abs(differences - a / S).max() * F.max())
    products.append(abs(a @ F) / S)
    signs.append(a[np.argmax(r * F)] > 0 > a.min())

ratios = []
rises = []
for _ in range(20):  # steps along -J a from 0 for F_k(x) = |x - c_k|^2 / 2 + minimum
    _, r, minima = random_case(3)
    centres = rng.standard_normal((3, 4))
    F = np.square(centres).sum(1) / 2 + minima
    mu, a = balance(r, F)
    direction = -centres.T @ a  # J a
    rate = direction @ direction / (r @ F)
    etas = np.array([1e-2, 1e-3, 1.0, 10.0, 100.0])
    x = -etas[:, None] * direction  # [5, d]
    losses = np.square(x[:, None] - centres).sum(-1) / 2 + minima
    rise = imbalance(r, losses) - mu
    remainder = rise + etas * rate
    ratios.append(remainder[0] / remainder[1])
    rises.append(rise[2:].max())


def two_objectives(ratio):
    """mu of two objectives whose losses have this ratio."""
    return imbalance(np.ones(2), np.array([ratio, 1.0]))


largest_ratio = brentq(lambda ratio: two_objectives(ratio) - 0.01, 1, 3)

check("grad mu = J a / S for M = 2, 5, 40, to 1e-7", max(errors) < 1e-7)
check(
    "a'F = 0 to 1e-12 S, the worst has a_k > 0, some a_k < 0",
    max(products) < 1e-12 and all(signs),
)
check(
    "remainder of the step: ratio within 20 % of 100 in the median of 20",
    abs(np.median(ratios) - 100) < 20,
)
check("a long step along -J a raises mu on some instance", max(rises) > 0)
check(
    "two objectives: mu <= 0.01 up to a ratio of",
    1.32 < largest_ratio < 1.34,
    f"{1 / largest_ratio:.2f} to {largest_ratio:.2f}",
)

# %% [markdown]
# **Feasibility.** We count the random cases with $M=2,3,5,11$ in which the program is feasible, for the exact $G$ and
# for its sum with a random antisymmetric or symmetric matrix with entries as large as those of $G$. For equal losses we
# check feasibility against $\operatorname{val}(G)$ of {prf:ref}`pref-theorem-feasible`.


# %% tags=["hide-input", "nbval-check-output"]
def symmetric(noise):
    """The symmetric part of a matrix."""
    return (noise + noise.T) / 2


disturbances = {
    "exact": lambda noise: 0 * noise,
    "plus antisymmetric": lambda noise: (noise - noise.T) / 2,
    "plus symmetric": symmetric,
}


def feasibility(disturbance, M):
    """The row of one random case."""
    jac, r, F = random_case(M)
    exact = jac.T @ jac
    noise = np.abs(exact).max() * rng.standard_normal((M, M))
    G = exact + disturbances[disturbance](noise)
    size = np.abs(G).max()
    program = preference_program(r, F, G)
    equal_losses = preference_program(np.ones(M), np.ones(M), G)
    return {
        "G": disturbance,
        "M": M,
        "feasible": np.isfinite(program.value),
        "margin": (program.weights @ G - program.low).min() / size,
        "equal losses": np.isfinite(equal_losses.value),
        "value": game_value(G) / size,
    }


sizes = np.repeat([2, 3, 5, 11], instances // 4)
cases = pd.DataFrame([feasibility(kind, M) for kind in disturbances for M in sizes])
zero = preference_program(np.ones(3), np.array([1.0, 2.0, 3.0]), np.zeros((3, 3)))

slacks = []  # of the lower bound on the value, over the size of G
for _ in range(instances):
    jac, _, _ = random_case(3)
    G = jac.T @ jac
    size = np.abs(G).max()
    nu = np.square(jac @ min_norm(jac)).sum()
    E = size * (0.5 + 0.5 * symmetric(rng.standard_normal((3, 3))))
    slacks.append((game_value(G + E) - nu + np.linalg.norm(E, 2)) / size)
equal_gradients = np.ones((2, 2))  # nu = 1

for disturbance in ("exact", "plus antisymmetric"):
    chosen = cases[cases["G"] == disturbance]
    check(
        f"{disturbance}: feasible on all {len(chosen)}, constraints met to 1e-8",
        chosen["feasible"].all() and chosen["margin"].min() > -1e-8,
    )
chosen = cases[cases["G"] == "plus symmetric"]
infeasible = (~chosen["feasible"]).sum()
check(
    "plus symmetric: infeasible on some",
    infeasible > 0,
    f"{infeasible} of {len(chosen)}",
)
check(
    "    but feasible wherever the value of the game is above 1e-6",
    chosen[chosen["value"] > 1e-6]["feasible"].all(),
)
clear = cases[cases["value"].abs() > 1e-6]
check(
    f"equal losses: feasible exactly if the value is positive, {len(clear)} cases",
    (clear["equal losses"] == (clear["value"] > 0)).all(),
)
check("G = 0 is feasible", np.isfinite(zero.value))
check(f"value of G + E >= nu - |E|_op on {instances} instances", min(slacks) >= -1e-9)
check(
    "    and negative for an error of 2.02 nu, two equal gradients",
    game_value(equal_gradients - 2.02 * np.eye(2)) < 0,
)


# %% [markdown]
# **What the solution does.** We solve the program for the exact $G$. In descent mode, its optimum is compared with
# $M\nu$. In balance mode, a negative optimum means that the imbalance $\mu$ grows; the table shows how often that
# happens if some objectives must not grow. The last check counts how often the authors' step towards uniform weights
# breaks a constraint that the solution satisfies.

# %% tags=["hide-input", "nbval-check-output"]
def solve(jac, r, F):
    """The row of one case: in balance mode for every positive mu, and for nearly balanced losses."""
    M = len(r)
    G = jac.T @ jac
    size = np.abs(G).max()
    nu = np.square(jac @ min_norm(jac)).sum()
    nearly_balanced = (1 + 0.02 * rng.standard_normal(M)) / r
    descent = preference_program(r, nearly_balanced, G)
    program = preference_program(r, F, G, tolerance=0.0)
    _, a = balance(r, F)
    rates = G @ a
    lifted = 0.8 * program.weights + 0.2 / M  # no weight below 0.2 / M
    return {
        "M": M,
        "descent - M nu": (descent.value - M * nu) / size,
        "J not empty": program.falling.any(),
        "value": program.value / np.abs(rates).max(),
        "no w helps": rates.max() <= 0,
        "margin of lifted weights": (lifted @ G - program.low).min() / size,
    }


modes = pd.DataFrame([solve(*random_case(M)) for M in np.repeat([2, 3, 5], instances)])
falling = modes[modes["J not empty"]]
without_j = modes[~modes["J not empty"]]
pairs = falling[falling["M"] == 2]
broken = (modes["margin of lifted weights"] <= -1e-8).mean()
orthonormal = preference_program(np.ones(3), np.ones(3), np.eye(3))

check(
    f"descent mode: value >= M nu on {len(modes)} instances, to 1e-8",
    modes["descent - M nu"].min() >= -1e-8,
)
check(
    "    value = M nu for orthonormal gradients, to 1e-9",
    abs(orthonormal.value - 1) < 1e-9,
)
check(
    f"M = 2, J not empty: value >= 0 on {len(pairs)} instances, to 1e-8",
    pairs["value"].min() >= -1e-8,
)
check(
    f"J empty: no weights lower mu, {len(without_j)} instances",
    without_j["no w helps"].all() and len(without_j) > 0,
)
check(
    "the minimum weight breaks a constraint on some instances",
    broken > 0,
    f"{broken:.0%}",
)

# %% tags=["hide-input"]
values = falling.groupby("M")["value"]
columns = {
    "instances, J not empty": values.size(),
    "value < 0": values.agg(lambda v: (v < -1e-6).mean()),
    "smallest value": values.min().round(3) + 0.0,  # which turns -0 into 0
}
displayed(pd.DataFrame(columns).round(3))

# %% [markdown]
# **The example.** We compare $\mu$ along $-Ja$ and along $-Jw$ in {prf:ref}`pref-example-three`, from $x=0$, with the
# losses $F_k+\langle\nabla F_k,x\rangle+\frac12\lVert x\rVert^2$.

# %% tags=["hide-input", "nbval-check-output"]
r = np.ones(3)
F = np.array([1.0, 3.0, 6.0])
jac = np.array([[0.0, 1.0, 0.0], [-1.0, 1.0, -1.0]])
G = jac.T @ jac
mu, a = balance(r, F)
program = preference_program(r, F, G)

w_2 = np.linspace(0, 1, 1001)
weights = np.stack([1 - w_2, w_2, 0 * w_2], 1)  # w_1 + w_3 on the first
allowed = weights[(weights @ G >= program.low - 1e-12).all(1)]

etas = np.linspace(0, 0.5, 101)
lines = pd.DataFrame(index=pd.Index(etas, name="step eta"))
for label, w in {"along J a": a, "along J w, the program's": program.weights}.items():
    x = -etas[:, None] * (jac @ w)  # [101, 2]
    losses = F + x @ jac + np.square(x).sum(1, keepdims=True) / 2  # [101, 3]
    lines[label] = imbalance(r, losses)
steps = lines.diff().iloc[1:]  # of mu
rate = steps["along J w, the program's"].iloc[0] / etas[1]
_, a_of_two = balance(np.ones(2), np.array([3.0, 1.0]))

check(
    "J = {2} and J* = {3}",
    program.falling.tolist() == [False, True, False]
    and program.worst.tolist() == [False, False, True],
)
check(
    "w_2 = 1/2 to 1e-9, the value is a_2 / 2 to 1e-9",
    abs(program.weights[1] - 0.5) < 1e-9 and abs(program.value - a[1] / 2) < 1e-9,
    f"{a[1] / 2:.3f}",
)
check(
    "all allowed weights of a grid have w'Ga <= a_2 / 2 < 0",
    (allowed @ G @ a).max() <= a[1] / 2 + 1e-12 < 0,
)
check("    without the constraint for J*, w = (0, 1, 0) has w'Ga > 0.4", (G @ a)[1] > 0.4)
check("mu falls for small steps along -J a", steps["along J a"].iloc[0] < 0)
check(
    "two equal gradients with losses 3 and 1: all weights raise mu",
    (np.ones((2, 2)) @ a_of_two < 0).all(),
)
check(
    "mu rises for all 100 steps up to 1/2 along -J w",
    (steps["along J w, the program's"] > 0).all(),
)
check(
    "    at the rate 0.15 / S of the example, within 10 %",
    abs(rate / (-program.value / F.sum()) - 1) < 0.1,
)


# %% tags=["hide-input"]
fig = plot.figure((5.2, 3.4))
ax = lines.plot(ax=fig.subplots(), ylabel="imbalance mu")
plot.level(ax, mu, "at the start")
ax.legend()
plot.show(
    fig,
    alt="Imbalance against the step size: a line along J a falls almost straight from 0.20 to 0.17; a curve along J w rises slowly from the same "
    "start, above a dotted level, to 0.205.",
    caption="With three objectives, one step along $-Ja$ lowers the imbalance, but one step along $-Jw$ with the weights of the program raises it.",
)

# %% [markdown]
# The checks are in {download}`note_balancing.py <src/note_balancing.py>`.
