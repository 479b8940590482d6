# %% [markdown]
# # Skewness: what disagreement between clients adds
#
# A switching method alternates between steps along the gradient of the objective and along that of the constraint. If
# the two gradients lie on one line, the model moves back and forth along it. Otherwise the gradients span a plane, in
# which the alternation makes the model *turn*. Section 3.2 and appendix A of {cite}`fedsgm2025` (F below) measure this
# turning by an antisymmetric matrix of the two gradients.
#
# In a federation every client has its own two gradients. F's appendix A bounds the distance between the mean of the
# clients' matrices and the matrix of the mean gradients. This note proves that bound and shows that its constant cannot
# be improved. Section 3.2 prints it for the clients' matrix alone, where the matrix of the mean gradients vanishes.

# %% [markdown]
# ## Definitions
#
# Fix a point $w$. Client $j$ of $N$ has the gradient $a_j=\nabla f_j(w)$ of its objective and $b_j=\nabla g_j(w)$ of
# its constraint, with means $a=\frac1N\sum_ja_j$, $b=\frac1N\sum_jb_j$ and drifts $\delta a_j=a_j-a$,
# $\delta b_j=b_j-b$, so that $\sum_j\delta a_j=\sum_j\delta b_j=0$. For two vectors let
#
# $$
# x\wedge y=xy^\top-yx^\top .
# $$ (eq-skew-wedge)
#
# This matrix is antisymmetric, linear in $x$ and in $y$, and zero exactly if $x$ and $y$ are linearly dependent. F
# compares two such matrices:
#
# $$
# K_{\rm glob}=a\wedge b,\qquad K_{\rm loc}=\frac1N\sum_{j=1}^Na_j\wedge b_j .
# $$ (eq-skew-k)
#
# Let $V_f=\frac1N\sum_j\lVert\delta a_j\rVert^2$ and $V_g=\frac1N\sum_j\lVert\delta b_j\rVert^2$ be the variances of
# the gradients over the clients.

# %% [markdown]
# ## Identity and bound
#
# ```{prf:theorem} F appendix A
# :label: skew-theorem
#
# $$
# K_{\rm loc}-K_{\rm glob}=\frac1N\sum_{j=1}^N\delta a_j\wedge\delta b_j ,
# $$ (eq-skew-identity)
#
# and hence
#
# $$
# \lVert K_{\rm loc}-K_{\rm glob}\rVert_F\le\sqrt{2V_fV_g} .
# $$ (eq-skew-bound)
# ```
#
# ```{prf:lemma} Length of a wedge
# :label: skew-lemma
#
# $\lVert x\wedge y\rVert_F^2=2\big(\lVert x\rVert^2\lVert y\rVert^2-\langle x,y\rangle^2\big)\le2\lVert x\rVert^2\lVert y\rVert^2$,
# with equality if and only if $\langle x,y\rangle=0$.
# ```
#
# ```{prf:proof}
# Expand $\lVert M\rVert_F^2=\operatorname{tr}(M^\top M)$ for $M=xy^\top-yx^\top$:
#
# 1. The two squares are
#    $\lVert xy^\top\rVert_F^2=\operatorname{tr}(yx^\top xy^\top)=\lVert x\rVert^2\lVert y\rVert^2=\lVert yx^\top\rVert_F^2$.
# 2. The mixed term is
#    $-2\operatorname{tr}\big((xy^\top)^\top yx^\top\big)=-2\operatorname{tr}(y\,x^\top y\,x^\top)=-2\langle x,y\rangle^2$.
# ```
#
# ```{prf:proof}
# We prove {prf:ref}`skew-theorem`.
#
# 1. *Identity.* By bilinearity
#    $a_j\wedge b_j=a\wedge b+a\wedge\delta b_j+\delta a_j\wedge b+\delta a_j\wedge\delta b_j$. In the mean over $j$ the
#    two middle terms vanish, because the drifts average to zero.
# 2. *Triangle inequality.* Together with {prf:ref}`skew-lemma` it yields
#    $\lVert K_{\rm loc}-K_{\rm glob}\rVert_F\le\frac1N\sum_j\lVert\delta a_j\wedge\delta b_j\rVert_F\le\frac{\sqrt2}N\sum_j\lVert\delta a_j\rVert\lVert\delta b_j\rVert$.
# 3. *Cauchy-Schwarz inequality.* Over the clients,
#    $\frac1N\sum_j\lVert\delta a_j\rVert\lVert\delta b_j\rVert\le\sqrt{V_f}\sqrt{V_g}$.
# ```
#
# ```{prf:proposition} The constant is the best possible
# :label: skew-tight
#
# If $\delta a_j=s_jx$ and $\delta b_j=s_jy$ with $\sum_js_j=0$ and $\langle x,y\rangle=0$, then {eq}`eq-skew-bound` is
# an equality.
# ```
#
# ```{prf:proof}
# Let $s^2=\frac1N\sum_js_j^2$. By {eq}`eq-skew-identity`, $K_{\rm loc}-K_{\rm glob}=s^2\,x\wedge y$, whose norm is
# $\sqrt2\,s^2\lVert x\rVert\lVert y\rVert$. Moreover, $V_f=s^2\lVert x\rVert^2$ and $V_g=s^2\lVert y\rVert^2$.
# ```

