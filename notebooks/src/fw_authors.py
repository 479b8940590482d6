# %% [markdown]
# # FedFW: where the printed values are from
#
# **The book's result.** With the authors' loop on the authors' generated data, {result}`fw_authors/tables_all.same:.0f` of
# {result}`fw_authors/tables_all.compared:.0f` printed values lie within one point of ours,
# {result}`fw_authors/tables_all.near:.0f` between one and three points away, and {result}`fw_authors/tables_all.apart:.0f`
# further away. The mean distance is {result}`fw_authors/tables_all.distance:.1f` points.
#
# The tables of the paper on Federated Frank-Wolfe {cite}`dadras2024fedfw` were not computed as its text says
# ([Tables 1 and 2](fw_tables.ipynb), [Table 3](fw_stochastic.ipynb)). The authors' code draws the generated data with a
# known seed. This page asks which printed values the loop reproduces on these data, and which difference between the
# loop and the text puts FedFW ahead of FedDR. The rest of the {result}`fw_authors/tables_all.printed:.0f` printed values are
# on MNIST, EMNIST and CIFAR-10, on which we did not run the loop.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": the authors' rows and loop; "quick": a few rounds of it
seeds = None  # seeds; each fixes split and minibatches: full 0, 1, 2; quick 0, 1
splits = ["iid", "classes"]  # columns: IID, and the three classes that are called non-IID
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

# %% tags=["hide-input"]
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from papers import STUDIES
from papers.fedfw.authors.loop import AuthorsFW
from papers.fedfw.authors.quantities import PRINTED_GAP, STEPS, waterfall
from papers.fedfw.authors.report import forensics
from papers.fedfw.authors.rows import authors_rows
from papers.kit import plot, report, store
from papers.kit.claims import check
from papers.kit.display import displayed

plot.theme()
page = STUDIES["fw_authors"].page(globals())

# %% [markdown]
# ## The experiment
#
# We run the loop that we traced from the authors' code. In each round every client starts from the server's model and
# takes one epoch of minibatches of 64 of its own rows. Each minibatch makes a Frank-Wolfe step, and the step number
# that sets its size counts through all rounds. Every tensor has its own ball of radius 10. The server takes the plain
# mean of the models. FedDR makes one minibatch step a round, and scales the whole vector back into one ball. In the
# non-IID columns the generator has three classes and one labelling rule for all users. The authors' code never executes
# FedFW+, so the values printed for FedFW+ are values of FedFW.
#
# Changing this cell changes the results below; stored runs are loaded.

# %%
cell = "mclr_iid_l2"  # logistic regression, ten classes, the l2 ball
traces = page.run(**{f"{cell}_fw_lam0.001": AuthorsFW(0.001)})
numbers = page.numbers

# %% [markdown]
# ## What puts FedFW ahead
#
# The authors' rows put FedFW ahead of FedDR, for logistic regression, IID data and the $\ell_2$ ball of radius 10. By
# the text's protocol, FedFW minus FedDR is {result}`fw_authors/change_text.gap:+.1f` points on our rows and
# {result}`fw_authors/change_rows.gap:+.1f` on the authors'. (The [study of Table 1](fw_tables.ipynb) has
# {result}`fw_tables/mclr_synthetic_iid_l2_fedfw_minus_feddr.accuracy:+.1f` on our rows with the same seeds, because its
# grid selected another $\eta$. At $\eta=10$ and 100 FedDR amplifies rounding differences, so a run that is computed
# twice differs.)
#
# The authors' loop first increases the lead of FedFW, up to {result}`fw_authors/change_tensors.gap:+.1f` points,
# because FedDR does one minibatch for each epoch of FedFW. With all rounds of the loop FedDR catches up, and the lead
# of FedFW falls to {result}`fw_authors/change_rounds.gap:+.1f`. Taking the best round instead of the last changes
# little here, and so does choosing $\lambda_0$ by test accuracy: the $\lambda_0$ of the authors' file is already the
# best one.

