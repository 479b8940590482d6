# %% [markdown]
# # Two tasks in one picture
#
# **The book's result.** Dropout, which the authors' code uses and the paper does not mention, determines whether
# FedCMOO beats FSMGDA: it costs FSMGDA four to six points of accuracy and FedCMOO less than one. After {result}`cmoo_pairs/mnist_fashion_fedcmoo_dropout.rounds:.0f` rounds with dropout, FedCMOO
# leads FSMGDA by {result}`cmoo_pairs/multi_mnist_fedcmoo_dropout_minus_fsmgda.accuracy:.1f` percentage points of test
# accuracy on MultiMNIST and by {result}`cmoo_pairs/mnist_fashion_fedcmoo_dropout_minus_fsmgda.accuracy:.1f` on MNIST +
# Fashion-MNIST. Without dropout, the same two differences, FedCMOO minus FSMGDA, are
# {result}`cmoo_pairs/multi_mnist_fedcmoo_minus_fsmgda.accuracy:.1f` and
# {result}`cmoo_pairs/mnist_fashion_fedcmoo_minus_fsmgda.accuracy:.1f` points. The leads with dropout shrink during
# training: after 500 rounds they are {result}`cmoo_pairs@paper/multi_mnist_fedcmoo_dropout_minus_fsmgda.accuracy:.1f` and
# {result}`cmoo_pairs@paper/mnist_fashion_fedcmoo_dropout_minus_fsmgda.accuracy:.1f` points.
#
# On these data, with one kind of loss, the lead does not come from the weights that FedCMOO chooses. On MNIST + Fashion-MNIST with FedCMOO's step sizes,
# FedCMOO and training on the plain average of the two losses differ by
# {result}`cmoo_pairs/mnist_fashion_fedcmoo_lr0.5_dropout_minus_scalarized.accuracy:.1f` points. The lead needs larger step sizes
# than FSMGDA's: at equal client step sizes of 0.1, 0.3 and 0.5, FedCMOO's accuracy minus FSMGDA's is
# {result}`cmoo_pairs/mnist_fashion_fedcmoo_lr0.1_dropout_minus_fsmgda.accuracy:+.1f`,
# {result}`cmoo_pairs/mnist_fashion_fedcmoo_lr0.3_dropout_minus_fsmgda.accuracy:+.1f` and
# {result}`cmoo_pairs/mnist_fashion_fedcmoo_lr0.5_dropout_minus_fsmgda.accuracy:+.1f` points. So FSMGDA, whose clients train
# each task apart, suffers from larger local steps, as the paper says.
#
# This page repeats the two-task experiments of the FedCMOO paper {cite}`askin2025fedcmoo`: Figures 1 and 5-9, and
# Tables 1, 2 and 4 ([settings of Table 1](#settings-of-table-1)). One network assigns two labels to each picture; the
# two tasks share its encoder, and each has its own decoder.
#
# Three methods choose new weights for the two tasks in every round. In *FSMGDA* {cite}`yang2023fsmgda` every client
# trains each task separately, and the server takes the convex combination of the two updates with the smallest norm.
# *FedCMOO* computes the weights from an estimated Gram matrix of the tasks' gradients; the
# clients then train on the weighted sum of the losses. *FedCMOO-Pref* steers the ratio of the losses to a given value
# {cite}`mahapatra2020preferences`, here one.
#
# **Dropout.** Like the authors' code, this page trains with dropout of half of the units unless it says otherwise; [one
# section](#accuracy-over-the-rounds) also shows the network without dropout.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": all pictures; "quick": stand-ins that need no download, two rounds
seeds = None  # seeds; each fixes start, split, participants and batches: full 0, 1, 2; quick 0, 1; paper 0 to 4
single_seeds = None  # seeds of training in one task alone: full 0, 1, 2; quick 0; paper 0 to 4
variant_seeds = None  # seeds without a least weight and without dropout: full and quick 0; paper 0, 1, 2
rounds = None  # communication rounds T on the two grey data sets: full 100; quick 2; paper 500
mixed_rounds = None  # rounds with two kinds of loss, with dropout: full 100; quick 1; paper 500
dropout_seeds = None  # seeds of the runs with dropout: full 0, 1, 2; quick 0; paper 0 to 4
dropout_rounds = None  # rounds with dropout: full 100; quick 1; paper 500
exchanged = None  # 1: on MNIST + Fashion-MNIST, each method also with the others' step sizes: full 1; quick 0; paper 0
colour_seeds = None  # seeds on CIFAR-10 with digits: full and quick 0; paper 0, 1, 2
colour_rounds = None  # rounds on CIFAR-10 with digits: full 3; quick 1; paper 200
colour_budget = None  # length of a compressed Jacobian on CIFAR-10 with digits, in gradients: full 1; quick 0.02
source = None  # 0: the paper's pictures, 2: stand-ins of scikit-learn's digits, without a download: full 0; quick 2
clients = None  # clients N: full 100; quick 6
participants = None  # clients a round: full 10; quick 1
local_steps = None  # local steps E, a minibatch each: full 10; quick 1
batch = None  # rows of a client's minibatch: full 128; quick 8
loss_rows = None  # rows on which a client of FedCMOO-Pref estimates its losses: full 600; quick 16
alpha = 0.3  # concentration of the Dirichlet split over composite labels
copies = None  # turned copies of every training picture: full 3; quick 1
pictures = None  # 0: all training pictures; else the first so many: full 0; quick 480
test_pictures = None  # 0: all test pictures; else the first so many: full 0; quick 80
evaluate_every = None  # rounds between two evaluations: full 5; quick 1
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
import numpy as np
import seaborn as sns
from matplotlib import pyplot as plt

