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
# # Fair classification
#
# **Result.** The constraint is real (without it the gap is {result}`fairness/fedavg.g:.2f`), and every tuned
# method meets it at the price of one or two points of accuracy. Soft FedSGM has the smallest gap and not the
# smallest loss ({result}`fairness/soft.f:.3f`, hard {result}`fairness/hard.f:.3f`, tuned penalty
# {result}`fairness/penalty.f:.3f`), where the paper says better in both ({claim}`fedsgm/C22`). The paper's step
# size of $10^{-4}$, read as plain steps, keeps the constraint only because nothing is learned.
#
# The full paper's Figure 7 {cite}`fedsgm2025`: a network predicts from census data who earns more
# than 50,000 dollars {cite}`becker1996adult`, and its mean output must be the same for men and women up to
# $\epsilon=0.05$ (demographic parity). Ten clients of unequal size and unequal mixture, five a round,
# two minibatch steps each.
#
# The centralized methods have the faster loss, as the paper says; only under soft switching do they also show to be more conservative, and five seeds do not decide the rest. IPP ConEx is fast or slow in the loss, and ends near the level or far below it, depending on two step sizes that the paper does not print.

# %% tags=["parameters"]
profile = "full"  # "full": Adult, five seeds; "quick": a generated stand-in, two seeds, short sweeps
seeds = None  # seeds; each fixes start, partition and participants: full 0 to 4; quick 0, 1
sweep_seeds = None  # seeds of what the printed step size may mean: full 0, 1, 2; quick 0
fresh = None  # seeds that C30 and C33 alone are judged by: full 1000 to 1029; quick 1000 and 1001
rounds = None  # communication rounds T: full 500; quick 20
lr = None  # step size of all other runs: full 0.1; quick 0.3
tolerance = 0.05  # switching threshold and level of the gap, epsilon
beta = 40.0  # sharpness of soft switching
clients = 10  # clients N
participants = 5  # clients a round
alpha = 2.0  # concentration of the Dirichlet split
local_steps = 2  # local steps E, a minibatch each
batch = None  # rows of a client's minibatch; a centralized one has that of all participants: full 64; quick 16
central_values = None  # rows of a centralized method's batch for the gap: full 1024; quick 256
rhos = None  # penalties: full 0.1, 1, 10
duals = None  # dual steps of IPP ConEx: full 1, 10
conex_steps = None  # step sizes of its grid beside lr and duals; 0.3 with a dual step of 100 diverges: full 0.03, 0.03, 0.03, 0.1, 0.3, 0.3; quick 0.03
conex_duals = None  # the dual step of each: full 1, 10, 100, 100, 1, 10; quick 1
printed_lr = 0.0001  # the step size that the paper prints
epoch_steps = None  # local steps that are two epochs of a client of mean size: full 94; quick 4
many = None  # run the settings that the paper leaves open: full True; quick False
stand_in_rows = None  # 0: the official files of Adult; else that many generated rows: full 0; quick 2000
device = "auto"  # "auto", "cpu" or "cuda"
recompute = False  # compute even what is stored

# %% tags=["remove-input"]
from dataclasses import replace
from functools import partial

import torch

from fedlib import FedAvg, FedSGM, Hard, Soft
from fedlib.problems.fairness import combine_gaps
from papers import STUDIES
from papers.fedsgm.fairness import problem as adult
from papers.fedsgm.fairness.figures import source
from papers.kit import plot, report
from papers.kit.claims import check

page = STUDIES["fairness"].page(globals())

# %% [markdown]
# ## The experiment
#
# Change this cell, and what stands below changes with it. What is stored under its configuration is
# loaded, anything else is computed; the study's other runs repeat it with other values.

# %%
problem = partial(
    adult, clients=page.clients, alpha=page.alpha, stand_in_rows=page.stand_in_rows
)
work = {"lr": page.lr, "local_steps": page.local_steps}
work |= {"participants": page.participants, "batch_size": page.batch}
hard = FedSGM(**work, tolerance=page.tolerance, switch=Hard())
soft = replace(hard, switch=Soft(page.beta))
traces = page.run(problem, hard=hard, soft=soft, fedavg=FedAvg(**work))
numbers, health = page.numbers, page.health
print(source(traces))

