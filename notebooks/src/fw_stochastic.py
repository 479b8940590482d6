# %% [markdown]
# # FedFW: Table 3
#
# **The book's result.** In Table 3 of the paper FedFW-sto has a higher test accuracy than FedDR in all eight columns
# (claim C9). In our runs it does so in {result}`fw_stochastic@paper/code_columns_all.ahead:.0f` of
# {result}`fw_stochastic/code_columns_all.cells:.0f` columns with the protocol (b) that produced the table, and in
# {result}`fw_stochastic@paper/columns_all.ahead:.0f` of {result}`fw_stochastic/columns_all.cells:.0f` with the
# protocol (a) of the text. The claim is reproduced under (b); under (a) the other columns are open.
#
# *FedFW-sto* is Federated Frank-Wolfe {cite}`dadras2024fedfw` with minibatches: each client averages its stochastic
# gradients over the rounds before it computes the extreme point of the ball that it sends. Table 3 compares it with
# FedDR on EMNIST, generated data and CIFAR-10, IID and non-IID. The model is logistic regression in an $\ell_2$ ball of
# radius 10, with 100 clients, one minibatch of 64 per client and round, and 300 rounds.
#
# We did not have EMNIST. Our runs cover six of the eight columns: MNIST replaces EMNIST-10 (its digits), and EMNIST-62
# (letters and digits) is left out. As for [Tables 1 and 2](fw_tables.ipynb), each column is shown three times:
#
# * **(a) as written**: the model after 300 rounds, with one ball around the whole vector. A grid search selects
#   $\lambda_0$ and FedDR's step size by the lowest training loss.
# * **(b) as traced**: the best of the rounds, with the $\lambda_0$ that we traced in the history of the authors' code.
#   FedFW-sto has a ball for every tensor, and test rows are taken from the clients' own rows.
# * **(c) printed**: the value in the paper, with the uncertainty that it prints, in points.
#
# The counts in the result are from runs [with all rows](#at-the-papers-scale). There, by (a), FedFW-sto minus FedDR is
# {result}`fw_stochastic@paper/mclr_pictures_labels_sto_minus_feddr.accuracy:+.1f` points on MNIST with three labels a
# client, but {result}`fw_stochastic@paper/mclr_synthetic_iid_sto_minus_feddr.accuracy:+.1f` on generated IID data. With
# fewer rows FedFW-sto is ahead in {result}`fw_stochastic/columns_all.ahead:.0f` columns by (a) and in
# {result}`fw_stochastic/code_columns_all.ahead:.0f` by (b).

# %% tags=["parameters", "hide-input"]
profile = "full"  # "full": MNIST, CIFAR-10, generated data; "quick": scikit-learn's digits
pictures = None  # mnist, or digits: the 8 x 8 pictures of scikit-learn: full mnist; quick digits
seeds = None  # seeds; each fixes rows, split, test rows and batches: full 0, 1, 2; quick 0, 1
rounds = None  # rounds T: full 300; quick 40
evaluate_every = None  # rounds between two evaluations: full 10; quick 4
clients = None  # clients: full 100; quick 10
batch = None  # rows of a client's minibatch: full 64; quick 16
rows = None  # training pictures of all clients, grey ones: full 20000; quick 1400; paper 60000
tested = None  # most test pictures: full 2000; quick 360; paper 10000
cifar_rows = None  # training pictures of CIFAR-10; 0: without CIFAR-10: full 10000; quick 0; paper 50000
most = None  # most generated rows of a client, a quarter of them for testing; 0: without: full 600; quick 0; paper 100000
lambdas = None  # grid of lambda_0: full 0.0001, 0.001, 0.01; quick 0.001, 0.01
rates = None  # grid of FedDR's step sizes on pictures: full 0.01, 0.05, 0.2; quick 0.05, 0.2
cifar_lambdas = [0.0001, 0.001]  # grid of lambda_0 on CIFAR-10
cifar_rates = [0.01, 0.05]  # grid of FedDR's step sizes on CIFAR-10
synthetic_rates = [0.05, 0.2, 1.0]  # grid of FedDR's step sizes on generated data
code_seeds = None  # seeds of the protocol behind the printed values: full 0, 1, 2; quick 0, 1
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %%
from fedlib import FedFWSto
from papers import STUDIES
from papers.fedfw.cells import COLUMNS_3, column_text, labels_of_cell
from papers.fedfw.tables.report import three_columns
from papers.kit import report, store
from papers.kit.claims import check
from papers.kit.display import displayed

