# %% [markdown]
# # Gram estimates and local progress
#
# **The book's result.** The kind of compression determines the error of FedCMOO's Gram matrix: for two tasks, sending
# the largest entries of the Jacobian has the smallest error and sending random entries the largest
# ({claim}`fedcmoo/C13`). The paper's one-way errors of random entries are close to those that the best scaling of the
# estimate leaves. In a round of local training with the printed step sizes, FedCMOO raises the clients' own accuracies
# less than FSMGDA does, and lowers their losses as much or more ({claim}`fedcmoo/C7`). With equal step sizes FedCMOO
# gains, and FSMGDA makes both worse.
#
# FedCMOO {cite}`askin2025fedcmoo` computes its weights from an estimated Gram matrix: every client compresses the
# Jacobian of its objectives to the length of one gradient, and the server estimates the matrix from these messages.
# This page compares such estimates with the exact matrix (the paper's Table 3), and FedCMOO with FSMGDA by what local
# training gains (Figure 11). A *probe*, an algorithm that follows a run without changing it, measures both.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": all pictures, 100 clients; "quick": stand-ins, six clients, no CIFAR-10
seeds = None  # seeds; each fixes start, split, participants and batches: full and quick 0; paper 0, 1, 2
gram_rounds = None  # rounds with two grey tasks in which the Gram estimates are measured: full 100; quick 1; paper 300
gram_seeds = None  # seeds with two grey tasks in which the Gram estimates are measured: full 700, 701, 702; quick 0
colour_rounds = None  # the same number on CIFAR-10 with digits; 0: none: full 2; quick 0; paper 300
attribute_rounds = None  # the same number with forty attributes; 0: none: full 3; quick 1; paper 300
attribute_participants = None  # clients a round with forty attributes: full 6; quick 2; paper 10
progress_seeds = None  # seeds with which local progress is measured: full 703, 704, 705; quick 0
progress_rounds = None  # rounds in which local progress is measured: full 100; quick 2; paper 300
equal_rounds = None  # rounds in which FSMGDA's local training has FedCMOO's step size: full 30; quick 1; paper 300
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

# %% tags=["hide-input"]
import seaborn as sns
import torch

from fedlib import FSMGDA, FedCMOO, Least
from fedlib.weights.gram import combine, gram_of
from papers import STUDIES
from papers.fedcmoo.common import GREY
from papers.fedcmoo.probe.claims import TABLE_3
from papers.fedcmoo.probe.methods import ProgressProbe
from papers.fedcmoo.probe.quantities import COMPRESSIONS, EXCHANGES
from papers.fedcmoo.probe.runs import DEFAULTS, TRAINED
from papers.fedcmoo.standin import note, source_text
from papers.kit import plot, report
from papers.kit.claims import check

plot.theme()
page = STUDIES["cmoo_probe"].page(globals())

# %% [markdown]
# ## The experiment
#
# Changing this cell changes the results below.

# %%
ENCODER = 28_515  # parameters that both tasks share
work = {
    "local_steps": page.local_steps,
    "participants": page.participants,
    "batch_size": page.batch,
    "shared": ENCODER,
}
probe = ProgressProbe(
    method=FedCMOO(lr=0.5, server_lr=1.2, **work),
    rival=FSMGDA(lr=0.1, server_lr=2.0, least=Least(0.002, mixture=False), **work),
)
traces = page.run(progress_multi_mnist=probe, progress_mnist_fashion=probe)
numbers = page.numbers
print(source_text(traces, "MNIST, Fashion-MNIST and CIFAR-10"))

