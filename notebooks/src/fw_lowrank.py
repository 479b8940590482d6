# %% [markdown]
# # The low-rank case
#
# **The book's result.** As the paper says, a message of FedFW is one entry for the $\ell_1$ ball, one pair of vectors
# for the nuclear-norm ball, and a row of signs for a box. For the nuclear-norm ball of matrices with 2000 rows and
# columns, a projection takes as long as {result}`fw_lowrank/clock_2000x2000.ratio:.0f` oracle calls, and a dense
# message is {result}`fw_lowrank/clock_2000x2000.shorter:.0f` times as long as a message of FedFW. For a matrix of 60 by
# 40, however, the projection is faster than the oracle.
#
# Frank-Wolfe methods suit sets whose linear minimization oracle (LMO) is cheap and whose extreme points are short
# messages. The textbook case is the nuclear-norm ball of matrices. Its oracle needs only the leading pair of singular
# vectors, which is also the whole message; a projection needs a full singular value decomposition. The paper on FedFW
# {cite}`dadras2024fedfw` names this case but has no experiment on it.

# %% tags=["parameters", "hide-input"]
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

# %% tags=["hide-input"]
from functools import partial

import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt

from fedlib import FedFW, L1Ball
from papers import STUDIES
from papers.fedfw.lowrank.problems import pictures_within
from papers.fedfw.lowrank.runs import DEFAULTS
from papers.fedfw.lowrank.watched import Watched
from papers.kit import plot, report
from papers.kit.claims import check

plot.theme()
page = STUDIES["fw_lowrank"].page(globals())

# %% [markdown]
# ## The experiment
#
# Changing this cell changes the results below.

# %%
problem = partial(pictures_within, convex_set=L1Ball(10.0), rows=page.pictures)
traces = page.run(problem, messages_l1=Watched(FedFW(0.01)))
numbers = page.numbers

# %% [markdown]
# ## What is in a message
#
# For every message of every client we count the nonzero entries and the bits. We also measure the ratio of the second
# singular value to the first (zero for rank one), the distance of the entries from the ends of a box, and the error
# after decoding.
#
# For the $\ell_1$ ball, the simplex, the box and the $\ell_2$ ball (whose messages have no short form), we train a
# linear model on digits with three labels a client. For the nuclear-norm ball, the problem is regression on generated
# data; the true matrix has low rank and lies on the boundary of the ball. Each column of the matrix is a task. All
# clients have rows of all tasks, but the standard deviations of the inputs differ between clients.

# %% tags=["hide-input"]
sets = {
    "l1 ball": "l1",
    "simplex": "simplex",
    "nuclear ball": "nuclear",
    "box": "box",
    "l2 ball": "l2",
}
runs = {title: f"messages_{name}" for title, name in sets.items()}
measures = {
    "entries": "entries of w",
    "fewest": "nonzero entries, fewest",
    "most": "nonzero entries, most",
    "second": "second singular value / first",
    "off": "distance from the box's ends",
    "wire": "error after decoding",
    "bits": "bits",
}
report.runs_table(page, runs, measures)


# %% tags=["hide-input", "nbval-check-output"]
def sends_one_entry(name):
    """Whether all messages of a set have one nonzero entry."""
    fewest = numbers[f"messages_{name}.fewest"].value
    most = numbers[f"messages_{name}.most"].value
    return fewest == most == 1


for title, name in sets.items():
    check(f"{title}: decoding loses nothing", numbers[f"messages_{name}.wire"].high <= 1e-4)
check(
    "l1 ball and simplex: a message has one entry",
    sends_one_entry("l1") and sends_one_entry("simplex"),
)
check("nuclear ball: a message has rank one", numbers["messages_nuclear.second"].high <= 1e-5)

# %% [markdown]
# ## How the two oracles grow
#
# For an $m\times m$ matrix, the work of the oracle with a fixed number of Lanczos steps grows like $m^2$, and the work
# of a projection like $m^3$. A dense message is about $m/2$ times as long as a rank-one message. The column *reached*
# shows the value that the oracle's answer attains as a share of the best value in the ball. The entries of the matrix
# are independent and normal, a hard case for Lanczos, because the largest singular values are close together.

# %%
clocks = page.curves(["shape"], DEFAULTS, kind="clock")
shape = clocks["shape"].str.split("x", expand=True).astype(int)
clocks["side"] = shape[0]
is_square = shape[0] == shape[1]
oracles = {"lmo": "LMO", "project": "projection by SVD"}
times = clocks[is_square].melt(["run", "side", "round"], list(oracles), "oracle", "seconds")
times["ms"] = 1e3 * times["seconds"]
times = plot.worded(times, oracle=oracles)
sides = times["side"].unique()
lengths = pd.DataFrame(
    {
        "side": sides,
        "rank one": 64e-6 * sides,
        "dense": 32e-6 * sides**2
    }
)
lengths = lengths.melt("side", var_name="message", value_name="Mbit")

figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.2), layout="constrained")
sns.lineplot(
    times,
    x="side",
    y="ms",
    hue="oracle",
    marker="o",
    estimator="median",
    errorbar=("pi", 100),
    ax=left,
)
sns.lineplot(lengths, x="side", y="Mbit", hue="message", marker="o", ax=right)
left.set_ylabel("CPU time in ms")
right.set_ylabel("message in Mbit")
for ax in (left, right):
    ax.set(xlabel="side of the square matrix", yscale="log")
    plot.log_ticks(ax, sides)
plot.show(
    figure,
    "clock",
    data=times,
    alt="Two panels against the side of a square matrix, all axes logarithmic. Left: CPU time of the oracle and of the "
    "projection, which is steeper. Right: the lengths of a rank-one and of a dense message, which diverge.",
    caption="For larger matrices, a projection takes longer relative to an oracle call, and a dense message is longer "
    "relative to a rank-one message. Left: CPU time of one call on one thread, median and range over "
    "the repetitions. Right: length of one message.",
)

# %% tags=["hide-input", "nbval-ignore-output"]
shapes = [(side, side) for side in page.sides]
shapes.append((page.rows, page.columns))
runs = {f"{rows} x {columns}": f"clock_{rows}x{columns}" for rows, columns in shapes}
measures = {
    "lmo": "time of LMO",
    "project": "time of projection",
    "ratio": "projection / LMO",
    "reached": "reached",
    "shorter": "length, dense / rank one",
}
report.runs_table(page, runs, measures)

# %% [markdown]
# ## Verdict
#
# The [claims page](../book/claims.md) states the rule behind the verdict on messages.

# %%
report.claims_table(page)

# %% [markdown]
# ## What to keep in mind
#
# The bits count uploads only. In every method the server sends the model of $m\times n$ entries, $32\,mn$ bits, to each
# client. With few clients, forwarding all their FedFW messages to each of them would take fewer bits.
#
# ```{provenance} fw_lowrank
# ```
#
# ```{notebook-links} fw_lowrank
# ```
