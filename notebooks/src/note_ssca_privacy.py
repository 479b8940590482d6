# %% [markdown]
# # SSCA: what the messages give away
#
# {cite:t}`ye2021ssca` (Y below) call a message safe if its equations for the raw data have infinitely many solutions.
# They do not verify this condition for their network. This note examines it for the server's view in Algorithms 1 and
# 2, for the server's view in Algorithms 3 and 4, and for the other clients' view there.
#
# **The server's view fails the condition.** The server can recover a batch of one sample completely. Of a larger batch
# it learns the space that the samples span ({prf:ref}`ssca-lemma-span`).
#
# **The clients' view satisfies the condition** for every batch size and over all rounds. The reason is an invariance
# ({prf:ref}`ssca-lemma-gauge`); the paper counts equations instead. **But the condition is weak.** If client $i$
# holds $K_i$ features, an attacker who knows them for $K_i$ samples can compute them for the whole batch.

# %% [markdown]
# ## The server's view
#
# The network has weights $W_1\in\mathbb R^{J\times K}$ and $W_2\in\mathbb R^{L\times J}$, swish $S$, softmax $Q$, and
# no biases. In Algorithm 1 a client sends Y's gradients (33), (34) over its batch of $B$ samples $x_n$ with labels
# $y_n$ and weights $\pi_n$. With $z_n=W_1x_n$, the softmax output $Q_n$ and the entrywise product $\odot$, they are
#
# $$
# \bar B=\sum_nr_nx_n^\top,\quad r_n=\pi_nS'(z_n)\odot W_2^\top(Q_n-y_n),\qquad\bar C=\sum_n\pi_n(Q_n-y_n)S(z_n)^\top .
# $$ (eq-ssca-messages)
#
# ```{prf:lemma} A batch is known up to its span
# :label: ssca-lemma-span
#
# 1. Every row of $\bar B$ is a linear combination of the $B$ samples. If the $r_n\in\mathbb R^J$ are linearly
#    independent (so $B\le J$), the rows of $\bar B$ span the same space as the samples.
# 2. For $B=1$ every row of $\bar B$ is a multiple of the sample, so one nonzero row determines the sample up to its
#    scale. The $LJ$ equations for $\bar C$ then have only the label and the scale as unknowns.
# ```
#
# ```{prf:proof}
# Row $j$ of $\bar B$ is $\sum_nr_{n,j}x_n^\top$, so the row space lies in the span of the $x_n$. If the matrix $R$ with
# columns $r_n$ has rank $B$, it has a left inverse $R^+$, and $R^+\bar B$ has the rows $x_n^\top$. For $B=1$, row $j$
# is $r_jx^\top$.
# ```
#
# Pixels are not negative, so the sign of the scale is known. The server knows $W_1$ and $W_2$, because it sent them. On
# random networks a search over label and scale recovers the sample to eight digits (below).
#
# **Counting.** The messages of a batch are $d=JK+LJ$ equations for $KB$ unknown pixels. The rows of $\bar C$ add up to
# 0, so $J$ equations are redundant. For Y's network, $K=784$, $d=101632$ and $d-J=101504$. So there are at least as
# many equations as unknowns for $B\le129$, hence for Y's batch sizes in Algorithms 1 and 2: 1, 10 and 100.
#
# **Features split.** In Algorithms 3 and 4 the server receives every block of the gradient, from the clients that hold
# the block's features. Together these are the same $\bar B$ and $\bar C$, of the one batch that all clients share. So
# everything above applies to its view, and Y's condition for it fails by the same count for $B\le129$: at $B=10$ and
# 100 of Y's Figure 3, and not at 1000. {prf:ref}`ssca-lemma-gauge` is about the other clients alone.
#
# Counting alone does not show that the batch is determined. But at random points of a small network, the derivative of
# the messages with respect to the pixels has the largest possible rank, $\min(KB,d-J)$ (below). So if $KB\le d-J$, no
# other batch near the true one fits the messages.
#
# With Y's quadratic surrogate (7) the message of Algorithm 1 is the gradient, so it leaks exactly as much as that of
# plain SGD with one local step. The server's solution (9) is linear in the messages, so encryption that permits sums
# would protect them, as Y propose. In Algorithm 2, the server's solutions (40), (41) are not linear in the messages,
# and Y propose no protection.