from fedlib import FSMGDA, FedCMOO, Least
from papers import STUDIES
from papers.fedcmoo.common import COLOR, GREY, METHODS
from papers.fedcmoo.pairs.claims import TABLE_1, TABLE_4
from papers.fedcmoo.pairs.gallery import first_pictures
from papers.fedcmoo.pairs.quantities import BLOCK, END, PUBLIC, decline
from papers.fedcmoo.pairs.runs import DATA, DEFAULTS, MIXED
from papers.fedcmoo.pairs.tables import authors_table, step_table
from papers.fedcmoo.standin import note, source_text
from papers.kit import plot, report, store
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.quantities import chosen, curves, run_of, sweep

plot.theme()
page = STUDIES["cmoo_pairs"].page(globals())

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
fedcmoo = FedCMOO(lr=0.5, server_lr=1.2, **work)
fsmgda = FSMGDA(lr=0.1, server_lr=2.0, least=Least(0.002, mixture=False), **work)
traces = page.run(
    multi_mnist_fedcmoo_dropout=fedcmoo,
    multi_mnist_fsmgda_dropout=fsmgda,
    mnist_fashion_fedcmoo_dropout=fedcmoo,
    mnist_fashion_fsmgda_dropout=fsmgda,
)
numbers = page.numbers
print(source_text(traces, "MNIST, Fashion-MNIST and CIFAR-10"))

# %% [markdown]
# ## The pictures
#
# In MultiMNIST two digits lie on one canvas, one at the top left and one at the bottom right. Where they overlap, the
# larger pixel value is kept. In MNIST + Fashion-MNIST an item of clothing replaces the second digit. In CIFAR-10 +
# MNIST a half-transparent digit lies over the middle of a colour picture. The paper's text also calls this last set
# CIFAR10+FMNIST, but its description and the authors' code use digits. Our runs on it have only
# {result}`cmoo_pairs/cifar10_mnist_fedcmoo.rounds:.0f` rounds, too few to show. In all three sets the clients hold
# equally many pictures, split by Dirichlet(0.3) over the 100 pairs of labels.

