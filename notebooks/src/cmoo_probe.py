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
# # Gram estimates and local progress
#
# FedCMOO {cite}`askin2025fedcmoo` finds its weights from a Gram matrix that it never sees: every client
# compresses the Jacobian of its objectives to the length of one gradient, and the server puts an estimate
# together. This page measures two things along runs that are otherwise left as they are: how far
# each estimate is from the exact matrix (the paper's Table 3), and what one round of local training does
# to the clients' own losses, with FedCMOO's weights and as FSMGDA trains (Figure 11).
#
# Both are measured by probes, algorithms that follow another one's run and report more about it. All
# runs have one seed, so there are no intervals; the runs are shorter than the paper's, whose length in
# these two experiments is not printed.

# %% tags=["parameters"]
profile = "full"  # "full": all pictures, 100 clients; "quick": stand-ins, six clients, no CIFAR-10
seeds = None  # seeds; each fixes start, split, participants and batches: full 0; paper 0, 1, 2
gram_rounds = None  # rounds with two grey tasks in which the Gram estimates are measured: full 30; quick 1; paper 300
colour_rounds = None  # such rounds on CIFAR-10 with digits; 0: none: full 2; quick 0; paper 300
attribute_rounds = None  # such rounds with forty attributes; 0: none: full 3; quick 1; paper 300
attribute_participants = None  # clients a round there: full 6; quick 2; paper 10
progress_rounds = None  # rounds in which local progress is measured: full 40; quick 2; paper 300
equal_rounds = None  # rounds in which FSMGDA's local training has FedCMOO's step size: full 12; quick 1; paper 300
source = None  # 0: the paper's pictures, 2: stand-ins of scikit-learn's digits, without a download: full 0; quick 2
clients = None  # clients N: full 100; quick 6
participants = None  # clients a round: full 10; quick 2
local_steps = None  # local steps E, a minibatch each: full 10; quick 2
batch = None  # rows of a client's minibatch: full 128; quick 16
loss_rows = None  # rows on which a client of FedCMOO-Pref estimates its losses: full 600; quick 32
alpha = 0.3  # concentration of the Dirichlet split over composite labels
copies = None  # turned copies of every training picture: full 3; quick 1
pictures = None  # 0: all training pictures; else the first so many: full 0; quick 480
test_pictures = None  # 0: all test pictures; else the first so many: full 0; quick 80
evaluate_every = None  # rounds between two evaluations: full 5; quick 1
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
import torch

from fedlib import FSMGDA, FedCMOO, Least
from fedlib.weights.gram import combine, gram_of
from papers import STUDIES
from papers.fedcmoo.probe import ProgressProbe
from papers.fedcmoo.probe.claims import TABLE_3
from papers.fedcmoo.probe.figures import GREY
from papers.fedcmoo.standin import source_text
from papers.kit import plot, report
from papers.kit.claims import check