# %% [markdown]
# ## The clients' view
#
# In Algorithms 3 and 4 client $i$ holds the features $X_i\in\mathbb R^{K_i\times B}$ of the batch and the weights
# $W_i\in\mathbb R^{J\times K_i}$. It sends $H_i=W_iX_i$ to the other clients, who know neither factor.
#
# ```{prf:lemma} A gauge freedom
# :label: ssca-lemma-gauge
#
# 1. For every invertible $G\in\mathbb R^{K_i\times K_i}$, $(W_iG^{-1},GX_i)$ yields the same message as $(W_i,X_i)$.
#    One $G$ works for any number of rounds, with any weights and batches.
# 2. If $W_i$ or $X_i$ has rank $K_i$, different $G$ yield different pairs. So for every $B$ the set of solutions near
#    $(W_i,X_i)$ has at least $K_i^2$ dimensions. At generic points its dimension is $K_i^2$ if $K_i\le\min(J,B)$, and
#    $K_i(J+B)-JB$ otherwise.
# 3. Let $W_i$ have rank $K_i\le J$. If $K_i$ linearly independent columns of $X_i$ are known, all of $X_i$ and $W_i$
#    follow from $H_i$.
# ```
#
# ```{prf:proof}
# We argue in steps.
#
# 1. We have $W_iG^{-1}GX_i=W_iX_i$. Use the same $G$ for the features of all samples and the weights of all rounds.
# 2. The equations $GX_i=X_i$ and $W_iG^{-1}=W_i$ imply $G=I$ if either matrix has rank $K_i$. For $K_i\le\min(J,B)$,
#    the products $W_iX_i$ are the matrices of rank at most $K_i$, which have dimension $K_i(J+B-K_i)$. Otherwise they
#    are all $J\times B$ matrices. Subtract the dimension of the products from $K_i(J+B)$, the number of unknowns.
# 3. Let the square matrix $X_i'$ contain the known columns of $X_i$, and $H_i'$ the same columns of $H_i$. Then
#    $W_i=H_i'X_i'^{-1}$ and $X_i=W_i^+H_i$.
# ```
#
# In Y's network, $J=128$ and $K_i=78$. The $K_i(J+B)$ unknowns outnumber the $BJ$ equations for $B<200$, but not for
# $B=1000$. By point 2, the solutions for $B=1000$ still have 6084 dimensions, because the equations are dependent. So
# Y's condition holds.
#
# But the condition is weak. Since $J\ge K_i$, the other clients learn $X_i$ up to *one* matrix $G$. So they learn which
# samples are equal or linear combinations of others. By point 3, knowing 78 samples of a batch of 1000 reveals all the
# others.
#
# ```{admonition} Differences from the printed paper
# :class: warning
#
# Y do not say that every client must know the **labels** of the batch in Algorithms 3 and 4.
# ```

# %% [markdown]
# ## Checks

# %% tags=["parameters", "hide-input"]
profile = "full"  # "quick": fewer instances
seed = 0  # of the random instances
instances = None  # of each kind; None: 20 in the full profile, 4 in the quick one
pictures = None  # "mnist" or "digits"; None: "mnist" in the full profile, "digits" (8 x 8) in the quick one
hidden = None  # cells; None: 128 in the full profile, 32 in the quick one

# %% tags=["hide-input"]
import numpy as np
import pandas as pd

from fedlib import data
from papers.kit import plot
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.parameters import settle
from papers.ssca.leaks import case, combined, fibre, network_gradients, rank, recover

settle(
    globals(),
    seed=0,
    instances=(20, 4),
    pictures=("mnist", "digits"),
    hidden=(128, 32),
)
rng = np.random.default_rng(seed)

# %% [markdown]
# **One sample, and spans.** With $K=20$, $J=12$ and $L=5$, we recover a single sample from its messages. For $B=1,4,12$
# and, above $J$, 15, we compute the distance of the samples from the row space of $\bar B$.

# %% tags=["hide-input", "nbval-check-output"]
J = 12
K = 20
longest = K**0.5
parallel_errors = []
recovery_errors = []
for _ in range(instances):
    W1, W2, X, Y = case(rng, J, K, 5, 1)
    first_layer, second_layer = network_gradients(W1, W2, X, Y)
    singular_values = np.linalg.svd(first_layer, compute_uv=False)
    parallel_errors.append(singular_values[1] / np.linalg.norm(first_layer))
    recovered = recover(W1, W2, first_layer, second_layer, longest)
    recovery_errors.append(np.abs(recovered - X[0]).max())