# %%
figure, axes = plt.subplots(len(DATA), 6, figsize=(7.6, 4.6), layout="constrained")
for row, (data, title) in zip(axes, DATA.items(), strict=True):
    pictures, labels = first_pictures(data)
    for ax, picture, label in zip(row, pictures, labels, strict=True):
        ax.imshow(picture.transpose(1, 2, 0), cmap="gray", vmin=0, vmax=255)
        ax.set_title(label, fontsize=8)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(title.replace(" + ", " +\n"))
plot.show(
    figure,
    "gallery",
    alt="Three rows of six test pictures with their two labels: two overlapping digits; a digit and an item of "
    "clothing; small colour photographs with a pale digit over their middle.",
    caption="The first test pictures of each data set, with their two labels (the paper's Figures 5 to 7 show others).",
)

# %% [markdown]
# ## Accuracy over the rounds
#
# The panels correspond to the paper's Figures 8 and 9; the panel of MNIST + Fashion-MNIST is also its Figure 1. Which
# units our dropout switches off is a function of the model and the picture, so the loss remains deterministic.
# FedCMOO-Pref follows the authors' code in two respects: the clients switch dropout off when they evaluate the losses
# whose ratio is to be one, and the server uses [a guard against growing losses](#the-guard).

# %%
accuracies = page.curves(["data", "method", "dropout"], DEFAULTS)
accuracies["accuracy"] *= 100
accuracies = plot.worded(
    accuracies,
    data=GREY,
    method=METHODS,
    dropout={True: "yes", False: "no"},
)
means = plot.over_seeds(accuracies, {"accuracy": "mean test accuracy (%)"})
grid = sns.relplot(means, hue="method", style="dropout", col="data", **plot.LINES)
note(grid.figure, traces)
plot.finish(grid, size=(8.6, 3.2))
plot.show(
    grid,
    "dropout",
    alt="Mean test accuracy against the rounds on MultiMNIST and on MNIST + Fashion-MNIST, for FSMGDA, FedCMOO and "
    "FedCMOO-Pref with dropout (solid) and without (dashed).",
    caption="With dropout FedCMOO and FedCMOO-Pref are ahead of FSMGDA; without it (dashed) they are not. The curves "
    "are means of the test accuracy over the seeds, the bands one standard deviation.",
)

# %% tags=["hide-input"]
rivals = {
    "FedCMOO - FSMGDA": {"method": "fedcmoo", "minus": "fsmgda"},
    "Pref - FedCMOO": {"method": "pref", "minus": "fedcmoo"},
    "Pref - FSMGDA": {"method": "pref", "minus": "fsmgda"},
}
differences = {}
for dropout in (True, False):
    for data, title in GREY.items():
        for text, labels in rivals.items():
            ending = "" if dropout else ", no dropout"
            differences[f"{title}, {text}{ending}"] = {**labels, "data": data, "dropout": dropout}
measures = {
    "accuracy": "mean accuracy",
    "rounds_60": "to 60 %",
    "rounds_75": "to 75 %"
}
report.runs_table(page, differences, measures)

# %% [markdown]
# Each row shows the first method minus the second on the same seeds. *Mean accuracy* is the mean over the two tasks.
# Accuracies, here and below, are *final* values: means over the models evaluated in the last tenth of the rounds. *To
# 60 %* is the number of rounds until the mean accuracy is 60 %. A run that never gets there counts with its last round,
# which makes the differences look smaller.

# %% [markdown]
# ## The method, or its step size?
#
# FedCMOO's lead over FSMGDA depends on the step sizes. As printed, the product of client and server step size is three
# times as large for FedCMOO as for FSMGDA. In each row of the table, training on the plain average of the losses,
# FSMGDA and FedCMOO all have the step sizes that the paper prints for one method: FSMGDA, FedCMOO-Pref or FedCMOO, from
# top to bottom. The runs are on MNIST + Fashion-MNIST with dropout. In no row do the seeds show a difference between
# FedCMOO and the plain average.

# %% tags=["hide-input"]
displayed(step_table(numbers))

# %% [markdown]
# ## Task by task: Table 1
#
# The printed values stand below, with the [settings of Table 1](#settings-of-table-1).