# %% [markdown]
# ## The printed form of section 3.2
#
# F's section 3.2 bounds $\lVert K_{\rm loc}\rVert_F$ itself by $\sqrt{2V_fV_g}$. Its sentence is about
# $K_{\rm glob}=0$, where this holds. Elsewhere it does not: if all clients agree, $V_f=V_g=0$, but
# $K_{\rm loc}=K_{\rm glob}=a\wedge b$ need not vanish. In general, {eq}`eq-skew-bound` yields
#
# $$
# \lVert K_{\rm loc}\rVert_F\le\lVert K_{\rm glob}\rVert_F+\sqrt{2V_fV_g} .
# $$ (eq-skew-repaired)
#
# ## Remark 1: aligned on the whole, turning in the parts
#
# Consider a solution of $\min f$ subject to $g\le0$ with an active constraint and $\nabla g\ne0$. By the optimality
# condition $\nabla f+\lambda\nabla g=0$, the mean gradients lie on a line, so $K_{\rm glob}=0$. By
# {eq}`eq-skew-identity`, $K_{\rm loc}$ is then the mean of $\delta a_j\wedge\delta b_j$. In general this is not zero:
# at the solution the single clients still turn.
#
# To reduce this turning, F's Remark 1 advises fewer local steps, regularized clients, and tuning the sharpness $\beta$
# of soft switching. But under hard switching with all clients and no compression, $K_{\rm loc}$ does not affect the
# model ([below](#checks)). [A study](np_pairing) measures the effect.
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **Section 3.2** announces the proof of the bound for appendix C, but it is in appendix A.
# * **"$K_{\rm glob}=0$ means $\nabla f=\lambda\nabla g$"** needs $\nabla g\ne0$. At $\nabla g=0$ the matrix vanishes
#   for every $\nabla f$.
# ```

# %% [markdown]
# ## Checks
#
# Random instances have 2 to 8 clients in 2 to 10 dimensions. The mean gradients are 0.1 to 10 times as large as the
# drifts.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer instances
seed = 0  # of the first instance
instances = None  # number of random instances; None: 5000 in the full profile, 500 in the quick one

# %% tags=["hide-input"]
from dataclasses import replace
from itertools import product
from math import sqrt

import pandas as pd
import seaborn as sns
import torch

from fedlib import FedSGM, Hard, Soft, data, run
from fedlib.problems import neyman_pearson
from papers.fedsgm.problems.norms import random_norms
from papers.fedsgm.skewness import client_gradients, skew_matrix, skewness
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.parameters import settle

settle(globals(), seed=0, instances=(5000, 500))