def distance_from_span(W1, W2, X, Y):
    """The largest relative distance of a sample from the row space of the message."""
    first_layer, _ = network_gradients(W1, W2, X, Y)
    dimension = min(len(X), J)
    basis = np.linalg.svd(first_layer).Vh[:dimension]
    residuals = X - X @ basis.T @ basis
    distances = np.linalg.norm(residuals, axis=1) / np.linalg.norm(X, axis=1)
    return distances.max()


distances = {}
for B in (1, 4, 12, 15):
    batches = [case(rng, J, K, 5, B) for _ in range(instances)]
    distances[B] = [distance_from_span(*batch) for batch in batches]
farthest = max(max(distances[B]) for B in (1, 4, 12))

check("B = 1: all rows are parallel, to 1e-12", max(parallel_errors) < 1e-12)
check(
    f"    and the sample is recovered with its scale, to 1e-8, {instances} of {instances} times",
    max(recovery_errors) < 1e-8,
)
check("B = 4, 12: the samples lie in the row space, to 1e-6", farthest < 1e-6)
check("B = 15 > J: the samples do not", min(distances[15]) > 1e-3)

# %% [markdown]
# **Counting and rank.** With $J=6$, $K=5$ and $L=3$ there are $d=48$ equations. For known labels we compute the rank of
# the derivative of the messages with respect to the pixels.

# %% tags=["hide-input", "nbval-check-output"]
J = 6
K = 5
equations = 48
batch_sizes = (1, 2, 4, 8, 9, 10, 12)
pixels = [K * B for B in batch_sizes]
ranks = []
for B in batch_sizes:
    W1, W2, X, Y = case(rng, J, K, 3, B)
    ranks.append(rank(3 * W1, 3 * W2, 4 * X - 2, Y))
expected = [min(count, equations - J) for count in pixels]

cells = 128
inputs = 784
d = cells * inputs + 10 * cells
largest_batch = (d - cells) // inputs


def free_dimensions(J, K, B):
    """The dimension of the pairs W, X with the same product W X, for W `[J, K]` and X `[K, B]`."""
    rank_of_product = min(J, K, B)
    rank_of_messages = rank_of_product * (J + B - rank_of_product)
    return K * (J + B) - rank_of_messages


free = [free_dimensions(cells, 78, B) for B in (10, 100, 1000)]

check(
    "the rank is the smaller of the number of pixels, 5 B, and d - J = 42",
    ranks == expected,
)
check(
    "Y's network: d = 101632, and 784 B <= d - 128 up to B = 129",
    d == 101632 and largest_batch == 129,
)
check(
    "    the clients' view has 9484, 6084, 6084 free dimensions for B = 10, 100, 1000",
    free == [9484, 6084, 6084],
)

# %% tags=["hide-input"]
columns = {"pixels": pixels, "equations": equations, "rank": ranks}
displayed(pd.DataFrame(columns, index=pd.Index(batch_sizes, name="B")))

# %% [markdown]
# **Pictures.** We repeat the first check with real pictures and random weights. The full profile uses MNIST with
# $J=128$, the quick profile 8 x 8 digits with $J=32$.
#
# The upper row of the figure (*read off*) shows the recovered sample for $B=1$. For $B=2,10,100$ it shows the row of
# $\bar B$ with the largest norm.
#
# The lower row (*in the span*) shows the point of the row space of $\bar B$ that is nearest to the true picture. The
# server would have to find this point in the space.

# %% tags=["hide-input"]
if pictures == "digits":
    table = data.digits()
    scale = 16.0
    side = 8
else:
    table = data.mnist("train")
    scale = 255.0
    side = 28
K = side * side
W1 = rng.uniform(-1, 1, (hidden, K)) / K**0.5
W2 = rng.uniform(-1, 1, (10, hidden)) / hidden**0.5
picked_rows = rng.permutation(len(table.y))[:100]
X = table.X[picked_rows].flatten(1).double().numpy() / scale
Y = np.eye(10)[table.y[picked_rows].numpy()]
picture = X[0]


def read_off(B):
    """What the message of the first B samples shows: the sample itself for B = 1."""
    first_layer, second_layer = network_gradients(W1, W2, X[:B], Y[:B])
    if B == 1:
        return recover(W1, W2, first_layer, second_layer, K**0.5)
    return combined(first_layer)


def nearest_in_span(B):
    """The point of the row space of the message that is nearest to the first picture."""
    first_layer, _ = network_gradients(W1, W2, X[:B], Y[:B])
    dimension = min(B, hidden)
    basis = np.linalg.svd(first_layer, full_matrices=False).Vh[:dimension]
    return picture @ basis.T @ basis