# %%
tasks = page.curves(["data", "method", "dropout", "task"], DEFAULTS)
tasks = tasks[tasks["dropout"] | tasks["task"].notna()]
tasks = plot.worded(tasks, data=GREY, method={**METHODS, "single": "that task alone"})
for task in (1, 2):
    is_trained = tasks["task"].fillna(task) == task  # not so if a model is of the other task alone
    tasks[f"accuracy_{task}"] = 100 * tasks[f"accuracy_{task}"].where(is_trained)
means = plot.over_seeds(
    tasks,
    {"accuracy_1": "first task (%)", "accuracy_2": "second task (%)"},
)
colors = [*plot.COLORS[:3], "gray"]
grid = sns.relplot(means, hue="method", row="metric", col="data", palette=colors, **plot.LINES)
note(grid.figure, traces)
plot.finish(grid, size=(9.0, 5.0))
plot.show(
    grid,
    "tasks",
    alt="Test accuracy against the rounds, of the first task above and of the second below, with a column for each "
    "data set and a curve for each method.",
    caption="The item of MNIST + Fashion-MNIST is the hardest task for all methods. Curves are means over the "
    "seeds, bands one standard deviation; the grey curves are trained on one task alone.",
)

# %%
losses = page.curves(["data", "method", "dropout", "task"], DEFAULTS)
losses = losses[losses["dropout"] & losses["task"].isna()]
losses = plot.worded(losses, data=GREY, method=METHODS)
means = plot.over_seeds(
    losses,
    {"loss_1": "loss of the first task", "loss_2": "loss of the second task"},
)
grid = sns.relplot(means, hue="method", row="metric", col="data", **plot.LINES)
note(grid.figure, traces)
plot.finish(grid, log=True, size=(9.0, 5.0))
plot.show(
    grid,
    "losses",
    alt="Test loss against the rounds, of the first task above and of the second below, with a column for each data "
    "set and a curve for each method.",
    caption="The test losses of the same runs, as in the paper's Figure 9. The item of MNIST + Fashion-MNIST keeps the "
    "largest loss. Curves are means over the seeds, bands one standard deviation.",
)

# %% [markdown]
# ## What sharing costs: Table 4
#
# $$
# \Delta_M=\frac1M\sum_{k=1}^M\frac{S_k^{\text{alone}}-S_k}{S_k^{\text{alone}}}
# $$
#
# $\Delta_M$ is the mean relative loss of accuracy against single-task training: $S_k$ is the accuracy in task $k$ of
# the network that all $M$ tasks share, and $S_k^{\text{alone}}$ that of a network trained in task $k$ alone. Smaller is
# better, and a negative value means that the tasks help each other.
#
# Each $\Delta_M$ compares runs with the same seed. The single-task runs, which are the same for all methods, have no
# dropout. Dropout there would change only the factors $1/S_k^{\text{alone}}$, that is, how much each task counts in
# $\Delta_M$. The last column, the ratio of the final test losses, measures how evenly the tasks are trained.

# %% tags=["hide-input"]
with_dropout = {}
for data, title in GREY.items():
    for method, text in METHODS.items():
        with_dropout[f"{title}, {text}"] = {"data": data, "method": method, "dropout": True}
measures = {
    "accuracy_1": "first task",
    "accuracy_2": "second task",
    "decline": "Delta_M",
    "loss_ratio": "second loss / first loss",
}
report.runs_table(page, with_dropout, measures)


# %% tags=["hide-input", "nbval-check-output"]
def decline_agrees(data, method):
    """Whether Table 4's number follows from Table 1, where all are rounded."""
    from_table_1 = decline(TABLE_1[data][method], TABLE_1[data]["single"])
    return abs(from_table_1 - TABLE_4[data][method]) < 0.0051


check(
    "all nine numbers of Table 4 follow from those printed in Table 1",
    all(decline_agrees(data, method) for data in DATA for method in METHODS),
)