# %%
leads = pd.DataFrame(waterfall(traces, page.text_rounds)).rename(columns=STEPS)
leads = leads.melt(var_name="change", value_name="FedFW minus FedDR, test accuracy (points)")
after = leads.groupby("change", sort=False)["FedFW minus FedDR, test accuracy (points)"].mean()
before = after.shift(fill_value=0.0)
figure, ax = plt.subplots(figsize=(7.0, 4.4), layout="constrained")
colors = [plot.COLORS[0] if rises else plot.COLORS[1] for rises in after > before]
ax.barh(after.index, after - before, left=before, height=0.6, color=[plot.COLORS[2], *colors[1:]])
sns.stripplot(leads, x=leads.columns[1], y="change", color="gray", jitter=False, size=4, ax=ax)
ax.axvline(0, color="gray", linewidth=0.8)
ax.axvline(PRINTED_GAP, color="gray", linestyle="--", linewidth=1.2)
ax.set_ylabel("")
plot.show(
    figure,
    "waterfall",
    data=leads,
    alt="A bar for each change, which ends at FedFW's lead over FedDR in test accuracy after the change.",
    caption="FedFW's lead over FedDR after each change from the text's protocol to the authors' loop. Each bar starts "
    "where the bar above ends. The dots are the single splits, and the dashed line is the printed difference.",
)

# %% [markdown]
# ## All printed values
#
# The column *authors' file* says whether the printed value is the maximum over the rounds in one of the authors' result
# files. *File, round 100* is the value in this file after the hundred rounds that the text states, and *file, last* is
# its last value. *Their rows and loop* is our best test accuracy over the rounds, a mean over three splits into
# training and test rows. *Same* means within one point of the printed value, *near* within three. Behind ± is the
# uncertainty that the paper prints, in points; it does not say of what. In the authors' code a run is repeated, each time
# with a new model, which would explain it. *As the text* is the
# final value in [our](fw_tables.ipynb) [studies](fw_stochastic.ipynb) that follow the text.

# %% tags=["hide-input"]
text = {**store.read_numbers("fw_stochastic"), **store.read_numbers("fw_tables")}
displayed(forensics(numbers, text, (1,)))

# %% tags=["hide-input"]
displayed(forensics(numbers, text, (2,)))

# %% tags=["hide-input"]
displayed(forensics(numbers, text, (3,)))

# %% [markdown]
# FedFW minus FedDR on the same splits, for all pairs of printed values on generated data:

# %% tags=["hide-input"]
nets = {"mclr": "logistic regression", "dnn": "60-20-10"}
kinds = {"iid": "IID", "classes": "three classes"}
pairs = {
    f"{norm} {net}, {split}": f"{n}_{s}_{k}_fw_minus_feddr"
    for k, norm in {"l2": "ℓ2", "l1": "ℓ1"}.items()
    for n, net in nets.items()
    for s, split in kinds.items()
}
pairs |= {f"100 users, {split}": f"many_{s}_sto_minus_feddr" for s, split in kinds.items()}
report.runs_table(
    page,
    pairs,
    {"best": "FedFW minus FedDR, best round", "accuracy": "FedFW minus FedDR, last round"},
)

# %% tags=["nbval-check-output", "hide-input"]
rows = authors_rows(10, 10)
counts = rows.y.bincount().tolist()
check(
    "ten users have the rows of the authors' generator",
    rows.sizes[:3] == (9545, 855, 2180),
    f"{len(rows.y)} rows",
)
check("ten users have the labels of this generator", counts[:3] == [17913, 1645, 477])

# %% [markdown]
# ## Verdicts
#
# No claim is judged by these runs, because they misread how the authors' FedDR starts. The study [with one common
# start](fw_common) judges the claims about generated data.
#
# ## What stays open
#
# | of the authors' code | here |
# | --- | --- |
# | FedFW has 1000 rounds in Tables 1 and 2, FedFW-sto 300 in Table 3. | FedFW has a third and FedFW-sto half of these rounds, because a round is a whole epoch. |
# | the shuffle that cuts off the test rows has no seed | three splits of ours |
# | FedDR's clients start at random models. | On this page each client starts at a random model of its own, as torch starts a layer, and the server at 0. That misreads the code: its clients all copy one random model. [With one common start](fw_common) FedDR's runs of 60-20-10 agree with the printed values. |
# | Printed values for FedFW with the $\ell_1$ ball and IID data | Ours are some points lower, for logistic regression and 60-20-10; we have no explanation. The number of rounds does not explain it: the authors' file is ahead already after round 100. |
# | FedFW-sto's running gradient is initialized in the constructor only | We keep it over the rounds, too. |
# | Participation and penalty (Figures 2 to 4) | We did not run this loop for them. |
#
# ```{provenance} fw_authors
# ```
#
# ```{notebook-links} fw_authors
# ```