batch_sizes = (1, 2, 10, 100)
shown = {B: read_off(B) for B in batch_sizes}
nearest = {B: nearest_in_span(B) for B in batch_sizes}

# %% tags=["hide-input"]
def draw_picture(ax, pixels, title):
    """One picture, black to white."""
    ax.imshow(pixels.reshape(side, side), cmap="gray", vmin=0, vmax=1)
    ax.set_title(title, fontsize=8)
    ax.set_axis_off()


fig = plot.figure((7.5, 3.6))
upper, lower = fig.subplots(2, 5)
draw_picture(upper[0], picture, "the picture")
draw_picture(lower[0], picture, "the picture")
for column, B in enumerate(batch_sizes, 1):
    draw_picture(upper[column], shown[B], f"read off, B = {B}")
    draw_picture(lower[column], nearest[B], f"in the span, B = {B}")
plot.show(
    fig,
    alt="Two rows of five pictures of digits. The upper row shows the picture read off for four batch sizes: the true picture for one sample, superposed digits for more. The lower row shows the nearest picture in the span: the true one as long as the batch is not larger than the network is wide.",
    caption="From one sample the message reveals the picture; from a larger batch it reveals a superposition (above). The point of the row space that is nearest to the picture (below) is the picture itself until the batch is larger than the network is wide.",
)

# %% tags=["hide-input"]
equations = hidden * K + 10 * hidden - hidden
error = {}
rows = {}
for B in batch_sizes:
    pixels = K * B
    correlation = np.corrcoef(shown[B], picture)[0, 1]
    error[B] = np.linalg.norm(nearest[B] - picture) / np.linalg.norm(picture)
    rows[B] = {
        "pixels": pixels,
        "equations": equations,
        "enough by counting": "yes" if equations >= pixels else "no",
        "correlation of read-off and picture": f"{correlation:.2f}",
        "distance of span and picture": f"{error[B]:.1e}" if error[B] > 1e-12 else "below 1e-12",
    }
displayed(pd.DataFrame.from_dict(rows, orient="index").rename_axis("B"))

# %% tags=["hide-input", "nbval-check-output"]
superposed = [np.abs(shown[B] - picture).max() for B in (2, 10, 100)]

check("B = 1: the picture is recovered, to 1e-6", np.abs(shown[1] - picture).max() < 1e-6)
check("B = 2, 10, 100: the largest row is not the picture", max(superposed) > 0.1)
check("B = 2, 10: the picture lies in the span, to 1e-4", max(error[2], error[10]) < 1e-4)

# %% [markdown]
# **The gauge.** To check {prf:ref}`ssca-lemma-gauge`, we compute the dimension of the set of solutions for random
# matrices, also for two rounds with different weights. We then recover a batch of 40 from 3 known samples.

# %% tags=["hide-input", "nbval-check-output"]
dimensions = []
expected = []
for J, K, B in ((5, 3, 2), (5, 3, 4), (5, 3, 20), (2, 3, 4)):
    W = rng.standard_normal((J, K))
    X = rng.standard_normal((K, B))
    dimensions.append(fibre(W, X))
    expected.append(free_dimensions(J, K, B))
two_rounds = rng.standard_normal((10, 3))  # weights of two rounds, one below the other
dimension_of_two_rounds = fibre(two_rounds, rng.standard_normal((3, 20)))

W = rng.standard_normal((5, 3))
X = rng.random((3, 40))
messages = W @ X
W_from_known = messages[:, :3] @ np.linalg.inv(X[:, :3])
X_from_known = np.linalg.lstsq(W_from_known, messages, rcond=None)[0]
G = rng.standard_normal((3, 3))
other_messages = W @ np.linalg.inv(G) @ (G @ X)

check("the dimension agrees with the formula in all four cases", dimensions == expected)
check(
    "    the dimension is 9 for B = 20, with 100 equations and 75 unknowns",
    dimensions[2] == 9,
)
check(
    "two rounds with other weights: the dimension is still 9",
    dimension_of_two_rounds == 9,
)
check(
    "another pair yields the same messages, to 1e-9",
    np.abs(other_messages - messages).max() < 1e-9,
)
check("3 known samples reveal all 40, to 1e-9", np.abs(X_from_known - X).max() < 1e-9)

# %% [markdown]
# The checks are in {download}`note_ssca_privacy.py <src/note_ssca_privacy.py>`.