page = STUDIES["cmoo_probe"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and what stands below changes with it. What is stored under its configuration is
# loaded, anything else is computed; the study's other runs repeat it with other values.

# %%
work = {"local_steps": page.local_steps, "participants": page.participants}
work |= {"batch_size": page.batch, "shared": 28_515}
probe = ProgressProbe(
    method=FedCMOO(lr=0.5, server_lr=1.2, **work),
    rival=FSMGDA(lr=0.1, server_lr=2.0, least=Least(0.002, mixture=False), **work),
)
traces = page.run(progress_multi_mnist=probe, progress_mnist_fashion=probe)
numbers, health = page.numbers, page.health
print(source_text(traces, "MNIST, Fashion-MNIST and CIFAR-10"))

# %% [markdown]
# ## What is compared
#
# Client $j$ holds $H_j\in\mathbb R^{M\times d}$, the gradients of its $M$ objectives at the common
# model, each on a minibatch of its own (on one common minibatch for the forty attributes); $d$ counts the
# parameters that all objectives share. The server wants
# $G=\bar H\bar H^\top$ with $\bar H=\frac1n\sum_jH_j$, and the error of an estimate is
# $\lVert\hat G-G\rVert_F/\lVert G\rVert_F$. Every compressed Jacobian $C_j$ has the length of $d$ numbers:
#
# | name | what a client sends |
# | --- | --- |
# | low rank | a randomized SVD of $H_j$, folded to a nearly square matrix in blocks, rows or columns |
# | largest | the entries of largest magnitude and their places; numbers of 32 bits, or of 16 as the authors count |
# | random, scaled | entries at random places, times $M$: unbiased |
# | random, unscaled | the same entries as they are |
#
# *One-way* is the Gram matrix of the mean of the $C_j$. *Two-way* sends a compressed sum back and
# corrects, in two small messages, the products of what a client left out with what the others sent.
# *Clients' own* is the mean of the $H_jH_j^\top$, without any product between clients, times the
# best scalar, which is known only with $G$ at hand. All estimates of a round see the same Jacobians; the run
# itself uses the two-way low-rank estimate with its own noise.
#
# Only one term is lost by the second exchange if the sum arrives whole, $\sum_{i\ne j}R_iR_j^\top$
# with $R_j=H_j-C_j$. A check on random matrices:

# %% tags=["remove-input", "nbval-check-output"]
H = torch.randn(5, 3, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
C = H * (H.abs() > 0.7)
R, h = H - C, C.sum(0)
whole, lost = gram_of(H.sum(0)), gram_of(R.sum(0)) - gram_of(R).sum(0)
two_way = combine(gram_of(H), C, R @ (h - C).mT)
_ = check(
    "two-way with the whole sum: G less the products of residuals",
    torch.allclose(25 * two_way, whole - lost),
)

# %% [markdown]
# ## Table 3

# %% tags=["remove-input"]
plot.show(
    page.figures["errors"](traces),
    alt="A panel for each data set, a row for each kind of compression, the error of the Gram matrix on a "
    "logarithmic horizontal axis: two-way as filled and one-way as hollow circles, the clients' own Gram "
    "matrices as a diamond, and, except for the forty attributes, the paper's printed values as crosses below.",
    caption="The kind of compression decides the error: for two tasks the largest entries are best, "
    "random ones worst. Mean error of the Gram matrix over the measured rounds; crosses are the "
    "paper's Table 3. Its CelebA has no counterpart: the forty attributes are of a digit and an "
    "item.",
    size=(9.6, 3.8),
)

# %% tags=["remove-input", "nbval-check-output"]
printed = (24.41, 3.83, 22.97, 4.38, 4.08, 23.19, 6.07)  # the means that the paper's table has
rows = zip(TABLE_3.values(), printed, strict=True)
off = {words: round(sum(each) / 4, 4) for (words, each), mean in rows if abs(sum(each) / 4 - mean) > 0.0051}
_ = check("the printed means agree with their entries but for that of two-way, top-k, 4.3725", off == {"two-way, top-k": 4.3725})

# %% [markdown]
# The values beside the paper's are [below](#verdicts). The authors' code masks without scaling, and the claim is judged on that form. The error of a scaled mask in the one-way estimate depends on how alike the clients' Jacobians are: the mask's own noise
# falls only with the number of clients. There is room for a share $1/M$ of the entries, half of them with two tasks
# and one in forty with forty.
#
# The largest entries do so well on two tasks because many gradients are exactly zero: where a unit of the
# encoder is off for every picture of a minibatch, all that leads to it has no gradient. In a round in
# which the one-way error is zero, everything that is not zero has fitted into the budget.

# %% [markdown]
# ## Figure 11: local progress
#
# Along a FedCMOO run, in every round, the same participants also train as FSMGDA does, from the same
# model: for each objective a model of its own. Before and after, the loss and the accuracy on *all rows of the client
# itself* are taken, and the difference averaged over participants and objectives. FedCMOO's one model
# is judged on both objectives; of FSMGDA's models each is judged on the one objective that it was trained
# for (*alone*), which is the reading that favours it. The *share of its step* is what really enters FSMGDA's next
# model: the client's models combined with the round's weights, judged on both objectives.

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_11"](traces),
    alt="Four panels against rounds, above the fall of the clients' own loss, below the rise of their own "
    "accuracy, a column for each data set; three curves each: FedCMOO, FSMGDA with each objective alone, and "
    "the client's share of FSMGDA's step.",
    caption="With the printed step sizes FSMGDA's local training gains more. Gains of one round of local "
    "training on the client's own rows, running means; the paper's are over forty rounds.",
    size=(8.4, 4.8),
)

# %% tags=["remove-input"]
progress = {title: f"progress_{data}" for data, title in GREY.items()}
measured = {
    f"{who}_{what}": f"{words}, {what}"
    for what in ("loss", "accuracy")
    for who, words in (("method", "FedCMOO"), ("alone", "FSMGDA alone"), ("share", "FSMGDA share"))
}
report.runs_table(numbers, progress, measured, health).T

# %% [markdown]
# The two local trainings do not have the same step size: the paper gives FedCMOO $\eta_c=0.5$ and FSMGDA
# 0.1 on these data; which of them FSMGDA has in Figure 11 is not printed. So the difference above is due to
# method *and* step size. With FedCMOO's step size in both, over the first rounds of the same run, it is the
# other way round:

# %% tags=["remove-input"]
plot.show(
    page.figures["equal_steps"](traces),
    alt="The same four panels round by round for the first rounds, with equal step sizes: FedCMOO, FSMGDA "
    "with each objective alone, and the client's share of FSMGDA's step.",
    caption="With equal step sizes FedCMOO's local training gains more: the step size decides the "
    "comparison. As above with FedCMOO's step size in both, round by round.",
    size=(8.4, 4.8),
)

# %% tags=["remove-input"]
equal = {title: f"progress_{data}_equal" for data, title in GREY.items()}
report.runs_table(numbers, equal, measured, health).T

# %% [markdown]
# ## Verdicts
#
# The rule of each part and the runs behind it are on the [claims page](../book/claims.md). None of these claims
# is judged: one seed, the first rounds of training (the authors' demo has 300), no dropout, and for CelebA's
# attributes a stand-in. The table reads Figure 11 in two ways, because the step size decides the comparison: at the
# printed step sizes FSMGDA's local training gains more, at equal ones FedCMOO's. The mean errors of the sketches are
# ordered as in Table 3, for two tasks and for forty.

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% tags=["remove-input"]
report.paper_table(page.study, numbers)

# %% [markdown]
# ## What the paper leaves open
#
# | open in the paper | chosen here |
# | --- | --- |
# | norm of nRMSE, printed with index 2 | Frobenius, as in the code |
# | rounds of Table 3 | 30 on the grey pairs, 2 on CIFAR-10 with digits, 3 with forty attributes: from the start of training |
# | CelebA | forty attributes of the pictures of MNIST+FMNIST, six participants, one minibatch for all objectives, the step sizes of CelebA |
# | "proper scale" of the sum of Gram matrices | the best multiple in the Frobenius norm |
# | scaling of random masking | none, as in the authors' code; the unbiased mask, times $M$, is shown beside it |
# | order of folding | blocks, as in the code; rows and columns beside it |
# | rounds of Figure 11, and what is compared there | 40 rounds; each of FSMGDA's models on its own objective |
#
# ```{provenance} cmoo_probe
# ```
#
# ```{notebook-links} cmoo_probe
# ```