# %% [markdown]
# The runs at chance are readings of the printed step size. They are shown below for what they are. One reading,
# two steps of Adam, is among the settings of {claim}`fedsgm/C22`; no other verdict rests on them.
#
# ## The problem
#
# $f_j$ is the mean cross-entropy over client $j$'s rows. The constraint is not a mean over clients:
# with $\pi(x;w)\in(0,1)$ the output and $\mathcal S$ the participants,
#
# $$
# \hat G(w)=\Big\lvert\frac1{m_1}\sum_{x\in\mathcal S,\,\text{men}}\pi(x;w)
# -\frac1{m_0}\sum_{x\in\mathcal S,\,\text{women}}\pi(x;w)\Big\rvert ,
# $$
#
# sums and counts over all rows of all participants together. Every participant sends four numbers (two
# sums, two counts), the server forms $\hat G$ and sends back the switching weight with the *sign* of
# what stands inside the bars; the clients' constraint function is then the signed gap. Averaging the
# clients' own gaps would be wrong, since gaps of opposite sign do not cancel then:

# %% tags=["remove-input", "nbval-check-output"]
answers = torch.tensor([[3.0, 4.0, 1.0, 4.0], [1.0, 4.0, 3.0, 4.0]])  # sum, count of men; of women
own = [combine_gaps(a.unsqueeze(0))[0] for a in answers]
check("two clients with gaps +0.5 and -0.5: their mean absolute gap is 0.5", sum(own) / 2 == 0.5)
_ = check("the pooled gap of the same two clients is 0", combine_gaps(answers)[0] == 0)

# %% [markdown]
# Two consequences. The pooled $g$ is no average of $g_j$, and an absolute value of a network's outputs
# is not convex, so none of the theorems applies to this figure as stated. And $f$ has two readings:
# the paper's, the mean of the *clients'* means, which federated methods minimize, and the mean over
# *rows*, which centralized ones do. With clients as unequal as these they differ: for
# hard FedSGM {result}`fairness/hard.f_clients:.3f` against {result}`fairness/hard.f:.3f`. Figures and
# tables show the mean over rows, so that all methods are measured by the same yardstick.

# %% [markdown]
# ## Figure 7
#
# Centralized methods have all rows in one place and take as many steps (two a round) on batches as
# large as those of all participants together; they look at a fresh batch for the gap at every step.
# IPP ConEx {cite}`boob2023stochastic`, which the paper names without settings, solves a sequence of proximal problems
# $\min f+\mu\lVert w-u\rVert^2$ subject to $g+\mu\lVert w-u\rVert^2\le\epsilon$; inside, a multiplier $y$ is
# raised along an *extrapolated* linear model of the constraint and the model steps along
# $\nabla f+y\nabla g$. The paper overlays centralized and federated curves; here each kind has a row. It is one of the double-loop baselines of {cite}`huang2023oracle`.

# %% tags=["remove-input"]
plot.show(
    page.figures["figure_7"](traces),
    alt="Four panels against rounds. Above, federated: the losses of hard and soft FedSGM and of the "
    "tuned penalty fall together to about 0.36, that of FedAvg without constraint lower; FedAvg's gap "
    "soon leaves the frame, those of the others are ragged and mostly below the level, soft "
    "lowest. Below, centralized and dashed: the same losses with thin bands, gaps of hard, soft and "
    "penalty below the level, soft lowest, and the two IPP ConEx curves, slower in the loss, at the level.",
    caption="Without the constraint the gap is large; every tuned method meets the level, soft switching "
    "with the smallest gap and not the smallest loss. Mean over the seeds and one standard "
    "deviation. Federated solid, centralized dashed. The gap without constraint leaves the frame.",
    size=(8.6, 5.4),
)

# %% tags=["remove-input"]
labels = {"FedAvg, no constraint": "fedavg", "FedSGM hard": "hard", "FedSGM soft": "soft"}
labels |= {f"penalty {r:g}": f"penalty_rho{r:g}" for r in page.rhos}
labels |= {"centralized hard": "central_hard", "centralized soft": "central_soft"}
labels |= {f"centralized penalty {r:g}": f"central_penalty_rho{r:g}" for r in page.rhos}
labels |= {f"IPP ConEx, dual step {d:g}": f"conex_dual{d:g}" for d in page.duals}
training = {"f": "late f", "g": "late g", "mean_f": "mean f", "oscillation": "oscillation of g"}
training |= {"test_accuracy": "test accuracy"}
report.runs_table(numbers, labels, training, health)

