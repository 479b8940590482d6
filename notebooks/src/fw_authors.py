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
# # FedFW: where the printed values are from
#
# The tables of the paper on Federated Frank-Wolfe {cite}`dadras2024fedfw` were not made as its text says
# ([Tables 1 and 2](fw_tables.ipynb), [Table 3](fw_stochastic.ipynb)). The authors' generated data can be had to the digit: their code
# draws them from a known generator with a known seed. This page runs *their* loop on *their* rows, and asks which printed values come out
# of it, and which of its differences from the text puts FedFW ahead of FedDR.
#
# Of {result}`fw_authors/count.printed:.0f` printed values {result}`fw_authors/count.compared:.0f` are on generated data. Of these,
# {result}`fw_authors/count.same:.0f` lie within one point of ours, {result}`fw_authors/count.near:.0f` between one and three, and
# {result}`fw_authors/count.apart:.0f` further away; the mean distance is {result}`fw_authors/count.distance:.1f` points. On MNIST, EMNIST and
# CIFAR-10 this loop was not run.

# %% tags=["parameters"]
profile = "full"  # "full": the authors' rows and loop; "quick": a few rounds of it
seeds = None  # seeds; each fixes split and minibatches: full 0, 1, 2; quick 0, 1
fresh = None  # seeds that C16 alone is judged by: full 100 to 153; quick 100
splits = None  # columns: IID, and the three classes that are called non-IID: full iid, classes
rounds = None  # rounds of FedFW in Tables 1 and 2, epochs: full 340; quick 3
feddr_rounds = None  # rounds of FedDR there, single minibatches: full 1000; quick 20
many_rounds = None  # rounds of FedFW-sto in Table 3, 100 users; 0: without: full 150; quick 0
many_feddr_rounds = None  # rounds of FedDR there: full 300; quick 20
text_rounds = None  # rounds of the paper's text: full 100; quick 20
most = None  # most rows of a client of our own rows: full 1000; quick 100
lambdas = None  # grid of lambda_0 for the protocol of the text: full 0.0001, 0.001, 0.01, 0.1; quick 0.001
rates = None  # grid of FedDR's step sizes there: full 0.5, 0.05; quick 0.5
etas = None  # grid of FedDR's eta there: full 1, 10, 100; quick 10
chosen = None  # lambda_0 among which the best test accuracy chooses: full 0.001, 0.01, 0.1; quick 0.001
device = "cpu"  # the authors' loop is plain Python
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
from papers import STUDIES
from papers.fedfw.authors.loop import AuthorsFW
from papers.fedfw.authors.report import forensics
from papers.fedfw.authors.rows import authors_rows
from papers.kit import plot, report, store
from papers.kit.claims import check

page = STUDIES["fw_authors"].page(globals())

# %% [markdown]
# ## The experiment
#
# The loop as traced: a round starts every client from the server's model; a client takes one epoch of minibatches of 64 of its own rows,
# and each minibatch makes a Frank-Wolfe step, whose number goes on over the rounds; every tensor has a ball of radius 10 of its own; the server
# takes the plain mean of the models. FedDR makes one minibatch step a round, and scales the whole vector back into one ball. What is called non-IID is the generator with three
# classes and one labelling rule for all users. FedFW+ is never reached in their code: its values are those of FedFW.
#
# Change this cell, and what stands below changes with it.

# %%
cell = "mclr_iid_l2"  # logistic regression, ten classes, the l2 ball
traces = page.run(**{f"{cell}_fw_0.001": AuthorsFW(0.001)})
numbers = page.numbers

# %% [markdown]
# ## All printed values
#
# *Authors' file* says whether the printed value is the maximum over the rounds in one of their result files. *File, round 100* is what the same file has after the
# hundred rounds that the text states, *file, last* after all. *Their rows and loop* is the best test accuracy over the rounds, mean over three splits of ours, because their seed is unknown; *same* is within one point of the printed value, *near* within three. *As the text* is the final value in the studies that follow the text. First Table 1, then Table 2, then Table 3.

