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
# # Two tasks in one picture
#
# **Result.** Dropout, which only the authors' code has, decides the comparison: with it FedCMOO leads FSMGDA by
# {result}`cmoo_pairs/multi_mnist_dropout_fedcmoo_vs_fsmgda.accuracy:.1f` points on MultiMNIST and
# {result}`cmoo_pairs/mnist_fashion_dropout_fedcmoo_vs_fsmgda.accuracy:.1f` on MNIST + Fashion-MNIST; without it
# the differences are {result}`cmoo_pairs/multi_mnist_fedcmoo_vs_fsmgda.accuracy:.1f` and
# {result}`cmoo_pairs/mnist_fashion_fedcmoo_vs_fsmgda.accuracy:.1f`. The lead shrinks with the rounds: after
# 500, with dropout, it is {result}`cmoo_pairs@paper/multi_mnist_dropout_fedcmoo_vs_fsmgda.accuracy:.1f` and
# {result}`cmoo_pairs@paper/mnist_fashion_dropout_fedcmoo_vs_fsmgda.accuracy:.1f`. The lead does not come from the
# choice of weights: where all have FedCMOO's step sizes, a plain average of the two losses is as
# accurate ({result}`cmoo_pairs/mnist_fashion_lr0.5_fedcmoo_vs_scalarized.accuracy:.1f` points apart); where all have
# FSMGDA's, FedCMOO minus FSMGDA is {result}`cmoo_pairs/mnist_fashion_lr0.1_fedcmoo_vs_fsmgda.accuracy:+.1f` points.
#
# Figures 1, 5-9 and Tables 1, 2, 4 of FedCMOO {cite}`askin2025fedcmoo`, on the two-task data sets: one
# network must name both things that a picture shows. Its encoder is shared, each task has a decoder
# of its own. Of 100 clients ten take part in a round, with ten minibatch steps each.
#
# Three methods weigh the two tasks in every round. *FSMGDA* trains each task separately at the
# clients and then takes the combination of the two updates with the smallest norm
# {cite}`desideri2012mgda`. *FedCMOO* estimates the Gram matrix of the tasks' gradients first, chooses
# the weights from it, and trains the weighted sum. *FedCMOO-Pref* chooses them so that the losses
# approach a given ratio, here equality {cite}`mahapatra2020preferences`. The questions: which of them
# ends with the better accuracy, which gets there first, what does the shared network lose against one
# trained for a single task, and what happens if the two losses are not of one kind?
#
# **Two networks.** The authors' code switches off half of the units in training; the paper's text does not
# mention it. This page shows the authors' network; [without dropout](#accuracy-over-the-rounds) the same runs
# stand beside it. All have {result}`cmoo_pairs/mnist_fashion_fedcmoo_dropout.rounds:.0f` rounds; how many the
# paper's had is not printed, its authors' demo has 300. CIFAR-10 with digits ran for
# {result}`cmoo_pairs/cifar10_mnist_fedcmoo.rounds:.0f` rounds and one seed, which is no result and not shown.

# %% tags=["parameters"]
profile = "full"  # "full": all pictures; "quick": stand-ins that need no download, two rounds
seeds = None  # seeds; each fixes start, split, participants and batches: full 0, 1, 2; quick 0, 1; paper 0 to 4
single_seeds = None  # seeds of training in one task alone: full 0, 1, 2; quick 0; paper 0 to 4
variant_seeds = None  # seeds without a least weight and without dropout: full 0; paper 0, 1, 2
rounds = None  # communication rounds T on the two grey data sets: full 100; quick 2; paper 500
mixed_rounds = None  # rounds with two kinds of loss, with dropout: full 100; quick 1; paper 500
dropout_seeds = None  # seeds of the runs with dropout: full 0, 1, 2; quick 0; paper 0 to 4
dropout_rounds = None  # rounds with dropout: full 100; quick 1; paper 500
exchanged = None  # 1: on MNIST + Fashion-MNIST with the others' step sizes too; 0: not: full 1; quick 0; paper 0
colour_seeds = None  # seeds on CIFAR-10 with digits: full 0; paper 0, 1, 2
colour_rounds = None  # rounds there: full 3; quick 1; paper 200
colour_budget = None  # length of a compressed Jacobian there, in gradients: full 1; quick 0.02
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

# %% tags=["remove-input"]
import numpy as np