# %% [markdown]
# ## What is compared
#
# Client $j$ holds the Jacobian $H_j\in\mathbb R^{M\times d}$. Its rows are the gradients of the $M$ objectives at the
# common model, and $d$ counts the parameters that all objectives share. Each gradient uses its own minibatch, except
# that the forty attributes share one. From $n$ participants the server needs $G=\bar H\bar H^\top$ with $\bar
# H=\frac1n\sum_jH_j$. The error of an estimate $\hat G$ is $\lVert\hat G-G\rVert_F/\lVert G\rVert_F$. We compare four
# ways to compress $H_j$ to a message $C_j$ as long as $d$ numbers:
#
# | name | what a client sends |
# | --- | --- |
# | low rank | a randomized SVD of $H_j$, after folding it into a nearly square matrix by blocks, rows or columns |
# | largest | the entries of largest magnitude and their positions; the value of an entry is sent with 32 bits or, as the authors count, 16 |
# | random, scaled | entries at random positions, multiplied by $M$, which makes them unbiased |
# | random, unscaled | entries at random positions, unchanged |
#
# Three estimates of $G$ are compared. The *one-way* estimate is the Gram matrix of the mean of the $C_j$. The *two-way*
# estimate corrects it: the server sends a compressed sum of the $C_j$ back, and client $j$ answers with its own Gram
# matrix $H_jH_j^\top$ and with an estimate of $\sum_{i\ne j}R_jC_i^\top$, where $R_j=H_j-C_j$. *Clients' own* is the
# mean of the matrices $H_jH_j^\top$, scaled to fit $G$ best; the scale cannot be computed without $G$. In each round
# all estimates use the same Jacobians. The run itself uses the two-way low-rank estimate, with its own random draws.
# On the two grey data sets it has the dropout and the guard of the authors' code.
#
# If the server sends the sum back without compression, the two-way estimate misses only the products of different
# clients' residuals, $\sum_{i\ne j}R_iR_j^\top$.