# %% [markdown]
# ## Two kinds of loss: Table 2
#
# Digit 1 of MultiMNIST has a squared loss here, the mean squared difference between the softmax outputs and the one-hot
# label; digit 2 has the negative log-likelihood (NLL). The paper speaks of an $\ell_2$-norm loss without defining it.
# Its text and its table disagree about which digit has this loss; our choice fits the table. The squared loss has the
# smaller gradients, so the plain average (*Scalarized*) neglects it and a minimum-norm rule favours it. With the norm
# itself and more rounds, FSMGDA trains both digits: see [two kinds of loss](cmoo_mixed).

# %% tags=["hide-input"]
mixed = {"data": "multi_mnist", "losses": "mixed", "dropout": True}
runs = {text: {**mixed, "method": method} for method, text in MIXED.items()}
measures = {
    "accuracy_1": "Digit 1, squared",
    "accuracy_2": "Digit 2, NLL",
    "worst": "worse digit",
    "accuracy": "mean",
}
report.runs_table(page, runs, measures)

# %% [markdown]
# ## The guard
#
# The authors' code has a guard that the paper does not mention. After every round it evaluates the training loss on the
# first ten clients of its list. If this loss is not finite, or more than 1.5 times the last accepted one, the model is
# reset to its state before the round.
#
# We use the guard only for FedCMOO-Pref with dropout. Its earlier runs had no guard and also used dropout in the losses
# that determine the weights; on MNIST + Fashion-MNIST at least one of five seeds diverged within 500 rounds.
# With the guard, the model is reset in {result}`cmoo_pairs@paper/mnist_fashion_pref_dropout.rejected:.0f` of
# {result}`cmoo_pairs@paper/mnist_fashion_pref_dropout.all_rounds:.0f` rounds of five seeds on this set. One seed, which
# ends behind the others, has {result}`cmoo_pairs@paper/mnist_fashion_pref_dropout.rejected_most:.0f` of these resets.
# On MultiMNIST the model is reset in {result}`cmoo_pairs@paper/multi_mnist_pref_dropout.rejected:.0f` of
# {result}`cmoo_pairs@paper/multi_mnist_pref_dropout.all_rounds:.0f` rounds. Our guard evaluates only
# {result}`cmoo_pairs/mnist_fashion_pref_dropout.judge_rows:.0f` rows of each of the ten clients.
#
# FSMGDA and FedCMOO run without the guard. We did not test whether it would reset their models, but between two
# evaluations, five rounds apart, their mean test loss grows by much less than the guard's factor 1.5. The table shows
# the largest factor over all seeds of the runs [at the paper's scale](#at-the-papers-scale).

# %% tags=["hide-input"]
at_paper = store.read_derived("cmoo_pairs", "paper")
report.runs_table(at_paper, with_dropout, {"growth": "growth of the test loss"})

# %% [markdown]
# ## Beside the authors' own runs
#
# Two results of the authors' code are available, each with one seed: a plot in its demo, for MNIST + Fashion-MNIST over
# 300 rounds, and our run of the unchanged code on MultiMNIST. Each diamond is a mean over thirty rounds of such a
# result. The curves show our stored runs with dropout over 500 rounds.

# %%
longer = page.study.load("paper")
accuracies = curves(chosen(longer, ["data", "method"], DEFAULTS, dropout=True))
accuracies = plot.worded(accuracies, data=GREY, method=METHODS)
if accuracies["run"].nunique() == len(GREY) * len(METHODS):
    accuracies["accuracy"] *= 100
    accuracies = accuracies[accuracies["round"] <= END]
    means = plot.over_seeds(accuracies, {"accuracy": "mean test accuracy (%)"}, around=None)
    grid = sns.relplot(means, hue="method", col="data", **plot.LINES)
    for data, ax in zip(GREY, grid.axes[0], strict=True):
        for method, theirs in PUBLIC[data].items():
            middles = BLOCK * (np.arange(len(theirs)) + 0.5)
            ax.plot(middles, theirs, "D", color=COLOR[METHODS[method]], markersize=4)
    grid.set(ylim=(55, 96))
    plot.finish(grid, size=(8.6, 3.4))
    plot.show(
        grid,
        "overlay",
        profile="paper",
        alt="Mean test accuracy against the rounds on MultiMNIST and on MNIST + Fashion-MNIST; the diamonds of the "
        "authors' code lie on our curves of the same methods from round thirty on.",
        caption="Our runs (curves) agree with those of the authors' code (diamonds). The bands reach from the lowest to "
        "the highest seed.",
    )