def random_gradients(number):
    """Gradients of the objectives and of the constraints, `[clients, d]` each."""
    rng = torch.Generator().manual_seed(number)
    clients = 2 + number % 7
    dim = 2 + number % 9
    drift = torch.randn(2, clients, dim, generator=rng, dtype=torch.float64)
    mean = torch.randn(2, 1, dim, generator=rng, dtype=torch.float64)
    factor = 10 ** (2 * torch.rand(1, generator=rng).item() - 1)
    a, b = drift + mean * factor
    return a, b


def identity_error(a, b, sign=1.0):
    """The relative error of K_loc - K_glob = mean of the drifts' matrices; `sign` is of the right side."""
    left = skew_matrix(a, b) - skew_matrix(a.mean(0, True), b.mean(0, True))
    right = sign * skew_matrix(a - a.mean(0), b - b.mean(0))
    return float((left - right).norm() / left.norm())


pairs = [random_gradients(seed + k) for k in range(instances)]
norms = pd.DataFrame([skewness(a, b) for a, b in pairs]).astype(float)

# %% [markdown]
# **Identity, bound, and the bound on $K_{\rm loc}$ alone.** The last check shows that a wrong sign in {eq}`eq-skew-identity` would be
# noticed.

# %% tags=["hide-input", "nbval-check-output"]
errors = [identity_error(a, b) for a, b in pairs]
errors_of_wrong_sign = [identity_error(a, b, sign=-1.0) for a, b in pairs]
tolerance = 1 + 1e-12

check(f"the identity holds to 1e-11 on {instances} instances", max(errors) < 1e-11)
check(
    "|K_loc - K_glob| <= sqrt(2 V_f V_g) on all of them",
    (norms["difference"] <= norms["bound"] * tolerance).all(),
)
check(
    "|K_loc| <= |K_glob| + sqrt(2 V_f V_g) on all of them",
    (norms["local"] <= (norms["glob"] + norms["bound"]) * tolerance).all(),
)
check(
    "|K_loc| <= sqrt(2 V_f V_g), without K_glob = 0, fails on more than a third of them",
    (norms["local"] > norms["bound"]).mean() > 1 / 3,
)
check("a planted sign error is caught on every instance", min(errors_of_wrong_sign) > 1)

# %% [markdown]
# **Tightness.** We compute the ratio of the two sides of {eq}`eq-skew-bound` for the drifts of {prf:ref}`skew-tight`.
# In the second check $x$ and $y$ form an angle of 60 degrees, which by {prf:ref}`skew-lemma` reduces the left side by
# the factor $\frac{\sqrt3}2$.

# %% tags=["hide-input", "nbval-check-output"]
weights = torch.tensor([[1.0], [-2.0], [4.0], [-3.0]], dtype=torch.float64)  # of four clients
x = torch.tensor([[3.0, 0.0, 0.0]], dtype=torch.float64)
y = torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64)
y_slanted = x / 3 + sqrt(3) / 2 * y  # at 60 degrees to x


def ratio_to_bound(x, y):
    """|K_loc - K_glob| over its bound, for drifts along x and y."""
    measured = skewness(7.0 + weights * x, weights * y - 1.0)
    return float(measured.difference / measured.bound)


check(
    "orthogonal drifts: the ratio to the bound is 1, to 1e-12",
    abs(ratio_to_bound(x, y) - 1) < 1e-12,
)
check(
    "drifts at 60 degrees: the ratio is sqrt(3) / 2",
    abs(ratio_to_bound(x, y_slanted) - sqrt(3) / 2) < 1e-12,
)

# %% [markdown]
# **Remark 1.** We compute $K_{\rm glob}$ and $K_{\rm loc}$ at solutions of random instances.

# %% tags=["hide-input", "nbval-check-output"]
rows = []
for number in range(seed, seed + 10):
    problem = random_norms(number)
    rows.append(skewness(*client_gradients(problem, problem.heldout[0])))
solutions = pd.DataFrame(rows).astype(float)