from fedlib import FSMGDA, FedCMOO, Least
from papers import STUDIES
from papers.fedcmoo.pairs.claims import TABLE_4
from papers.fedcmoo.pairs.figures import authors_table, step_table
from papers.fedcmoo.pairs.numbers import DATA, GREY, METHODS, MIXED, decline
from papers.fedcmoo.pairs.rules import TABLE_1
from papers.fedcmoo.standin import source_text
from papers.kit import plot, report, store
from papers.kit.claims import check

page = STUDIES["cmoo_pairs"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and what stands below changes with it. What is stored under its configuration is
# loaded, anything else is computed; the study's other runs repeat it with other values.

# %%
work = {"local_steps": page.local_steps, "participants": page.participants}
work |= {"batch_size": page.batch, "shared": 28_515}  # parameters of the encoder
runs = {
    "fedcmoo": FedCMOO(lr=0.5, server_lr=1.2, **work),
    "fsmgda": FSMGDA(lr=0.1, server_lr=2.0, least=Least(0.002, mixture=False), **work),
}
pairs = ("multi_mnist", "mnist_fashion")
traces = page.run(**{f"{d}_{k}_dropout": a for d in pairs for k, a in runs.items()})
numbers, health = page.numbers, page.health
print(source_text(traces, "MNIST, Fashion-MNIST and CIFAR-10"))

# %% [markdown]
# ## The pictures
#
# In MultiMNIST two digits lie on one canvas, top left and bottom right, the larger value where they
# overlap, and the canvas is brought to 28 x 28 pixels. In MNIST + Fashion-MNIST the second is an item
# of clothing. In CIFAR-10 + MNIST a digit lies half transparent over the middle of a colour picture
# (the paper's text also calls this set CIFAR10+FMNIST; what it describes, and its code, are digits).
# Clients hold equally many pictures, split by Dirichlet(0.3) over the 100 pairs of labels.
#
# The quick profile trains on stand-ins, and says so above and on every other figure: scikit-learn's
# digits, combined in the same way.

# %% tags=["remove-input"]
plot.show(
    page.figures["gallery"](traces),
    alt="Three rows of six test pictures with their two labels: two overlapping handwritten digits in white on black; "
    "a digit at the top left and an item of clothing at the bottom right; and small colour photographs with a pale "
    "digit over their middle.",
    caption="One picture, two labels: what the network must name. The first test pictures of each data "
    "set (the paper's Figures 5 to 7 show others).",
    size=(7.6, 4.6),
)

# %% [markdown]
# ## Accuracy over the rounds
#
# Figures 8 and 9; Figure 1 is the panel of MNIST + Fashion-MNIST. Which units are off is derived from the model and
# the picture, so that a loss stays a function of both. FedCMOO-Pref runs as in the authors' code: clients evaluate
# the losses that it balances without dropout, and the server has [the guard](#the-guard).

# %% tags=["remove-input"]
plot.show(
    page.figures["dropout"](traces),
    alt="Mean test accuracy against the rounds on MultiMNIST and on MNIST + Fashion-MNIST, one curve for "
    "each of FSMGDA, FedCMOO and FedCMOO-Pref with dropout, and dotted the same methods without it.",
    caption="With dropout FedCMOO and FedCMOO-Pref lead, without it (dotted) they do not. Mean test "
    "accuracy over the seeds and one standard deviation.",
    size=(8.6, 3.2),
)

# %% tags=["remove-input"]
grey = {f"{DATA[d]}, {text}": f"{d}_{m}" for d in GREY for m, text in METHODS.items()}
dropped = {text: f"{run}_dropout" for text, run in grey.items()}
against = {"FedCMOO - FSMGDA": "fedcmoo_vs_fsmgda", "Pref - FedCMOO": "pref_vs_fedcmoo"}
against |= {"Pref - FSMGDA": "pref_vs_fsmgda"}
measures = {"accuracy": "mean accuracy", "rounds_60": "to 60 %", "rounds_75": "to 75 %"}
pairs = {f"{DATA[d]}, {t}{how}": f"{d}{key}_{pair}" for key, how in {"_dropout": "", "": ", no dropout"}.items() for d in GREY for t, pair in against.items()}
report.runs_table(numbers, pairs, measures, health)

# %% [markdown]
# Differences on the same seeds, first minus second. *Final* values here and below are means over the models evaluated
# in the last tenth of the rounds. *To 60 %* is the round in which the mean accuracy first reaches 60 %; a run that never does counts with its last round, which makes differences look smaller.

# %% [markdown]
# ## The method, or its step size?
#
# At the printed step sizes FedCMOO's model moves three times as far a round as FSMGDA's. Here every method runs at
# the step sizes of each, on MNIST + Fashion-MNIST. At no step size do the seeds tell FedCMOO from a plain average, which has no weights to choose. FedCMOO is ahead of FSMGDA at the larger steps and behind at FSMGDA's own. Final mean test accuracy in %:

# %% tags=["remove-input"]
step_table(numbers)

# %% [markdown]
# ## Task by task: Table 1
#
# The dashed grey curve is the same network trained by federated averaging on one task alone, with
# FedCMOO-Pref's step sizes and without dropout. The values beside the paper's are [below](#verdicts).

# %% tags=["remove-input"]
plot.show(
    page.figures["tasks"](traces),
    alt="Test accuracy of the first task above and of the second below against the rounds, a column a "
    "data set, one curve a method; a dashed grey curve shows training in that task alone. All curves "
    "rise, and the second task of MNIST + Fashion-MNIST, the item, stays lowest.",
    caption="The item of MNIST + Fashion-MNIST is the hardest task for all methods. Test accuracy task by"
    " task, mean over the seeds and one standard deviation. Dashed: one task alone.",
    size=(9.0, 5.0),
)

# %% [markdown]
# ## What sharing costs: Table 4
#
# $$
# \Delta_M=\frac1M\sum_{k=1}^M\frac{S_k^{\text{alone}}-S_k}{S_k^{\text{alone}}}
# $$
#
# is the mean relative loss of accuracy against training in one task alone; smaller is better, and below
# zero the tasks help each other. Here it is taken against single-task runs of the same seed. Those have no dropout, even where the methods have it. That shifts all methods alike; it affects their order only through the weight of each task. The ratio of the final test losses says how evenly the tasks are trained: FedCMOO-Pref aims at one.

# %% tags=["remove-input"]
shown = {"accuracy_1": "first task", "accuracy_2": "second task", "decline": "Delta_M"}
report.runs_table(numbers, dropped, shown | {"loss_ratio": "second loss / first loss"}, health)

# %% tags=["remove-input", "nbval-check-output"]
columns = {d: list(zip(*(TABLE_1[d][m] for m in METHODS), strict=True)) for d in DATA}
again = {d: decline(columns[d], TABLE_1[d]["single"]) for d in DATA}
printed = {d: [TABLE_4[d][m] for m in METHODS] for d in DATA}
close = [np.abs(again[d] - printed[d]).max() < 0.0051 for d in DATA]
_ = check("all nine numbers of Table 4 follow from those printed in Table 1", all(close))

# %% [markdown]
# ## Two kinds of loss: Table 2
#
# Digit 1 gets the mean square of the difference between softmax outputs and the class as a vector, Digit 2
# the negative log-likelihood. The paper calls the first an $\ell_2$-norm loss and does not define it; the
# text and the table disagree about the task that has it. This reading is the one that fits the table:
# gradients of the squared loss are smaller, an average overlooks them, and a minimum-norm rule favours
# them. Only the half on MultiMNIST was run, for {result}`cmoo_pairs/mixed_fedcmoo.rounds:.0f` rounds.

# %% tags=["remove-input"]
labels = {text: f"mixed_{m}" for m, text in MIXED.items()}
both = {"accuracy_1": "Digit 1, squared", "accuracy_2": "Digit 2, NLL", "worst": "worse digit"}
report.runs_table(numbers, labels, both | {"accuracy": "mean"}, health)

# %% [markdown]
# ## The guard
#
# After every round the authors' code evaluates the training loss on the first ten clients of its list, and sets the
# model back if it is not finite or more than 1.5 times the last accepted one. The paper does not mention it. Without
# it, and with losses evaluated with dropout, a run of FedCMOO-Pref over 500 rounds on MNIST + Fashion-MNIST did not
# stay finite in all of its five seeds (a run that diverges is not stored). With it a model is set back in
# {result}`cmoo_pairs@paper/mnist_fashion_pref_dropout.rejected:.0f` of
# {result}`cmoo_pairs@paper/mnist_fashion_pref_dropout.all_rounds:.0f` rounds,
# {result}`cmoo_pairs@paper/mnist_fashion_pref_dropout.rejected_most:.0f` of them in one seed, which ends behind the
# others; on MultiMNIST in {result}`cmoo_pairs@paper/multi_mnist_pref_dropout.rejected:.0f` of
# {result}`cmoo_pairs@paper/multi_mnist_pref_dropout.all_rounds:.0f`. Here the guard looks at
# {result}`cmoo_pairs/mnist_fashion_pref_dropout.judge_rows:.0f` rows of each of the ten clients, not at all of them.
#
# FSMGDA and FedCMOO run without the guard. We did not test whether it would act on them; their test losses, evaluated every fifth round, do not suggest so. *Growth* is the largest factor, over seeds and evaluations, between the mean test losses of two successive evaluations, at the paper's scale.

# %% tags=["remove-input"]
at_paper = store.read_derived("cmoo_pairs", "paper")
report.runs_table(at_paper.numbers, dropped, {"growth": "growth of the test loss"})

# %% [markdown]
# ## Beside the authors' own runs
#
# The authors publish one plot of their own, in the demo of their code (MNIST + Fashion-MNIST, one seed, 300 rounds), and
# their code can be run as it stands (MultiMNIST, one seed). Diamonds are these, in means of thirty rounds; curves are the
# stored runs of 500 rounds with dropout.

# %% tags=["hide-input"]
longer = page.study.load("paper")
compared = {f"{d}_{m}_dropout" for d in GREY for m in METHODS}
plot.show(
    page.figures["overlay"](longer),
    alt="Mean test accuracy against the rounds on MultiMNIST and on MNIST + Fashion-MNIST; the diamonds of the "
    "authors' code lie on our curves of the three methods from round thirty on.",
    caption="Our runs lie on the authors' own. Band: from the lowest to the highest seed.",
    size=(8.6, 3.4),
) if compared <= longer.keys() else None

# %% tags=["hide-input"]
authors_table(at_paper.numbers)

# %% [markdown]
# *Farthest apart* is the largest distance, in points, between a diamond and our mean of the same rounds, the first thirty
# left out.

# %% [markdown]
# ## Variants of the compression and of the weights
#
# Two-way compression, which the paper and all runs above use, corrects the compressed Gram matrix
# by two small matrices that every client sends once it has seen the compressed sum; one-way does without. The *least
# weight* 0.1 of FedCMOO-Pref is a practical addition of the paper. MNIST + Fashion-MNIST, with dropout:

# %% tags=["remove-input"]
variants = {"FedCMOO: one-way - two-way": "mnist_fashion_dropout_fedcmoo_oneway_vs_fedcmoo"}
variants |= {"FedCMOO-Pref: one-way - two-way": "mnist_fashion_dropout_pref_oneway_vs_pref"}
variants |= {"FedCMOO-Pref: no least weight - least weight": "mnist_fashion_dropout_pref_free_vs_pref"}
measures = {"accuracy": "mean accuracy", "loss": "mean loss", "rounds_60": "to 60 %"}
report.runs_table(numbers, variants, measures | {"rounds_75": "to 75 %"}, health)

# %% [markdown]
# ## At the paper's scale
#
# 500 rounds, as printed for the paper's Figure 2, and five seeds, where such runs are stored, whatever this page
# runs on. Claims that look at these runs alone are judged on them; the others wait.
#
# FedCMOO on MNIST + Fashion-MNIST without dropout, at the printed step sizes, is missing here: with seed 0 its
# model overflowed within a single round, after 280 of 500. No run of FedCMOO with dropout overflowed, nor any with
# one-way compression (fewer seeds). Claims that need the missing runs are not judged at 500 rounds.

# %% [markdown]
# What the paper prints, beside these runs:

# %% tags=["remove-input"]
report.paper_table(page.study, at_paper.numbers)

# %% [markdown]
# How these runs end, with dropout:

# %% tags=["remove-input"]
ends = {"accuracy_1": "first task", "accuracy_2": "second task", "rounds_75": "to 75 %"}
report.runs_table(at_paper.numbers, dropped, ends, at_paper.health)

# %% [markdown]
# FedCMOO's lead with dropout shrinks as training goes on. Over FSMGDA on MultiMNIST it is, in points,
# {result}`cmoo_pairs@paper/multi_mnist_dropout_fedcmoo_vs_fsmgda.accuracy_300:.2f` after 300 rounds, as many as the
# authors' demo has, and {result}`cmoo_pairs@paper/multi_mnist_dropout_fedcmoo_vs_fsmgda.accuracy:.2f` after 500, which
# five seeds do not tell from none. On MNIST + Fashion-MNIST it is
# {result}`cmoo_pairs@paper/mnist_fashion_dropout_fedcmoo_vs_fsmgda.accuracy_300:.1f` and
# {result}`cmoo_pairs@paper/mnist_fashion_dropout_fedcmoo_vs_fsmgda.accuracy:.1f`. After how many rounds the paper's
# Table 1 was taken is not printed; the claims are judged at the end.

# %% [markdown]
# ## Checks

# %% tags=["remove-input", "nbval-check-output"]
starts = {d: [traces[f"{d}_{m}_dropout"].metrics["accuracy"][:, 0] for m in METHODS] for d in GREY}
same = all(np.allclose(x, start[0]) for start in starts.values() for x in start)
least = [traces[f"{d}_pref_dropout"].info["weight_1"] for d in GREY]
first, second = (traces["mixed_fedcmoo"].metrics[f"loss_{k}"][:, 0] for k in (1, 2))
check("all methods of a data set start from the same models", same)
check("FedCMOO-Pref's weights lie between 0.1 and 0.9", all((w >= 0.1 - 1e-6).all() and (w <= 0.9 + 1e-6).all() for w in least))
_ = check("at the start the squared loss is less than a tenth of the negative log-likelihood", (10 * first < second).all())

# %% [markdown]
# ## Verdicts
#
# The rule of each part and the runs behind it are on the [claims page](../book/claims.md). On the grey sets the
# first line of a claim is the authors' network, on 500 rounds and five seeds where all of its runs are stored so, the
# second the printed one. A difference that the seeds do not settle is *undecided*. *Not judged* are the runs that
# are shorter than a third of what the authors' code runs (300 rounds on the grey sets, 200 by default): two kinds
# of loss and CIFAR-10 + MNIST; and the one-way variants, which have one seed.

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% tags=["remove-input"]
report.paper_table(page.study, numbers)

# %% [markdown]
# The half of Table 2 on CIFAR-10, Table 4's column of CIFAR-10 and its single-task accuracies (64.9 and
# 97.1 %) have no runs here. Nor was the plain norm tried as the $\ell_2$-norm loss of Table 2.
#
# ## What was shortened, and what the paper leaves open
#
# | in the paper | here |
# | --- | --- |
# | number of rounds not printed (500 in its Figure 2; 300 in the authors' demo) | {result}`cmoo_pairs/mnist_fashion_fedcmoo.rounds:.0f` on the grey data sets, {result}`cmoo_pairs/mixed_fedcmoo.rounds:.0f` with two kinds of loss, {result}`cmoo_pairs/cifar10_mnist_fedcmoo.rounds:.0f` on CIFAR-10 + MNIST |
# | "several" seeds | 3; one for CIFAR-10 + MNIST |
# | rotation drawn anew whenever a picture is read | 3 turned copies of every training picture, drawn once |
# | dropout 0.5 (code) | with it; FSMGDA, FedCMOO and FedCMOO-Pref on the grey sets without it too; single tasks and CIFAR-10 + MNIST without it alone |
# | 20 % of the training pictures held out to choose step sizes | none held out of the grey sets; the printed step sizes are used |
# | step sizes of Scalarized and of single tasks not printed | those of FedCMOO, and of FedCMOO-Pref for single tasks: at FedCMOO's a run on Fashion-MNIST alone diverged |
# | losses for FedCMOO-Pref on all of a client's pictures (code) | on 600 rows drawn anew in every round |
# | roll-back when the loss grows 1.5-fold (code, not in the paper) | FedCMOO-Pref with dropout has it; no other run |
# | order in which the gradients fill the square matrix that is compressed | the blocks of the code |
# | CIFAR-10 test set of 10,000 pictures | the 1,000 at hand whose pixels are canonical, and 5,000 training pictures that no client has |
#
# ```{provenance} cmoo_pairs
# ```
#
# ```{notebook-links} cmoo_pairs
# ```
