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
# # SSCA: what the messages give away
#
# {cite:t}`ye2021ssca` (Y below) call a message safe if the equations that it poses have infinitely many solutions in the raw data, and do not verify this for their network. This note does, for both views: the server's in Algorithms 1 and 2, and the other clients' in Algorithms 3 and 4.
#
# The outcome is mixed. **The server's view fails**: a batch of one sample can be read off completely, and a larger batch is known up to linear combinations of a few vectors ({prf:ref}`ssca-lemma-span`). Plain SGD leaks exactly as much. **The clients' view passes** Y's test for every batch size and over all rounds, because of an invariance that counting equations does not show ({prf:ref}`ssca-lemma-gauge`).
# **But the test is weak**: whoever knows a client's features of $K_i$ samples can compute those of all others in the batch.

# %% [markdown]
# ## The server's view
#
# The network has weights $W_1\in\mathbb R^{J\times K}$ and $W_2\in\mathbb R^{L\times J}$, swish $S$, softmax $Q$, no biases. In Algorithm 1 a client sends the gradients (33), (34) over its batch: with $z_n=W_1x_n$ and $\odot$ entry by entry,
#
# $$
# \bar B=\sum_nr_nx_n^\top,\quad r_n=\pi_nS'(z_n)\odot W_2^\top(Q_n-y_n),\qquad\bar C=\sum_n\pi_n(Q_n-y_n)S(z_n)^\top .
# $$ (eq-ssca-messages)
#
# ```{prf:lemma} A batch is known up to its span
# :label: ssca-lemma-span
#
# 1. Every row of $\bar B$ is a linear combination of the $B$ samples. If the $r_n\in\mathbb R^J$ are linearly independent (so $B\le J$), the rows of $\bar B$ span the same space as the samples.
# 2. For $B=1$ every row of $\bar B$ is a multiple of the sample: one nonzero row gives it up to its scale. The label and the scale are then two unknowns, one of $L$ values and one real, in the $LJ$ equations for $\bar C$.
# ```
#
# ```{prf:proof}
# Row $j$ of $\bar B$ is $\sum_nr_{n,j}x_n^\top$. So the row space lies in the span of the $x_n$. If the matrix $R$ with columns $r_n$ has rank $B$, it has a left inverse, and $R^+\bar B$ has the rows $x_n^\top$. For $B=1$: row $j$ is $r_jx^\top$.
# ```
#
# Pixels are not negative, so the sign is known too, and the server knows $W_1,W_2$: it sent them. On random networks the search over $L$ labels and one length finds the sample to eight digits (below), so "up to scale" is no protection.
#
# **Counting.** A batch poses $d=JK+LJ$ equations to $KB$ unknown pixels. For Y's network, $d=101632$ and $K=784$: there are at least as many equations as unknowns for $B\le129$, so for all sample-based batch sizes of Y, 1, 10 and 100. ($J$ equations are idle, because the rows of $\bar C$ add up to 0: $Q_n-y_n$ does. $d-J=101504$ still allows 129.)
# Counting alone proves nothing, but at random points the derivative of the messages by the pixels has the largest rank possible, $\min(KB,d-J)$ (below): up to the limit there is no other batch near the true one.
#
# With the quadratic surrogate (7) the message of Algorithm 1 is the gradient, so the leak is that of SGD with one local step. $\bar w^t$ in (9) is linear in the messages: sums under encryption would do, and Y propose them. In Algorithm 2 it is not linear, (40), (41), and nothing is proposed.

# %% [markdown]
# ## The clients' view
#
# In Algorithms 3 and 4 client $i$ holds the features $X_i\in\mathbb R^{K_i\times B}$ of the batch and the weights $W_i\in\mathbb R^{J\times K_i}$, and sends $H_i=W_iX_i$ to the other clients, who know neither factor.
#
# ```{prf:lemma} A gauge freedom
# :label: ssca-lemma-gauge
#
# 1. For every invertible $G\in\mathbb R^{K_i\times K_i}$, $(W_iG^{-1},GX_i)$ gives the same message. This is true for any number of rounds together, with other weights and other batches in each.
# 2. If $W_i$ has rank $K_i$, or $X_i$ has, different $G$ give different pairs: the solutions near $(W_i,X_i)$ have at least $K_i^2$ dimensions, for every $B$. At generic points the dimension is $K_i^2$ if $K_i\le\min(J,B)$, and $K_i(J+B)-JB$ otherwise.
# 3. Let $W_i$ have rank $K_i\le J$. If $K_i$ linearly independent columns of $X_i$ are known, all of $X_i$ and $W_i$ follow from $H_i$.
# ```
#
# ```{prf:proof}
# In steps.
#
# 1. $W_iG^{-1}GX_i=W_iX_i$; the same $G$ for the features of all samples and the weights of all rounds.
# 2. $GX_i=X_i$ and $W_iG^{-1}=W_i$ imply $G=I$ if either matrix has rank $K_i$. The products with $K_i\le\min(J,B)$ are the matrices of rank at most $K_i$, of dimension $K_i(J+B-K_i)$; otherwise all $J\times B$ matrices. Subtract this from the number of unknowns, $K_i(J+B)$.
# 3. Let $X_i'$ be the known columns, as a square matrix, and $H_i'$ their columns of $H_i$. $W_i=H_i'X_i'^{-1}$, and $X_i=W_i^+H_i$.
# ```
#
# Counting equations, $BJ$ against $K_i(J+B)$, says "safe" for $B<200$ and nothing for $B=1000$ ($J=128$, $K_i=78$). By point 2 there are 6084 free dimensions for $B=1000$ too: the equations are dependent. So Y's condition for this view holds.
#
# Point 3 says what the condition is worth. If $J\ge K_i$, as here, the others learn $X_i$ up to *one* matrix $G$: which samples are equal, which are mixtures of which, and, with 78 known samples of a batch of 1000, all the others. Y's two conditions ask whether the data can be computed from the messages alone; they do not speak of what is known besides.
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# * **The server's condition** is not verified for the network; it fails for $B=1$, and by counting for all sample-based batch sizes of Y.
# * **The clients' condition** holds, for every $B$. It does not protect against a client who knows some samples.
# * **Labels** of the batch must be known to every client in Algorithms 3 and 4; Y does not say so.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "remove-input"]
profile = "full"  # "quick": fewer instances
seed = 0  # of the random instances
instances = None  # of each kind; None: 20 in the full profile, 4 in the quick one
pictures = None  # "mnist" or "digits"; None: "mnist" in the full profile, "digits" (8 x 8) in the quick one
hidden = None  # cells; None: 128 in the full profile, 32 in the quick one