# %% tags=["remove-input"]
text = {**store.read_numbers("fw_stochastic"), **store.read_numbers("fw_tables")}
forensics(numbers, text, (1,))

# %% tags=["remove-input"]
forensics(numbers, text, (2,))

# %% tags=["remove-input"]
forensics(numbers, text, (3,))

# %% [markdown]
# ## What puts FedFW ahead
#
# From the text's protocol on our rows to the authors' loop on theirs, one change at a time: logistic regression, IID, $\ell_2$ ball. The radius is 10 throughout.
# By the text FedFW minus FedDR is {result}`fw_authors/waterfall_text.gap:+.1f` points on our rows and {result}`fw_authors/waterfall_rows.gap:+.1f` on the authors': the rows turn the order.
# (The tables above have {result}`fw_tables/mclr_synthetic_iid_l2_fedfw_vs_feddr.accuracy:+.1f` in its place, from the same rows and seeds: at $\eta=10$ and 100 FedDR amplifies differences of rounding, and another $\eta$ was chosen there.) What their loop adds at
# first, up to {result}`fw_authors/waterfall_tensors.gap:+.1f`, comes from FedDR's doing less work, one minibatch for each epoch of FedFW; with all its rounds FedDR comes near, and {result}`fw_authors/waterfall_rounds.gap:+.1f` are left.
# The best round in place of the last, and a choice of $\lambda_0$ by test accuracy, change little here: the file's $\lambda_0$ is the best one anyway.

# %% tags=["remove-input"]
plot.show(
    page.figures["waterfall"](traces),
    alt="A bar for each change from the text's protocol to the authors': how many test points FedFW is ahead of FedDR after it, with a dot for each split, "
    "and a dashed line at the printed difference.",
    caption="Each bar starts where the one above ends. Dots: the single splits. Dashed: the printed difference.",
    size=(9.0, 4.4),
)

# %% [markdown]
# The differences of the printed pairs, on the same splits:

# %% tags=["remove-input"]
nets, kinds = {"mclr": "logistic regression", "dnn": "60-20-10"}, {"iid": "IID", "classes": "three classes"}
pairs = {
    f"{norm} {net}, {kind}": f"{n}_{s}_{k}_fw_vs_feddr"
    for k, norm in {"l2": "ℓ2", "l1": "ℓ1"}.items()
    for n, net in nets.items()
    for s, kind in kinds.items()
}
pairs |= {f"100 users, {kind}": f"many_{s}_sto_vs_feddr" for s, kind in kinds.items()}
report.runs_table(numbers, pairs, {"best": "FedFW - FedDR, best", "accuracy": "last"}, page.health)

# %% tags=["nbval-check-output", "remove-input"]
rows = authors_rows(10, 10)
counts = rows.y.bincount().tolist()
check("ten users have the rows of the authors' generator", rows.sizes[:3] == (9545, 855, 2180), f"{len(rows.y)} rows")
_ = check("and its labels", counts[:3] == [17913, 1645, 477])

# %% [markdown]
# ## Verdicts
#
# The rule of each part and the runs behind it are on the [claims page](../book/claims.md).

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% [markdown]
# ## What stays open
#
# | of the authors' code | here |
# | --- | --- |
# | 1000 rounds of FedFW in Tables 1 and 2, 300 of FedFW-sto in Table 3 | a third, and a half: an epoch each |
# | the shuffle that cuts off the test rows has no seed | three splits of ours |
# | where FedDR's clients start: at random models | each at one of its own, as torch starts a layer, the server at 0; its runs of 60-20-10 differ by many points from split to split, and one common start was not tried |
# | FedFW with the $\ell_1$ ball, IID | both networks stay points below the printed value; unexplained |
# | FedFW-sto's running gradient | lives on over the rounds |
# | participation and penalty (Figures 2 to 4) by this loop | not run |
#
# ```{provenance} fw_authors
# ```
#
# ```{notebook-links} fw_authors
# ```
