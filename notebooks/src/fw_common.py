# %% [markdown]
# # FedFW: FedDR's clients from one start
#
# **Question.** The [study of the authors' loop](fw_authors) gives every client of FedDR a random model of its own, and
# draws minibatches at random. In the authors' code one model is built, which every client copies, and a client walks
# through its minibatches in a fixed order. What of the printed values {cite}`dadras2024fedfw` comes out then?
#
# Of {result}`fw_common/tables_all.compared:.0f` printed values on generated data, {result}`fw_common/tables_all.same:.0f` lie
# within one point of ours and {result}`fw_common/tables_all.near:.0f` between one and three points away;
# {result}`fw_common/tables_all.meets:.0f` meet our intervals if one adds the uncertainty that the paper prints behind ±.
#
# Rows, loop and rounds are those of the other study. The rules were fixed before the splits of this page were drawn.

# %% tags=["parameters"]
profile = "full"  # "full": the authors' rows and loop; "quick": a few rounds of it
seeds = None  # seeds, which no run had before; each fixes a split: full 300 to 307; quick 0, 1
splits = ["iid", "classes"]  # columns: IID, and the three classes that are called non-IID
rounds = None  # rounds of FedFW in Tables 1 and 2, epochs: full 340; quick 3
feddr_rounds = None  # rounds of FedDR there, single minibatches: full 1000; quick 20
many_rounds = None  # rounds of FedFW-sto in Table 3, 100 users; 0: without: full 150; quick 0
many_feddr_rounds = None  # rounds of FedDR there: full 300; quick 20
device = "cpu"  # the authors' loop is plain Python
recompute = False  # compute even what is stored

# %%
from papers import STUDIES
from papers.fedfw.authors.loop import AuthorsFedDR, AuthorsFW
from papers.fedfw.authors.report import forensics
from papers.kit import report, store
from papers.kit.claims import check
from papers.kit.display import displayed
from papers.kit.rejudged import rejudged

page = STUDIES["fw_common"].page(globals())

# %% [markdown]
# ## The experiment

# %%
fw = AuthorsFW(0.001, ordered=True)
feddr = AuthorsFedDR(common=True, ordered=True)
cell = "mclr_iid_l2"  # logistic regression, ten classes, the l2 ball
traces = page.run(**{f"{cell}_fw_lam0.001": fw, f"{cell}_feddr": feddr})
numbers = page.numbers

# %% [markdown]
# ## What changes

# %% tags=["hide-input"]
rejudged(page, STUDIES["fw_authors"])

# %%
nets = {"mclr": "logistic regression", "dnn": "60-20-10"}
kinds = {"iid": "IID", "classes": "three classes"}
cells = {
    f"{norm}, {net}, {split}": f"{n}_{s}_{norm}_fw_minus_feddr"
    for norm in ("l2", "l1")
    for n, net in nets.items()
    for s, split in kinds.items()
}
cells |= {f"100 users, {split}": f"many_{s}_sto_minus_feddr" for s, split in kinds.items()}
report.runs_table(
    page,
    cells,
    {"best": "FedFW minus FedDR, best round", "accuracy": "FedFW minus FedDR, last round"},
)

# %% tags=["nbval-check-output"]
leads = [numbers[f"{cell}.best"] for cell in cells.values() if f"{cell}.best" in numbers]
check(
    "every lead is paired split by split",
    leads and all(len(lead.per_seed) == len(page.seeds) for lead in leads),
)

# %% [markdown]
# ## All printed values
#
# The columns are those of the [other study](fw_authors).

# %% tags=["hide-input"]
text = {**store.read_numbers("fw_stochastic"), **store.read_numbers("fw_tables")}
displayed(forensics(numbers, text, (1,)))

# %% tags=["hide-input"]
displayed(forensics(numbers, text, (2,)))

# %% tags=["hide-input"]
displayed(forensics(numbers, text, (3,)))

# %% [markdown]
# ## Verdicts
#
# The [claims page](../book/claims.md) shows the rules and runs behind these verdicts.

# %%
report.claims_table(page)

# %% [markdown]
# ```{provenance} fw_common
# ```
#
# ```{notebook-links} fw_common
# ```