# %% tags=["remove-input"]
import numpy as np
import pandas as pd

from fedlib import data
from papers.kit import plot
from papers.kit.claims import check
from papers.ssca.leaks import case, combined, fibre, network_gradients, rank, recover

instances = instances or {"quick": 4, "full": 20}[profile]
pictures = pictures or {"quick": "digits", "full": "mnist"}[profile]
hidden = hidden or {"quick": 32, "full": 128}[profile]
rng = np.random.default_rng(seed)


# %% [markdown]
# **One sample**: $K=20$, $J=12$, $L=5$, recovered from its messages. **Spans**: how far the samples are from the row space of $\bar B$, for $B=1,4,12$ and, beyond $J$, 15.

# %% tags=["remove-input"]
parallel, found = [], []
for _ in range(instances):
    W1, W2, X, Y = case(rng, 12, 20, 5, 1)
    first, second = network_gradients(W1, W2, X, Y)
    parallel.append(np.linalg.svd(first, compute_uv=False)[1] / np.linalg.norm(first))
    found.append(np.abs(recover(W1, W2, first, second, 20**0.5) - X[0]).max())
outside = {}
for B in (1, 4, 12, 15):
    for _ in range(instances):
        W1, W2, X, Y = case(rng, 12, 20, 5, B)
        rows = np.linalg.svd(network_gradients(W1, W2, X, Y)[0])[2][: min(B, 12)]
        rest = np.linalg.norm(X - X @ rows.T @ rows, axis=1) / np.linalg.norm(X, axis=1)
        outside.setdefault(B, []).append(rest.max())

# %% tags=["remove-input", "nbval-check-output"]
check("B = 1: all rows are parallel, to 1e-12", max(parallel) < 1e-12)
check(f"    and the sample is recovered, scale and all, to 1e-8, {instances} of {instances} times", max(found) < 1e-8)
check("B = 4, 12: the samples lie in the row space, to 1e-6", max(max(outside[B]) for B in (1, 4, 12)) < 1e-6)
_ = check("B = 15 > J: they do not", min(outside[15]) > 1e-3)

# %% [markdown]
# **Counting and rank**: $J=6$, $K=5$, $L=3$, so $d=48$ equations; the rank of the derivative of the messages by the pixels (central differences), labels known.

# %% tags=["remove-input"]
ranks = {}
for B in (1, 2, 4, 8, 9, 10, 12):
    W1, W2, X, Y = case(rng, 6, 5, 3, B)
    ranks[B] = rank(3 * W1, 3 * W2, 4 * X - 2, Y)
d, K = 128 * 784 + 10 * 128, 784
free = {B: 78 * (128 + B) - (78 * (128 + B - 78) if min(128, B) >= 78 else 128 * B) for B in (10, 100, 1000)}