# %% tags=["hide-input"]
displayed(authors_table(at_paper.numbers))

# %% [markdown]
# The column *farthest apart* shows the largest distance, in points, between a diamond and our mean over the same
# rounds, after the first thirty.

# %% [markdown]
# ## Variants of the compression and of the weights
#
# No variant below differs from its base method by more than the seeds vary. All runs of FedCMOO and FedCMOO-Pref above
# use *two-way* compression, as in the paper: after a client has received the compressed sum of the Jacobians, it sends
# two small matrices, which correct the compressed Gram matrix. *One-way* compression omits this correction.
# FedCMOO-Pref above keeps every weight above a *least weight*, here 0.1, also as in the paper. The table is for MNIST +
# Fashion-MNIST with dropout.

# %% tags=["hide-input"]
run = {"data": "mnist_fashion", "dropout": True}
one_way = {**run, "gram": "one-way", "minus": "two-way"}
no_least_weight = {**run, "least_weight": False, "minus": "least_weight"}
variants = {
    "FedCMOO: one-way - two-way": {**one_way, "method": "fedcmoo"},
    "FedCMOO-Pref: one-way - two-way": {**one_way, "method": "pref"},
    "FedCMOO-Pref: no least weight - least weight": {**no_least_weight, "method": "pref"},
}
measures = {
    "accuracy": "mean accuracy",
    "loss": "mean loss",
    "rounds_60": "to 60 %",
    "rounds_75": "to 75 %",
}
report.runs_table(page, variants, measures)

# %% [markdown]
# ## At the paper's scale
#
# This section shows runs with five seeds and 500 rounds, as in the paper's Figure 2.
#
# One run is missing: FedCMOO on MNIST + Fashion-MNIST without dropout, at the printed step sizes. With seed 0 its model
# overflowed after 280 of 500 rounds, within a single round, so claims that need this run are not judged at 500 rounds.
# No run of FedCMOO with dropout overflowed.

# %% [markdown]
# This table compares the paper's printed values with ours. Our accuracies beside Table 1 are those of round 300, or of
# the end of a shorter run:

# %%
report.paper_table(page, at_paper.numbers)

# %% [markdown]
# This table shows the final values with dropout:

# %% tags=["hide-input"]
measures = {
    "accuracy_1": "first task",
    "accuracy_2": "second task",
    "rounds_75": "to 75 %",
}
report.runs_table(at_paper, with_dropout, measures)


# %% [markdown]
# After 300 rounds, the length of the authors' demo, FedCMOO leads FSMGDA by
# {result}`cmoo_pairs@paper/multi_mnist_fedcmoo_dropout_minus_fsmgda.accuracy_300:.2f` points on MultiMNIST and by
# {result}`cmoo_pairs@paper/mnist_fashion_fedcmoo_dropout_minus_fsmgda.accuracy_300:.1f` on MNIST + Fashion-MNIST. After
# 500 rounds the lead on MultiMNIST is {result}`cmoo_pairs@paper/multi_mnist_fedcmoo_dropout_minus_fsmgda.accuracy:.2f`
# points; five seeds do not distinguish it from zero.
#
# ### Settings of Table 1
#
# | setting on MultiMNIST and MNIST + Fashion-MNIST | FSMGDA | FedCMOO | FedCMOO-Pref |
# | --- | --- | --- | --- |
# | server step size | 2.0 | 1.2 | 1.6 |
# | client step size | 0.1 | 0.5 | 0.3 |
# | least weight of a task in the authors' code | 0.001 | none | 0.1 |
# | clients, of which take part | 100, 10 | 100, 10 | 100, 10 |
# | local steps, batch | 10, 128 | 10, 128 | 10, 128 |
# | Dirichlet split | 0.3 | 0.3 | 0.3 |
# | rounds in the authors' demo | 300 | 300 | 300 |

