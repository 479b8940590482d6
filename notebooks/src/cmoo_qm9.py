# %% [markdown]
# # Eleven properties of a molecule
#
# **The book's result.** In every round a client uploads about twice the model's size with FedCMOO and eleven times with
# FSMGDA, as the paper says. After {result}`cmoo_qm9/at_rounds.rounds:.0f` rounds the mean test loss is
# {result}`cmoo_qm9/fsmgda_at_rounds.loss:.3f` for FSMGDA, {result}`cmoo_qm9/fedcmoo_at_rounds.loss:.3f` for FedCMOO and
# {result}`cmoo_qm9/pref_at_rounds.loss:.3f` for FedCMOO-Pref. When a client of each method has uploaded
# {result}`cmoo_qm9/at_upload.upload:.0f` model sizes, the losses are {result}`cmoo_qm9/fsmgda_at_upload.loss:.3f`,
# {result}`cmoo_qm9/fedcmoo_at_upload.loss:.3f` and {result}`cmoo_qm9/pref_at_upload.loss:.3f`. We do not judge these losses,
# because the runs have one seed and few rounds, and FSMGDA does not learn.
#
# This page repeats Figure 3 of the FedCMOO paper {cite}`askin2025fedcmoo`, which compares the test losses of *FSMGDA*,
# *FedCMOO* and *FedCMOO-Pref* after equal rounds and after equal uploads. One graph neural network, which passes
# messages along bonds and has eleven linear decoders, predicts eleven properties of the molecules of QM9, which are split at random among twenty clients.
# Four clients take part in a round, and each does fourteen minibatch steps of Adam.
#
# Our batches have {result}`cmoo_qm9/batch:.0f` molecules (the paper's 128). FedCMOO and FedCMOO-Pref run for
# {result}`cmoo_qm9/fedcmoo.rounds:.0f` rounds, FSMGDA only for {result}`cmoo_qm9/fsmgda.rounds:.0f`, because its
# clients compute 154 gradients in a round, those of FedCMOO 24. The authors' code has 200 rounds by default, so our
# losses belong to the beginning of training. All methods start with a test loss of
# {result}`cmoo_qm9/fedcmoo.start:.3f`.

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": 40,000 molecules, one seed; "quick": 200 generated graphs, one round
source = None  # 0: QM9, 2: generated graphs with targets of a known rule, without a download: full 0; quick 2
seeds = None  # seeds; each fixes start, split, participants and batches: full and quick 0; paper 0, 1, 2
rounds = None  # communication rounds T of FedCMOO and FedCMOO-Pref: full 22; quick 1; paper 200
fsmgda_rounds = None  # rounds of FSMGDA, whose clients take six times as many steps: full 8; quick 1; paper 200
lr = 0.01  # step size of the clients' Adam
clients = 20  # clients N
participants = None  # clients a round: full 4; quick 1
local_steps = None  # local steps E, a minibatch each: full 14; quick 2
batch = None  # molecules of a client's minibatch: full 8; quick 2; paper 128
loss_rows = None  # molecules on which a client of FedCMOO-Pref estimates its losses: full 32; quick 2
molecules = None  # training molecules of all clients together: full 40000; quick 200
test_molecules = None  # test molecules on which the losses of the figures are measured: full 500; quick 20
evaluate_every = 1  # rounds between two evaluations
objectives = None  # numbers of objectives M of the one-round runs whose uploads are counted: full 2, 5, 11, 40; quick 2
count_dim = None  # parameters d of the model in the one-round runs: full 20000; quick 2000
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
import seaborn as sns

from fedlib import Adam, FedCMOO
from papers import STUDIES
from papers.fedcmoo.common import METHODS
from papers.fedcmoo.qm9.runs import DEFAULTS, TASKS
from papers.fedcmoo.standin import note, source_text
from papers.kit import plot, report
from papers.kit.claims import check

plot.theme()
page = STUDIES["cmoo_qm9"].page(globals())

# %% [markdown]
# ## The experiment
#
# Changing this cell changes the results below.

# %%
fedcmoo = FedCMOO(
    lr=page.lr,
    local_steps=page.local_steps,
    participants=page.participants,
    batch_size=page.batch,
    shared=616_960,
    local=Adam(),
)
traces = page.run(fedcmoo=fedcmoo)
numbers = page.numbers
print(source_text(traces, "QM9"))

# %% [markdown]
# ## The problem
#
# A molecule is a complete graph with eleven numbers for each of its atoms and five for each pair of atoms (four kinds
# of bond and the distance). Objective $k$ is the mean squared error of target $k$. Targets are normalized to mean 0 and
# variance 1 over the whole of QM9, so that always predicting the mean has a loss near 1. The network has 617,675
# parameters. All targets share 616,960 of them, and only these enter the Gram matrix.
#
# The paper does not mention Adam's state. Here a client restarts Adam in every round, and in FSMGDA for every
# objective, so no moments are kept or sent. The server then moves its model $w$ by the mean of the clients' moves,
# $w\leftarrow w+\eta_s\,\mathrm{mean}_j(u_j-w)$, where $u_j$ is the model of client $j$ after its local steps. For
# plain gradient steps this is line 8 of FedCMOO's pseudocode. A client's gradients for the Gram matrix also serve as
# those of its first Adam step.
#
# ## Figure 3