# %% [markdown]
# *Late* is the mean over the last fifth of the rounds, evaluated exactly on all training rows every
# tenth round; *mean f* the mean loss over all evaluated rounds, lower where the loss falls faster; *oscillation* the
# mean change of $g$ between two evaluations in the second half, in thousandths. That soft switching is the
# stablest of the federated methods ({claim}`fedsgm/C33`) shows on thirty fresh seeds, where these oscillate by
# {result}`fairness/fresh_soft.oscillation:.0f` (soft), {result}`fairness/fresh_hard.oscillation:.0f` (hard) and
# {result}`fairness/fresh_penalty.oscillation:.0f` (tuned penalty). No choice used the test rows; the larger class alone gives an accuracy of {result}`fairness/majority:.3f`.
#
# IPP ConEx has two step sizes that the paper does not print. Over a small grid of them (at step 0.3 a dual step
# of 100 diverges) it ends anywhere between near the level and far below it, fast or slow. A row is named by its step
# and its dual step.

# %% tags=["remove-input"]
grid = {(page.lr, dual): f"conex_dual{dual:g}" for dual in page.duals}
more = zip(page.conex_steps, page.conex_duals, strict=True)
grid |= {(lr, dual): f"grid_conex_lr{lr:g}_dual{dual:g}" for lr, dual in more}
settings = {f"{lr:g} and {dual:g}": run for (lr, dual), run in sorted(grid.items())}
ends = {"f": "late f", "g": "late g", "mean_f": "mean f", "test_accuracy": "test accuracy"}
report.runs_table(numbers, settings, ends, health)

# %% [markdown]
# No setting of the grid has a smaller mean gap than centralized
# soft switching ({result}`fairness/central_soft.g:.3f`). That ConEx is the most conservative
# ({claim}`fedsgm/C32`) is judged on every setting that trains, and undecided: the gap of the setting with the largest
# dual step, {result}`fairness/grid_conex_lr0.1_dual100.g:.3f`, cannot be told from soft switching's with five seeds.

# %% [markdown]
# ## Loss against gap, and the penalty's sensitivity

# %% tags=["remove-input"]
plot.show(
    page.figures["trade_off"](traces),
    alt="Two scatters of late gap against late loss, a point a seed; the right one enlarges the part "
    "below the level. Penalty 0.1 lies at three times the level and the smallest losses, federated "
    "penalty 10 far below the level at the largest. Between them centralized hard, soft and penalty 1 lie "
    "leftmost in tight clusters, federated hard and soft to their right, and IPP ConEx at the level.",
    caption="Soft switching buys its smaller gap with a larger loss; the penalty is right only near one "
    "of its values. One point a seed. Circles: FedSGM. Crosses: penalties. Squares and diamonds: "
    "centralized. Triangles: IPP ConEx.",
    size=(9.4, 4.0),
)

# %% [markdown]
# The penalty is tuned by a written rule on training curves alone: the smallest mean late $f$ among those
# with mean late $g\le1.05\,\epsilon$. That picks $\rho=$ {result}`fairness/penalty.rho:.0f`. A penalty
# ten times smaller is infeasible on {result}`fairness/penalty_rho0.1.infeasible:.0%` of the seeds, one ten times
# larger raises the loss from {result}`fairness/penalty.f:.3f` to {result}`fairness/penalty_rho10.f:.3f`.
#
# ## What a step size of $10^{-4}$ can mean
#
# The paper states $E=2$ and $\eta=10^{-4}$. Read as two minibatch steps that is a thousand steps of
# $10^{-4}$, and the network stays where it starts: with a gap near zero, hence always feasible, and
# with an accuracy of {result}`fairness/hard_lr0.0001.test_accuracy:.2f`, far below that of the larger
# class alone. A small gap is worth nothing unless the accuracy is above that of the larger class. All figures
# use 0.1.
#
# Three other readings have the same two numbers: Adam in place of plain gradient steps, two *epochs* in
# place of two steps (as many minibatches as two epochs of a client of mean size have), and both.