# %% tags=["hide-input", "nbval-check-output"]
H = torch.randn(5, 3, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
C = H * (H.abs() > 0.7)
R = H - C
h = C.sum(0)
exact = gram_of(H.sum(0))
lost = gram_of(R.sum(0)) - gram_of(R).sum(0)
two_way = combine(gram_of(H), C, R @ (h - C).mT)
check(
    "two-way with the whole sum is G without the products of different clients' residuals",
    torch.allclose(25 * two_way, exact - lost),
)

# %% [markdown]
# ## Table 3

# %% tags=["hide-input"]
errors = numbers.table[numbers.table["measure"] == "error"].fillna({"exchange": "none"})
printed = {
    numbers.name(value.key): value.paper
    for value in page.study.paper_values
    if value.key in numbers
}
errors = errors.assign(ours=errors["value"], paper=errors.index.map(printed))
labels = ["data", "sketch", "exchange"]
both = errors.melt(labels, ["paper", "ours"], "source", "error of G in %")
exchanges = both["exchange"].map({**EXCHANGES, "none": "own"})
sources = both["source"].map({"paper": ", the paper", "ours": ""})
both["estimate"] = exchanges + sources
both = both.sort_values(["exchange", "source"], ascending=False)
of_other_data = (both["source"] == "paper") & (both["data"] == "attributes")
both = both[~of_other_data]
titles = {**GREY, "cifar10_mnist": "CIFAR-10 + MNIST", "attributes": "forty attributes"}
both["data"] = both["data"].replace(titles)
both["sketch"] = both["sketch"].map(COMPRESSIONS)
both = both.dropna()  # the paper has no value of some estimates, and other sketches have no words
grid = sns.catplot(
    both,
    kind="strip",
    x="error of G in %",
    y="sketch",
    hue="estimate",
    col="data",
    order=list(COMPRESSIONS.values()),
    palette="Paired",
    dodge=True,
    jitter=False,
    legend_out=False,
)
grid.set(xscale="log")
grid.set_ylabels("")
note(grid.figure, traces)
plot.finish(grid, size=(9.6, 4.4))
plot.show(
    grid,
    "errors",
    alt="The error of the Gram matrix, with a panel for each data set and a row for each kind of compression. Blue "
    "dots are two-way, green dots one-way, red dots the clients' own Gram matrices; the paper's values are pale.",
    caption="For two tasks, sending the largest entries is best and sending random ones worst. "
    "Dark dots are mean errors of the Gram matrix over the measured rounds, pale dots are the paper's "
    "Table 3. The forty attributes, which replace CelebA's, have no pale dots.",
)

# %% tags=["hide-input", "nbval-check-output"]
printed_means = (24.41, 3.83, 22.97, 4.38, 4.08, 23.19, 6.07)
other_means = {}
for (words, row), printed_mean in zip(TABLE_3.items(), printed_means, strict=True):
    mean = sum(row) / 4
    if abs(mean - printed_mean) > 0.0051:
        other_means[words] = round(mean, 4)
check(
    "the printed means of Table 3 follow from their entries, except for two-way, top-k (4.3725)",
    other_means == {"two-way, top-k": 4.3725},
)

# %% [markdown]
# The [table under Verdicts](#verdicts) compares the values with the paper's. The claims on Table 3 take random entries
# without scaling, as in the authors' code. The budget of $d$ numbers has room for a share $1/M$ of the entries of
# $H_j$: half of them with two tasks, one in forty with forty. Unscaled random entries therefore make the one-way
# estimate too small. Scaled ones are unbiased but noisy: in the one-way estimate the noise falls only with the number
# of clients, and its size relative to $G$ depends on how similar the clients' Jacobians are.
#
# The weights of the objectives do not depend on the scale of the Gram matrix, so an error that forgets the scale is as
# natural: that of the best multiple of the estimate. It is the same for random entries with and without scaling if the
# estimate is one-way.

# %% tags=["hide-input"]
estimates = {}
for data, title in GREY.items():
    for exchange, exchange_words in EXCHANGES.items():
        for sketch in ("block", "largest16", "masked", "unscaled"):
            estimates[f"{title}, {exchange_words}, {COMPRESSIONS[sketch]}"] = {
                "probe": "gram",
                "data": data,
                "exchange": exchange,
                "sketch": sketch,
            }
measures = {"error": "error in %", "scale_free": "error of the best multiple in %"}
report.runs_table(page, estimates, measures)


# %% [markdown]
# With random entries, one-way, the best multiple has an error of
# {result}`cmoo_probe/gram_multi_mnist_one_way_unscaled.scale_free:.1f` % on MultiMNIST and
# {result}`cmoo_probe/gram_mnist_fashion_one_way_unscaled.scale_free:.1f` % on MNIST + Fashion-MNIST; the paper prints
# 5.70 and 6.29 %, about a tenth of the plain errors here. The two-way errors of random entries are explained by neither:
# the printed ones, 12.98 and 17.40 %, lie between both.
#
# The largest entries do so well on two tasks because many gradient entries are exactly zero. If a unit of the encoder
# is inactive for every picture of a minibatch, the gradients of all parameters that lead to it are zero. The one-way
# error is zero in rounds in which all nonzero entries fit into the budget.

# %% [markdown]
# ## Figure 11: local progress
#
# In every round of a FedCMOO run, the participants also train as FSMGDA does: each trains a separate model for each
# objective from the round's model. We take the loss and the accuracy on *all rows of the client itself* before and
# after local training, and average the differences over participants and objectives. FedCMOO's single model is
# evaluated on both objectives, FSMGDA's models in two ways:
#
# * *FSMGDA alone*: each model is evaluated only on its own objective, which favours FSMGDA.
# * *FSMGDA share*: the client's models are combined with the weights that FSMGDA would choose in this round, and the
#   combination is evaluated on both objectives.

# %%
METRICS = {"loss": "own loss: fall", "accuracy": "own accuracy: rise"}


def progress_of(steps, window):
    """What local training gains, as running means: a row a run, round, method and metric."""
    shown = plot.worded(page.curves(["data"], DEFAULTS, probe="progress", steps=steps), data=GREY)
    names = [f"{trained}_{metric}" for trained in TRAINED for metric in METRICS]
    by_seed = shown.groupby(["run", "seed"])[names]
    shown[names] = by_seed.transform(lambda values: values.rolling(window).mean())
    gains = plot.over_seeds(shown, dict(zip(names, names, strict=True)))
    gains[["trained", "metric"]] = gains["metric"].str.split("_", expand=True)
    gains = plot.worded(gains, trained=TRAINED, metric=METRICS)
    gains["method"] = gains["trained"].astype(str).str.partition(",")[0]
    return gains


def draw_progress(gains):
    """Panels of the gains, a row for each metric and a column for each data set."""
    grid = sns.relplot(gains, hue="method", style="trained", row="metric", col="data", **plot.LINES)
    for ax in grid.axes.flat:
        ax.axhline(0, color="gray", linewidth=0.8)
    note(grid.figure, traces)
    plot.finish(grid, size=(8.6, 4.8))
    return grid


grid = draw_progress(progress_of("printed", window=min(10, page.progress_rounds)))
plot.show(
    grid,
    "figure_11",
    alt="Four panels against rounds, with a column for each data set: above the fall of the clients' own loss, below "
    "the rise of their own accuracy, for FedCMOO, FSMGDA alone and FSMGDA share.",
    caption="With the printed step sizes FSMGDA's local training raises the clients' accuracies more than FedCMOO's. "
    "The curves are running means over ten values (the paper's over forty) of what local training gains on the "
    "client's own rows; means and standard deviations over the seeds.",
)

# %% tags=["hide-input"]
trained = {"method": "FedCMOO", "alone": "FSMGDA alone", "share": "FSMGDA share"}
progress = {}
for data, title in GREY.items():
    for name, words in trained.items():
        progress[f"{title}, {words}"] = {"probe": "progress", "data": data, "trained": name}
measures = {"loss": "gain in loss", "accuracy": "gain in accuracy"}
report.runs_table(page, progress, measures)

# %% [markdown]
# On these data the paper prints the client step size $\eta_c=0.5$ for FedCMOO and 0.1 for FSMGDA; it does not say which
# of them FSMGDA has in Figure 11. The difference above is therefore due to the method *and* the step size. The next
# figure shows the first 30 rounds of the same run with FedCMOO's step size in both methods.

# %%
grid = draw_progress(progress_of("equal", window=1))
plot.show(
    grid,
    "equal_steps",
    alt="The four panels of the previous figure, round by round for the first rounds and with equal step sizes.",
    caption="With FedCMOO's step size in both methods, FedCMOO's local training gains, and FSMGDA's makes losses and "
    "accuracies worse. The curves show the gains of each round; means and standard deviations over the seeds.",
)

# %% tags=["hide-input"]
equal = {title: {**labels, "steps": "equal"} for title, labels in progress.items()}
report.runs_table(page, equal, measures)

# %% [markdown]
# ## Verdicts
#
# The order of the errors on the two grey data sets is judged on three seeds that no run had before, for a third of the
# 300 rounds of the authors' demo, by the plain error and by that of the best multiple. Figure 11 is judged in the same
# way with the printed step sizes, on the authors' network with its dropout. With equal step sizes its runs have 30
# rounds and are not judged, nor are the claims for CIFAR-10 with digits, of which we have two rounds of one seed, and
# for CelebA, which a stand-in replaces (see the [claims page](../book/claims.md)). Ordered by their mean errors, the
# kinds of compression have the same order as in Table 3 for forty tasks, too.

# %%
report.claims_table(page)

# %%
report.paper_table(page)

# %% [markdown]
# ## What the paper leaves open
#
# | open in the paper | chosen here |
# | --- | --- |
# | the norm in the error (nRMSE), printed with index 2 | the Frobenius norm, as in the code |
# | the rounds of Table 3 | the first rounds of training: 100 on MultiMNIST and MNIST + Fashion-MNIST, 2 on CIFAR-10 with digits, 3 with forty attributes |
# | whether the error depends on the scale of the estimate | both, see Table 3 |
# | CelebA | forty attributes of the pictures of MNIST + Fashion-MNIST, with six participants, one minibatch for all objectives, and the step sizes of CelebA |
# | the "proper scale" of the sum of the clients' Gram matrices | the best multiple in the Frobenius norm |
# | the order of folding | blocks, as in the code; rows and columns are shown as well |
# | the rounds of Figure 11, and what it compares | 100 rounds; each of FSMGDA's models is evaluated on its own objective |
#
# ```{provenance} cmoo_probe
# ```
#
# ```{notebook-links} cmoo_probe
# ```