page = STUDIES["fw_stochastic"].page(globals())

# %% [markdown]
# ## The experiment
#
# Changing this cell changes the results below; stored runs are loaded.

# %%
column = "mclr_pictures_iid"  # of Table 3
runs = {
    f"{column}_sto_lam{x:g}_only_seed{s}": FedFWSto(x, page.batch)
    for x in page.lambdas
    for s in page.seeds
}
traces = page.run(**runs)
numbers = page.numbers

# %% [markdown]
# ## Table 3
#
# The table shows test accuracies in %. Beside our values on MNIST are those printed for EMNIST-10. In non-IID data each
# client has three labels. In column (b), as in the authors' code, non-IID generated data instead have three classes in
# total.

# %% tags=["hide-input"]
displayed(three_columns(numbers, 3, "", page.pictures))

# %% [markdown]
# FedFW-sto minus FedDR on the same seeds, first by (a), then by (b):

# %% tags=["hide-input"]
def apart(protocol):
    """FedFW-sto minus FedDR, by the column in words."""
    minus = {"protocol": protocol, "method": "sto", "minus": "feddr"}
    return {column_text(c, page.pictures): {**labels_of_cell(c), **minus} for c in COLUMNS_3}


report.runs_table(page, apart("text"), {"accuracy": "final accuracy", "best": "best accuracy"})

# %% tags=["hide-input"]
report.runs_table(page, apart("code"), {"best": "best accuracy", "accuracy": "final accuracy"})

# %% [markdown]
# ## At the paper's scale
#
# With all rows of the same data sets, FedFW-sto minus FedDR is:

# %% tags=["hide-input"]
differences = {f"{text}, (a) text": labels for text, labels in apart("text").items()}
differences |= {f"{text}, (b) code": labels for text, labels in apart("code").items()}
at_paper = store.read_derived("fw_stochastic", "paper")
shown = {"accuracy": "final accuracy", "best": "best accuracy"}
report.runs_table(at_paper, differences, shown)

# %% tags=["nbval-check-output", "hide-input"]
inside = all(t.metrics["size"].max() <= 1 + 1e-5 for t in traces.values())
check("all models lie in their balls", inside)

# %% [markdown]
# ## Verdict
#
# The [claims page](../book/claims.md) states the rule behind each verdict. We judge only generated data and CIFAR-10,
# the four columns for which we have the paper's data.

# %%
report.claims_table(page)

# %% [markdown]
# ## What is shorter here, and what the paper leaves open
#
# | in the paper or its code | here |
# | --- | --- |
# | All pictures are used. | Each seed draws 20,000 pictures of MNIST and 10,000 of CIFAR-10. |
# | Test rows are the clients' own. | (a) tests on the first 2,000 of MNIST's test set, and on 2,000 training pictures of CIFAR-10 that no client has; (b) tests on a quarter of the clients' rows. |
# | Clients have unequal numbers of generated rows. | At most 600 each (parameter `most`). All seeds share one data set. |
# | The text does not state FedDR's parameters. | (a) has $\alpha=1$, $\eta=10$, and a step size chosen by training loss; (b) has the code's step size 0.05, $1/\eta=0.01$, and $\alpha=0.01$. |
# | In the code, FedFW-sto's clients may start from the global model. | In (a) and (b) the clients keep their models, as in the paper. |
# | The table shows the best over every round. | We show the best over every tenth round. |
#
# ```{provenance} fw_stochastic
# ```
#
# ```{notebook-links} fw_stochastic
# ```