# %%
shown = plot.worded(page.curves(["method"], DEFAULTS), method=METHODS)
per_round = numbers.by_seed({"upload": "upload"}, ["method"]).set_index("run")["value"]
shown["uploaded (model size x clients of a round)"] = shown["round"] * shown["run"].map(per_round)
x = ["round", "uploaded (model size x clients of a round)"]
both = shown.melt(["run", "method", "seed", "loss"], x, "against", "x")
look = {
    "markers": True,
    "dashes": False,
    "estimator": None,
    "facet_kws": {"sharex": False, "legend_out": False},
}
grid = sns.relplot(
    both, kind="line", x="x", y="loss", hue="method", style="method", col="against", **look
)
for label, ax in grid.axes_dict.items():
    ax.set_xlabel(label)
grid.set_ylabels("mean test loss of 11 targets")
note(grid.figure, traces)
plot.finish(grid, size=(8.6, 3.3))
plot.show(
    grid,
    "figure_3",
    alt="Mean test loss of each method. Against the rounds (left), the curve of FSMGDA is flat and ends long before those "
    "of FedCMOO and FedCMOO-Pref, which fall. Against the upload (right), those two end at about half of FSMGDA's upload.",
    caption="At the printed step size FSMGDA does not learn: its loss stays near its start for all rounds that it was run, "
    "fewer than FedCMOO's, since each takes it longer. The curves show the mean test loss of the eleven targets in single runs, "
    "with a mark for every evaluated model.",
)

# %% [markdown]
# ## What is uploaded
#
# For $M$ objectives and a model of $d$ parameters, an FSMGDA client uploads $Md$ numbers in a round. A FedCMOO client
# uploads a sketch of the $M\times d$ Jacobian with about $d$ numbers, two $M\times M$ matrices, and an update of $d$
# numbers; with FedCMOO-Pref also $M$ loss values. With two objectives FedCMOO therefore saves nothing. With many it
# saves a factor of about $M/2$, as long as $M^2$ is small against $d$.

# %%
counted = plot.worded(
    numbers.by_seed({"upload": "upload of a client and round (d)"}, ["method", "objectives"]),
    method=METHODS,
)
grid = sns.relplot(
    counted, x="objectives", y="value", hue="method", style="method", kind="line", markers=True
)
on_qm9 = counted[counted["objectives"].isna()].assign(objectives=len(TASKS))
sns.scatterplot(
    on_qm9,
    x="objectives",
    y="value",
    hue="method",
    s=110,
    facecolors="none",
    legend=False,
    ax=grid.ax,
)
grid.set_xlabels("objectives M")
plot.log_ticks(grid.ax, sorted(counted["objectives"].dropna().unique()))
note(grid.figure, traces)
plot.finish(grid, log=True, size=(6.0, 3.4))
plot.show(
    grid,
    "uploads",
    alt="Upload per client and round in model sizes against the number of objectives, on two logarithmic axes. FSMGDA "
    "rises in a straight line with slope one. FedCMOO and FedCMOO-Pref start at the same point and stay almost level. "
    "Rings mark the runs on QM9.",
    caption="FSMGDA's upload grows with the number of objectives, FedCMOO's stays near two models. "
    "The uploads are counted in one round on quadratics and in the runs on QM9.",
)

# %% tags=["hide-input", "nbval-check-output"]
up = {m: numbers[f"{m}.upload"].value for m in ("fsmgda", "fedcmoo", "pref")}
starts = {numbers[f"{m}.start"].value for m in up}
check("all methods start from the same model", len(starts) == 1)
check("FSMGDA uploads 11 d a client and round on QM9", abs(up["fsmgda"] - 11) < 1e-9)
check(
    "FedCMOO and FedCMOO-Pref upload 2 d, within 1 %",
    all(abs(up[m] - 2) < 0.02 for m in ("fedcmoo", "pref")),
)
check(
    "FedCMOO-Pref uploads eleven numbers more than FedCMOO",
    round((up["pref"] - up["fedcmoo"]) * 617_675) == 11,
)
if 2 in page.objectives:
    check(
        "with two objectives the uploads differ by less than 5 %",
        abs(numbers["objectives2.ratio"].value - 1) < 0.05,
    )

# %% [markdown]
# ## Verdicts
#
# The rules and runs behind these verdicts are on the [claims page](../book/claims.md). One run suffices to judge the
# claim about uploads, which are counted.
#
# FSMGDA does not learn because in an early round the units of its encoder become inactive. From then on, the combined
# update of the encoder is exactly zero, and nine of the eleven losses stay constant. The mean loss of
# {result}`cmoo_qm9/fsmgda_at_rounds.loss:.3f` is near the 1 of always predicting the mean. The step size, 0.01, is the one
# that the paper prints for all methods (appendix D.3); fourteen steps of Adam with it can move a parameter by 0.14,
# while the initial weights are at most 0.09 in absolute value. What is shortened here is the batch: ours has
# {result}`cmoo_qm9/batch:.0f` molecules and the paper's 128. We did not run FSMGDA with that batch, so we do not know
# whether it would learn.

# %%
report.claims_table(page)

# %%
report.paper_table(page)

# %% [markdown]
# ## What differs from the paper
#
# | in the paper or its code | here |
# | --- | --- |
# | 20,000 molecules in the validation and test sets, which we read as together | the same split, but the losses in the figures use only the first test molecules |
# | the losses that determine FedCMOO-Pref's weights are evaluated on all data of a client | we evaluate them on a random batch |
# | the hybridization of an atom comes from a chemistry package | it is derived from the bonds of the atom |
# | the model is reset when the training loss grows by half (code) | the model is never reset |
#
# ```{provenance} cmoo_qm9
# ```
#
# ```{notebook-links} cmoo_qm9
# ```