# %% tags=["remove-input", "nbval-check-output"]
check("the rank is the smaller of the number of pixels, 5 B, and d - J = 42", all(r == min(5 * B, 42) for B, r in ranks.items()))
check("Y's network: d = 101632, and 784 B <= d - 128 up to B = 129", d == 101632 and (d - 128) // K == 129)
_ = check("    free dimensions of the clients' view for B = 10, 100, 1000: 9484, 6084, 6084", list(free.values()) == [9484, 6084, 6084])

# %% tags=["remove-input"]
pd.DataFrame({"pixels": [5 * B for B in ranks], "equations": 48, "rank": ranks.values()}, index=pd.Index(ranks, name="B"))

# %% [markdown]
# **Pictures.** The same with real pictures, all at the network's random start, which the seed decides: MNIST with $J=128$ in the full profile, 8 x 8 digits with $J=32$ in the quick one. On the left is the first picture of the batch. *Read off*: for $B=1$ the sample recovered from the two gradients and the weights, scale and all; for $B=2,10,100$ the largest row of $\bar B$, one combination of the batch, drawn as a picture. *In the span*: the point of the row space of $\bar B$ that is nearest to the true picture. That much of the picture is in the message; the server would have to find it among all combinations.

# %% tags=["remove-input"]
table = data.digits() if pictures == "digits" else data.mnist("train")
scale, side = (16.0, 8) if pictures == "digits" else (255.0, 28)
K = side * side
W1, W2 = rng.uniform(-1, 1, (hidden, K)) / K**0.5, rng.uniform(-1, 1, (10, hidden)) / hidden**0.5
some = rng.permutation(len(table.y))[:100]
X = table.X[some].flatten(1).double().numpy() / scale
Y = np.eye(10)[table.y[some].numpy()]
row, nearest = {}, {}
for B in (1, 2, 10, 100):
    first, second = network_gradients(W1, W2, X[:B], Y[:B])
    row[B] = recover(W1, W2, first, second, K**0.5) if B == 1 else combined(first)
    basis = np.linalg.svd(first, full_matrices=False)[2][: min(B, hidden)]
    nearest[B] = X[0] @ basis.T @ basis

# %% tags=["remove-input"]
titles = ["the picture", *(f"read off, B = {B}" for B in row), "the picture", *(f"in the span, B = {B}" for B in row)]
shown = list(zip(titles, [X[0], *row.values(), X[0], *nearest.values()], strict=True))


def draw(fig):
    for ax, (title, x) in zip(fig.subplots(2, 5).flat, shown, strict=True):
        ax.imshow(x.reshape(side, side), cmap="gray", vmin=0, vmax=1)
        ax.set_title(title, fontsize=8)
        ax.set_axis_off()


plot.show(draw, alt="Pictures of digits, in two rows of five. Both rows begin with the true picture. Above, what is read off the message for four batch sizes: the true picture for one sample, superposed digits for more. Below, the nearest picture in the span of the message: the true picture as long as the batch is not larger than the network is wide.", size=(7.5, 3.6))

# %% tags=["remove-input"]
equations = {B: (hidden * K + 10 * hidden - hidden, K * B) for B in row}
correlation = {B: np.corrcoef(row[B], X[0])[0, 1] for B in row}
error = {B: np.linalg.norm(nearest[B] - X[0]) / np.linalg.norm(X[0]) for B in row}
pd.DataFrame(
    {
        "pixels": [e[1] for e in equations.values()],
        "equations": [e[0] for e in equations.values()],
        "enough by counting": ["yes" if e[0] >= e[1] else "no" for e in equations.values()],
        "correlation of what is read off with the picture": [f"{c:.2f}" for c in correlation.values()],
        "distance of the span from the picture": [
            f"{e:.1e}" if e > 1e-12 else "below 1e-12" for e in error.values()
        ],
    },
    index=pd.Index(row, name="B"),
)

# %% tags=["remove-input", "nbval-check-output"]
check("B = 1: the picture is recovered, to 1e-6", np.abs(row[1] - X[0]).max() < 1e-6)
check("B = 2, 10, 100: the largest row is not the picture", max(np.abs(row[B] - X[0]).max() for B in (2, 10, 100)) > 0.1)
_ = check("B = 2, 10: the picture lies in the span, to 1e-4", max(error[B] for B in (2, 10)) < 1e-4)

# %% [markdown]
# **The gauge**: dimensions of the solutions for random matrices, counted by rank; two rounds with the same features and other weights; and a batch of 40 read off with 3 known samples.

# %% tags=["remove-input"]
dims = {(J, K, B): fibre(rng.standard_normal((J, K)), rng.standard_normal((K, B))) for J, K, B in ((5, 3, 2), (5, 3, 4), (5, 3, 20), (2, 3, 4))}
formula = {(J, K, B): K * K if min(J, B) >= K else K * (J + B) - J * B for J, K, B in dims}
rounds = fibre(rng.standard_normal((10, 3)), rng.standard_normal((3, 20)))  # weights of two rounds, one below the other
W, X = rng.standard_normal((5, 3)), rng.random((3, 40))
guess = (W @ X)[:, :3] @ np.linalg.inv(X[:, :3])
read = np.linalg.lstsq(guess, W @ X, rcond=None)[0]
G = rng.standard_normal((3, 3))

# %% tags=["remove-input", "nbval-check-output"]
check("the dimension is the formula's in all four cases", dims == formula)
check("    9 for B = 20, where there are 100 equations and 75 unknowns", dims[5, 3, 20] == 9)
check("two rounds with other weights: still 9", rounds == 9)
check("another pair with the same messages, to 1e-9", np.abs(W @ np.linalg.inv(G) @ (G @ X) - W @ X).max() < 1e-9)
_ = check("3 known samples give all 40, to 1e-9", np.abs(read - X).max() < 1e-9)

# %% [markdown]
# The cells that make these checks are in {download}`note_ssca_privacy.py <src/note_ssca_privacy.py>`.
