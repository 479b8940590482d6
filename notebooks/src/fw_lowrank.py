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
# # The low-rank case
#
# **Result.** A message of FedFW is one entry, one pair of vectors, or a row of signs, as the paper says. For a
# matrix with 2000 rows and columns a projection costs as much as
# {result}`fw_lowrank/clock_2000x2000.ratio:.0f` oracle calls, and a dense message is
# {result}`fw_lowrank/clock_2000x2000.shorter:.0f` times as long; a matrix of 60 by 40 is projected faster than its
# oracle answers.
#
# Frank-Wolfe methods are made for sets whose linear minimization oracle (LMO) is cheap and whose extreme points are short. The textbook case is the
# nuclear ball of matrices: its oracle needs the leading pair of singular vectors, which is also all that has to be sent, while a projection
# needs a full singular value decomposition. FedFW {cite}`dadras2024fedfw` names this case and has no experiment on it.
# Is a message of FedFW really one entry, one pair of vectors, or a row of signs? And from which size on is the oracle the cheaper one?

# %% tags=["parameters"]
profile = "full"  # "full" or "quick"
seeds = None  # seeds; each fixes the generated data: full 0 to 4; quick 0, 1
rounds = None  # rounds in which all messages are looked at: full 100; quick 3
clients = None  # clients N of the regression: full 10; quick 5
rank = None  # rank of the true matrix: full 3; quick 2
rows = None  # rows of the matrix: features: full 60; quick 12
columns = None  # columns of the matrix: tasks: full 40; quick 8
samples = None  # rows of a client: full 60; quick 20
lanczos = 15  # steps of Lanczos in the oracle
pictures = None  # digits in the other sets: full 1000; quick 100
sides = None  # sides of the square matrices that the oracles are timed on: full 100, 200, 500, 1000, 2000; quick 50, 100
repetitions = None  # repetitions of each timing: full 5; quick 2
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
from functools import partial

from fedlib import FedFW, L1Ball
from papers import STUDIES
from papers.fedfw.lowrank.problems import pictures_within
from papers.fedfw.lowrank.watched import Watched
from papers.kit import plot, report
from papers.kit.claims import check

page = STUDIES["fw_lowrank"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and what stands below changes with it. What is stored under its configuration is
# loaded, anything else is computed; the study's other runs repeat it with other values.

# %%
problem = partial(pictures_within, convex_set=L1Ball(10.0), rows=page.pictures)
traces = page.run(problem, messages_l1=Watched(FedFW(0.01)))
numbers, health = page.numbers, page.health

# %% [markdown]
# ## What is in a message
#
# Every message of every client of FedFW, looked at: entries that are not zero, the second singular value over the first, the distance of entries from the
# ends of a box, the bits that were counted, and what the wire format gives back. Digits and a linear model with three labels a client in the $\ell_1$ ball,
# the simplex, a box and the $\ell_2$ ball (which has no short form); in the nuclear ball regression on generated data, whose true matrix of low rank is on the
# boundary: every task is a column of it, every client has rows of all tasks, its inputs with deviations of its own.

# %% tags=["remove-input"]
kinds = {"l1 ball": "l1", "simplex": "simplex", "nuclear ball": "nuclear", "box": "box", "l2 ball": "l2"}
seen = {"entries": "entries of w", "fewest": "least that are not 0", "most": "most", "second": "second singular value", "off": "off a box's ends", "wire": "lost on the wire", "bits": "bits"}
report.runs_table(numbers, {text: f"messages_{s}" for text, s in kinds.items()}, seen, health)

# %% tags=["remove-input", "nbval-check-output"]
for text, s in kinds.items():
    check(f"{text}: nothing lost on the wire", numbers[f"messages_{s}.wire"].high <= 1e-4)
check("l1 ball and simplex: one entry", all(numbers[f"messages_{s}.{k}"].value == 1 for s in ("l1", "simplex") for k in ("most", "fewest")))
_ = check("nuclear ball: rank one", numbers["messages_nuclear.second"].high <= 1e-5)

# %% [markdown]
# ## How the two oracles grow
#
# With the side $m$ of a square matrix the oracle's work grows like $m^2$ for a fixed number of steps of Lanczos, the decomposition's work like $m^3$, and the ratio of a dense message to one of rank one like $m/2$. *Reached* is the value that the oracle's answer has as a share of the best,
# for a matrix of independent normal numbers, the hardest kind: its largest singular values are close together.

# %% tags=["remove-input"]
plot.show(
    page.figures["clock"](traces),
    alt="Two panels against the side of a square matrix, all axes logarithmic. Left: CPU time of the linear minimization oracle "
    "and of the projection; the curve of the projection is the steeper one. Right: length of a message of rank one and of a dense one, which diverge.",
    caption="A projection costs ever more oracle calls as matrices grow, and a dense message ever more "
    "short ones. CPU time of one call, median and range over the repetitions, one thread; and the"
    " length of one message.",
    size=(8.2, 3.2),
)

# %% tags=["remove-input", "nbval-ignore-output"]
squares = {f"{m} x {m}": f"clock_{m}x{m}" for m in page.sides}
squares |= {f"{page.rows} x {page.columns}": f"clock_{page.rows}x{page.columns}"}
report.runs_table(numbers, squares, {"lmo": "LMO", "project": "projection", "ratio": "projection / LMO", "reached": "reached", "shorter": "dense / rank one"}, health)

# %% [markdown]
# ## Verdict
#
# On the paper's claim about messages; the rule and the runs behind it are on the [claims page](../book/claims.md).

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% [markdown]
# ## What to keep in mind
#
# * The bits count uploads only. Downwards every method sends the model, $32\,mn$ bits a client; a server that forwards the
#   messages of FedFW would send less as long as there are few clients.
# * Seconds are CPU seconds of one thread on one machine, with nothing else running.
# * Lanczos stops after a fixed number of steps, so that an answer is a point of the set but not always the best one.
#
# ```{provenance} fw_lowrank
# ```
#
# ```{notebook-links} fw_lowrank
# ```