# %% tags=["remove-input"]
readings = {"2 steps": "lr0.0001", "2 epochs": "epochs", "2 Adam steps": "adam"}
readings |= {"2 Adam epochs": "adam_epochs", "2 Adam epochs, each client's own sign": "adam_epochs_client"}
learned = {"f": "late f", "g": "late g", "test_accuracy": "test accuracy"}
meant = {f"{r}: {m}": f"{m}_{a}" for r, a in readings.items() for m in ("fedavg", "hard", "soft")}
report.runs_table(numbers, meant, learned, health)

# %% [markdown]
# No reading gives both things that Figure 7 shows, a network that learns and a level that both modes of FedSGM meet (three seeds each; the intervals are wide). *Two steps of Adam* comes
# nearest: both modes keep the level, and the network is on its way, but 500 rounds of such steps do not bring
# it far above the larger class. *Two epochs* of plain steps are still too short for the constraint to
# matter. *Two epochs of Adam* train the network well without the constraint and break with it: hard FedSGM ends at a gap of
# {result}`fairness/hard_adam_epochs.g:.2f`, no smaller than without any constraint
# ({result}`fairness/fedavg_adam_epochs.g:.2f`).
#
# What breaks them is that the sign of the gap is fixed for a round: in 94 steps
# the clients can carry the gap through zero and far out on the other side, and the next round carries it back. If every client
# follows the sign of its own minibatch instead, hard FedSGM ends at a gap of
# {result}`fairness/hard_adam_epochs_client.g:.3f` and soft at {result}`fairness/soft_adam_epochs_client.g:.3f`,
# though at losses of {result}`fairness/hard_adam_epochs_client.f:.2f` and
# {result}`fairness/soft_adam_epochs_client.f:.2f`. Long local work and a switch that is fixed for the
# round do not go together here.

# %% tags=["remove-input", "nbval-check-output"]
level, late = 1.05 * page.tolerance, {m: numbers[f"{m}.g"].value for m in traces if f"{m}.g" in numbers}
smallest, largest = (f"penalty_rho{pick(page.params['rhos']):g}" for pick in (min, max))
check("without the constraint the mean late gap exceeds twice the level", late["fedavg"] > 2 * level)
check("mean late gap of hard and of soft at most 1.05 epsilon", max(late["hard"], late["soft"]) <= level)
check("mean late gap of soft below that of hard", late["soft"] < late["hard"])
check("smallest penalty ends above the level, largest below", late[smallest] > level > late[largest])
slow = [numbers[f"{m}_lr{page.printed_lr:g}.test_accuracy"].value for m in ("hard", "soft", "fedavg")]
check("at step 1e-4 no mean late test accuracy is 0.005 above the majority's", max(slow) < numbers["majority"].value + 0.005)
_ = check("hard FedSGM's mean late test accuracy is 0.02 above the majority's", numbers["hard.test_accuracy"].value > numbers["majority"].value + 0.02)

# %% [markdown]
# ## Verdicts
#
# The paper says several things of this figure in one paragraph; each is a claim of its own. The rule of
# each and the runs behind it are on the [claims page](../book/claims.md). Runs on the generated
# stand-in are never judged.

# %% tags=["remove-input"]
report.claims_table(page.study, traces, numbers, page.params)

# %% [markdown]
# ## What the paper leaves open
#
# | open in the paper | chosen here |
# | --- | --- |
# | preprocessing | `fnlwgt` and `education` dropped, rows with missing values removed (30,162 training and 15,060 test rows), five z-scored numbers and one-hot columns of seven categories: 87 columns |
# | protected group | sex |
# | network | 87-64-32-1 with ReLU, sigmoid output; the output enters the loss and the gap |
# | "Dirichlet, 2.0" | every (label, group) cell is dealt out to the clients by its own Dirichlet(2) shares |
# | $E=2$, $\eta=10^{-4}$ | two minibatch steps of 64 rows, step 0.1 (see above) |
# | value for switching | all rows of the participants; where outputs have standard deviation $s$, the gap of a batch of 64 (43 men, 21 women) has $s\sqrt{1/43+1/21}=0.27\,s$: with $s=0.2$ as much as the level |
# | sign of $\nabla g_j$ | that of the pooled gap |
# | IPP ConEx | 100 inner steps, proximal weight 0.05 on both, primal step 0.1, dual steps 1 and 10 in the figure; its grid is above |
#
# ```{provenance} fairness
# ```
#
# ```{notebook-links} fairness
# ```