check("at 10 solutions K_glob is 0, to 1e-4", solutions["glob"].max() < 1e-4)
check(
    "    and K_loc is not 0, and is below the bound",
    solutions["local"].min() > 0.01 and (solutions["local"] < solutions["bound"] + 1e-4).all(),
)

# %% [markdown]
# **Re-pairing.** We test whether $K_{\rm loc}$ affects the model. On the breast cancer data, each of ten clients keeps
# its rows of class 0 (the objective) and takes the rows of class 1 (the constraint) of another client. So $K_{\rm loc}$
# changes, but $f$, $g$ and $K_{\rm glob}$ do not. FedSGM runs with all clients, without compression, for 100 rounds
# with step size 0.3. The checks concern the largest change of an entry of the final model.

# %% tags=["hide-input", "nbval-check-output"]
table = data.breast_cancer("malignant")
paired = neyman_pearson(table.X, table.y, clients=10, seed=seed, dtype=torch.float64)
labels = paired.data[1][paired.rows]
class_0_first = labels.argsort(dim=1, stable=True)
rows = paired.rows.gather(1, class_0_first)
count_0 = int((labels[0] == 0).sum())  # as many at each client


def paired_with(shift):
    """The problem in which client j has its rows of class 0 and those of class 1 of client j - shift."""
    rows_1 = rows[:, count_0:].roll(shift, 0)
    return replace(paired, rows=torch.cat([rows[:, :count_0], rows_1], 1))


pairings = [paired_with(shift) for shift in (0, 1, 2, 5)]
changes = {}  # between pairings: the largest of an entry of w, and the largest |K_loc| over the smallest
for (rule, switch), E in product({"hard": Hard(), "soft": Soft(20.0)}.items(), (1, 5, 20)):
    method = FedSGM(lr=0.3, local_steps=E, participants=10, tolerance=0.1, switch=switch)
    models = [run(method, p, rounds=100, progress=False).state.w[0] for p in pairings]
    sizes = [float(skewness(*client_gradients(p, models[0])).local) for p in pairings]
    changes[rule, E] = {
        "model": max(float((w - models[0]).abs().max()) for w in models),
        "|K_loc|": max(sizes) / min(sizes),
    }
changes = pd.DataFrame(changes).T
hard = changes.loc["hard"]
soft = changes.loc["soft"]["model"]

check("hard, E = 1, 5, 20: the model is the same, to 1e-12", hard["model"].max() < 1e-12)
check("    but the norm of K_loc changes by a tenth or more", hard["|K_loc|"].min() > 1.1)
check("soft, E = 1: the model is the same, to 1e-12", soft[1] < 1e-12)
check(
    "soft, E = 5, 20: the model changes",
    min(soft[5], soft[20]) > 1e-3,
    f"by {soft[5]:.2f} and {soft[20]:.2f}",
)

# %% tags=["hide-input"]
fig = plot.figure((5.2, 3.4))
ax = fig.subplots()
dots = norms[:800].melt("bound", ["local", "difference"])  # more dots hide each other
names = {"local": "K_loc", "difference": "K_loc - K_glob"}
dots["variable"] = dots["variable"].map(names)
sns.scatterplot(dots, x="bound", y="value", hue="variable", s=6, linewidth=0, ax=ax)
ax.axline((1, 1), slope=1, color=plot.COLORS[5], label="bound")
ax.set(xscale="log", yscale="log", xlabel="sqrt(2 V_f V_g)", ylabel="norm", xlim=(0.3, 20.0))
ax.legend(markerscale=3)
plot.show(
    fig,
    alt="Norms against the bound on logarithmic axes. All dots of K_loc - K_glob lie below "
    "the diagonal; many dots of K_loc lie above it.",
    caption="One dot for each instance. The bound sqrt(2 V_f V_g) holds for the norm of K_loc - K_glob, "
    "and not for that of K_loc where K_glob is not zero.",
)

# %% [markdown]
# The checks are in {download}`note_skewness.py <src/note_skewness.py>`.