# %% [markdown]
# ## Checks

# %% tags=["hide-input", "nbval-check-output"]
def start_alike(runs):
    """Whether all methods have the same accuracies at the start."""
    first_start, *starts = [run.metrics["accuracy"][:, 0] for run in runs.values()]
    return all(np.allclose(start, first_start) for start in starts)


def weights_in_range(runs):
    """Whether FedCMOO-Pref's weights lie between 0.1 and 0.9."""
    weight_1 = runs["pref"].info["weight_1"]
    return weight_1.min() >= 0.1 - 1e-6 and weight_1.max() <= 0.9 + 1e-6


by_data = [sweep(traces, DEFAULTS, "method", data=data, dropout=True) for data in GREY]
of_mixed = run_of(traces, DEFAULTS, **mixed, method="fedcmoo")
squared = of_mixed.metrics["loss_1"][:, 0]
negative_log = of_mixed.metrics["loss_2"][:, 0]
check("all methods of a data set start from the same models", all(map(start_alike, by_data)))
check("FedCMOO-Pref's weights lie between 0.1 and 0.9", all(map(weights_in_range, by_data)))
check(
    "at the start the squared loss is less than a tenth of the negative log-likelihood",
    (10 * squared < negative_log).all(),
)

# %% [markdown]
# ## Verdicts
#
# Most claims about MultiMNIST and MNIST + Fashion-MNIST have several readings; their rules and runs are on the [claims
# page](../book/claims.md). *The authors' network* has dropout and is judged on 500 rounds and five seeds if all runs of
# the claim are stored at this length. *The network as printed* has no dropout. A part is *open* if the seeds do
# not settle the difference.

# %%
report.claims_table(page)

# %%
report.paper_table(page)

# %% [markdown]
# We have no runs for the CIFAR-10 half of Table 2, for the CIFAR-10 column of Table 4, or for the single-task
# accuracies on CIFAR-10 + MNIST (64.9 and 97.1 %).
#
# ## What was shortened, and what the paper leaves open
#
# | in the paper or its code | here |
# | --- | --- |
# | the number of rounds is printed only for Figure 2: 500; the authors' demo has 300 | {result}`cmoo_pairs/mnist_fashion_fedcmoo.rounds:.0f` rounds on the grey pictures (MultiMNIST, MNIST + Fashion-MNIST), {result}`cmoo_pairs/multi_mnist_mixed_fedcmoo_dropout.rounds:.0f` with two kinds of loss |
# | "several" seeds | three seeds |
# | a picture is rotated anew whenever it is read | 3 rotated copies of every training picture, drawn once |
# | dropout 0.5 (in the code) | dropout 0.5, but none for single tasks and on CIFAR-10 + MNIST |
# | 20 % of the training pictures are held out to choose the step sizes | we use the printed step sizes and hold out none of the grey pictures |
# | the step sizes of Scalarized and of the single tasks are not printed | Scalarized uses FedCMOO's; the single tasks use FedCMOO-Pref's, because a run on Fashion-MNIST alone diverged with FedCMOO's |
# | the losses for FedCMOO-Pref are evaluated on all pictures of a client (code) | we evaluate them on 600 pictures, drawn anew in every round |
# | the paper does not say how the gradients are folded into the square matrix that is compressed | we fold them in blocks, as the code does |
# | the CIFAR-10 test set has 10,000 pictures | we use the 1,000 whose original pixels we have, and 5,000 training pictures that no client has |
#
# ```{provenance} cmoo_pairs
# ```
#
# ```{notebook-links} cmoo_pairs
# ```
