# %% [markdown]
# # Two kinds of loss
#
# **The book's result.** After {result}`cmoo_mixed/fedcmoo.rounds:.0f` rounds with a norm as the loss of the first digit, the plain average of the losses
# trains the first digit badly ({result}`cmoo_mixed/scalarized.accuracy_1:.0f` % test accuracy, against
# {result}`cmoo_mixed/scalarized.accuracy_2:.0f` % for the second). FSMGDA trains both digits, the first one better by
# {result}`cmoo_mixed/fsmgda.gap:.1f` percentage points. The worse digit of FedCMOO has
# {result}`cmoo_mixed/fedcmoo.worst:.1f` %, that of FSMGDA {result}`cmoo_mixed/fsmgda.worst:.1f` %: three seeds do not
# tell the two apart.
#
# Table 2 of the FedCMOO paper {cite}`askin2025fedcmoo` has two kinds of loss on MultiMNIST: one digit has the $\ell_2$
# norm of the difference between probabilities and label, the other the negative log-likelihood. [Two tasks in one
# picture](cmoo_pairs) reads the norm as its square and has fewer rounds, after which FSMGDA has trained neither digit. This
# page takes the norm as it is written and the rounds of the authors' demo. The rule of the claim was fixed before
# its seeds were drawn.

# %% tags=["parameters", "hide-input"]
profile = "full"
seeds = None  # seeds that judge, which no run had before: full 20, 21, 22; quick 0
rounds = None  # communication rounds T, those of the authors' demo: full 300; quick 1
kind = "norm"  # loss of the first digit: norm, or squared
source = None  # 0: the paper's pictures, 2: stand-ins of scikit-learn's digits, without a download: full 0; quick 2
clients = None  # clients N: full 100; quick 6
participants = None  # clients a round: full 10; quick 1
local_steps = None  # local steps E, a minibatch each: full 10; quick 1
batch = None  # rows of a client's minibatch: full 128; quick 8
alpha = 0.3  # concentration of the Dirichlet split over composite labels
copies = None  # turned copies of every training picture: full 3; quick 1
pictures = None  # 0: all training pictures; else the first so many: full 0; quick 480
test_pictures = None  # 0: all test pictures; else the first so many: full 0; quick 80
evaluate_every = None  # rounds between two evaluations: full 5; quick 1
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["hide-input"]
import seaborn as sns

from papers import STUDIES
from papers.fedcmoo.common import method
from papers.fedcmoo.mixed.runs import DATA, DEFAULTS
from papers.fedcmoo.pairs.runs import MIXED
from papers.fedcmoo.standin import note, source_text
from papers.kit import plot, report
from papers.kit.claims import check
from papers.kit.quantities import Query

plot.theme()
page = STUDIES["cmoo_mixed"].page(globals())

# %% [markdown]
# ## The experiment
#
# Changing this cell changes the results below.

# %%
traces = page.run(**{name: method(name, DATA, page.params) for name in MIXED})
numbers = page.numbers
print(source_text(traces, "MNIST"))

# %% [markdown]
# ## Accuracy of both digits

# %%
shown = plot.worded(page.curves(["method"], DEFAULTS), method=MIXED)
digits = {"accuracy_1": "first digit: norm", "accuracy_2": "second digit: log-likelihood"}
shown[[*digits]] *= 100
means = plot.over_seeds(shown, digits)
grid = sns.relplot(means, hue="method", col="metric", **plot.LINES)
grid.set_ylabels("test accuracy (%)")
note(grid.figure, traces)
plot.finish(grid, size=(8.6, 3.2))
plot.show(
    grid,
    "accuracy",
    alt="Test accuracy of both digits against the rounds for the plain average of the losses, FSMGDA and FedCMOO. On "
    "the first digit the plain average stays far below the others; on the second digit it is ahead.",
    caption="The plain average of the losses trains the digit with the log-likelihood and neglects the one with the "
    "norm; FSMGDA and FedCMOO train both. Curves are means over the seeds, bands one standard deviation.",
)

# %% tags=["hide-input"]
rows = {text: {"method": name} for name, text in MIXED.items()}
measures = {
    "accuracy_1": "first digit",
    "accuracy_2": "second digit",
    "gap": "first minus second",
    "worst": "worse digit",
}
report.runs_table(page, rows, measures)

# %% [markdown]
# Accuracies are means over the models evaluated in the last tenth of the rounds.

# %% tags=["nbval-check-output"]
if page.profile == "full":
    worst = {name: numbers[Query.of("worst", method=name)] for name in MIXED}
    check(
        "FedCMOO's worse digit is above that of the plain average",
        worst["fedcmoo"].low > worst["scalarized"].value,
    )
    check("FSMGDA trains both digits to 75 % or more", min(worst["fsmgda"].per_seed) > 75)

# %% [markdown]
# ## The paper against ours
#
# The paper prints one value for each digit. Its FSMGDA leaves the second digit untrained; ours trains it.

# %%
report.paper_table(page)

# %% [markdown]
# ## Verdicts
#
# The [claims page](../book/claims.md) shows the rules and runs behind these verdicts.

# %%
report.claims_table(page)

# %% [markdown]
# ## What the paper leaves open
#
# | Open in the paper | Our choice |
# | --- | --- |
# | the norm | of the difference between softmax and one-hot label, without a square |
# | rounds | as in the authors' demo |
# | which digit has which loss | the first the norm, the second the negative log-likelihood |
# | dropout | half of the units, as in the authors' code |
#
# ```{provenance} cmoo_mixed
# ```
#
# ```{notebook-links} cmoo_mixed
# ```
