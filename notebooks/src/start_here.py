# %% [markdown]
# # Start here
#
# This tutorial is an introduction for beginners. It takes about twenty minutes.
#
# **Prerequisites.** You know Python and what a gradient is. You need no constrained optimization.
#
# *Federated learning* means that many clients train one model together while their data stay with them: a server sends
# them the model, they send back what to change.
#
# Ten people look for a place to meet. Each has two points on a map, a home and a workplace, and tells nobody where they
# are. This toy problem has everything that the papers of this book are about: a constraint, several objectives, short
# messages, absent clients, and a set with corners. All code that makes the pictures is on the page. To try other
# numbers, open the page as a notebook and change them in the next cell, or run for example
# `make notebook NAME=start_here ARGS="-p profile full -p sharpness 20.0"`.

# %% tags=["parameters"]
profile = "full"  # the quick profile is the same
seed = 0  # of the ten people's homes and workplaces, and of the random choices
rounds = 150  # communication rounds
lr = 0.08  # step size
tolerance = 0.3  # epsilon: a constraint g counts as met up to this number
sharpness = 6.7  # beta, the slope of soft switching; the theorems ask for at least 2 / tolerance

# %% [markdown]
# ## The plain average violates the constraint
#
# Client $j$ has the home $a_j$ and the workplace $b_j$, both in $\mathbb R^2$. The model $w\in\mathbb R^2$ is the place
# to meet. It should be near the homes, and it *must* be near the workplaces:
#
# $$
# \begin{aligned}
# \text{minimize}\quad f(w)&=\frac1N\sum_{j=1}^N\tfrac12\lVert w-a_j\rVert^2\\
# \text{subject to}\quad g(w)&=\frac1N\sum_{j=1}^N\tfrac12\lVert w-b_j\rVert^2-c\le0 .
# \end{aligned}
# $$
#
# The number $c$ is `limit` in the code. We choose it so that $g(w)=\frac12\lVert w-\bar b\rVert^2-\frac12$, where $\bar b$
# is the mean of the workplaces. So all models with $g(w)\le\epsilon$ form a disc around $\bar b$. Eight people live and
# work in two neighbouring quarters, two far out.

# %% tags=["nbval-check-output"]
import torch

import fedlib as fl
from fedlib import problems
from papers.kit import plot  # the book's style for pictures

torch.set_default_dtype(torch.float64)
random = torch.Generator().manual_seed(seed)
far_out = torch.zeros(10, 2)
far_out[:2] = torch.tensor([1.5, 2.0])
homes = far_out + torch.tensor([1.2, 0.6]) + 0.3 * torch.randn(10, 2, generator=random)
works = far_out - torch.tensor([0.4, 0.4]) + 0.3 * torch.randn(10, 2, generator=random)
start = torch.tensor([-1.5, 1.6])


def losses(w, places):
    """Half the squared distance to every place."""
    return 0.5 * ((w - places) ** 2).sum(-1)


level = 0.5
limit = level + losses(works.mean(0), works).mean()


def g(w):
    return losses(w, works).mean() - limit


print(f"g at the mean of the homes: {g(homes.mean(0)):.2f}")

# %% [markdown]
# Every picture shows the map at the left, with the models of all rounds as dots, and the constraint at the right. The
# dotted lines are where $g(w)=\epsilon$.

# %% tags=["hide-input"]
RED = "#d62728"
COLORS = {"hard": plot.COLORS[0], "soft": plot.COLORS[1]}


def colors_of(paths):
    """A color for every path; those of hard and soft switching are the same in all pictures."""
    return {name: COLORS.get(name, plot.COLORS[k]) for k, name in enumerate(paths, start=2)}


def draw_map(ax, paths):
    ax.plot(*homes.T, "^", color="gray", label="homes")
    ax.plot(*works.T, "s", color="gray", fillstyle="none", label="workplaces")
    ax.legend(loc="best")
    for name, color in colors_of(paths).items():
        ax.plot(*paths[name].T, ".-", markersize=3, linewidth=0.8, color=color, label=name)
    ax.set(aspect="equal", title="the map")


def pictures(paths, window=None):
    fig = plot.figure()
    left, right = fig.subplots(1, 2)
    draw_map(left, paths)
    angle = torch.linspace(0, 2 * torch.pi, 100)
    circle = torch.stack([angle.cos(), angle.sin()])
    border = (
        works.mean(0)[:, None] + (2 * (level + tolerance)) ** 0.5 * circle
    )  # where g = tolerance
    left.plot(*border, ":", color=RED)
    left.set(xlim=window, ylim=window)
    for name, color in colors_of(paths).items():
        right.plot([g(w) for w in paths[name]], color=color, label=name)
    right.axhline(tolerance, linestyle=":", color=RED)
    right.set(title="the constraint g", xlabel="round", ylim=(-0.5, 1.8))
    right.legend(loc="upper right")
    return fig


# %% [markdown]
# In *federated averaging* ([FedAvg](../book/api.md)) the server sends $w$ to all clients. Client $j$ takes a gradient
# step from $w$ on its own function and sends back the result. The server averages the results. Nobody sends a home or a
# workplace. Below, `share` decides on which function the clients take their step: with weight $1-\sigma$ on the
# objective, whose gradient at client $j$ is $w-a_j$, and with weight $\sigma$ on the constraint, whose gradient is
# $w-b_j$. Federated averaging knows no constraint: its $\sigma$ is 0.


# %%
def run_by_hand(share):
    w = start
    path = [w]
    for _ in range(rounds):
        sigma = share(g(w) - tolerance)
        gradients = (1 - sigma) * (w - homes) + sigma * (w - works)
        sent = w - lr * gradients  # a row for each client
        w = sent.mean(0)
        path.append(w)
    return torch.stack(path)


average = run_by_hand(lambda _: 0)
plot.show(
    pictures({"plain average": average}),
    caption="Federated averaging ends at the mean of the homes, outside of the dotted"
    " circle. There the constraint is violated: at the right, the curve ends "
    "above the tolerance (dotted).",
    alt="Left: a path from the upper left to the mean of the homes, outside of a "
    "dotted circle around the workplaces. Right: the constraint falls below "
    "the dotted line and rises above it again, where it stays.",
)

# %% [markdown]
# **Question.** Would more rounds, or a smaller step size, help?
#
# ```{admonition} Answer
# :class: dropdown
# No. The average of the clients' steps is a step towards the mean of the homes, and this point violates the constraint.
# Something must push back when $g$ is too large.
# ```

# %% [markdown]
# ## Hard switching zigzags
#
# Before each round, every client sends one more number, the value $g_j(w)$ of its constraint. *Hard switching* looks at
# the mean: if $g(w)>\epsilon$, all clients step on the constraint in this round ($\sigma=1$), otherwise on the objective
# ($\sigma=0$).

# %%
hard = run_by_hand(lambda excess: 1.0 if excess > 0 else 0.0)
second_half = hard[rounds // 2 :]
values = torch.stack([g(w) for w in second_half])
print(f"g in the second half: from {values.min():.2f} to {values.max():.2f}")
print(f"rounds above the tolerance: {(values > tolerance).double().mean():.0%}")
middle = second_half.mean(0)
to_homes = (middle - homes.mean(0)).norm()
to_works = (middle - works.mean(0)).norm()
share = to_homes / (to_homes + to_works)
print(f"share of the objective's gradient in the length of both: {share:.0%}")
plot.show(
    pictures({"plain average": average, "hard": hard}, window=(0.3, 1.5)),
    caption="Hard switching follows the border of the circle in zigzags, and crosses "
    "it again and again to the end. The map shows the part around this "
    "border.",
    alt="Left: the path of hard switching follows the circle in zigzags, towards "
    "the homes. Right: the constraint jumps up and down across the dotted "
    "line to the last round.",
)

# %% [markdown]
# No step vanishes: at the border, the gradient of $f$ points outwards and that of $g$ points inwards, and a round uses
# one of them in full. So the model crosses the border again and again. The theorems on hard switching therefore speak
# of an *average* of the models in the rounds that step on the objective ([proof](note_hard_switching.ipynb)).
#
# **Question.** What happens to the zigzags if the step size is halved?
#
# ```{admonition} Answer
# :class: dropdown
# They become about half as high, because each step is half as long, but they do not end. The share of rounds above the
# tolerance stays about the same: the steps inwards and outwards must cancel in the long run, so this share is
# $\lVert\nabla f\rVert/(\lVert\nabla f\rVert+\lVert\nabla g\rVert)$ at the point where the zigzags end, whatever
# the step size.
# ```

# %% [markdown]
# ## Soft switching settles, and we can say where
#
# *Soft switching* mixes both gradients. Their weight rises along a ramp, with the slope $\beta$ (the *sharpness*):
#
# $$
# \sigma=\min\{1,\max\{0,\,1+\beta\,(g(w)-\epsilon)\}\}.
# $$
#
# At rest the mean of the clients' steps is zero. With $\bar a$ and $\bar b$ for the means of homes and workplaces, and
# $s=1-\sigma$ for the share of the objective, this reads
#
# $$
# s\,(w-\bar a)+(1-s)\,(w-\bar b)=0 .
# $$
#
# Hence $w=s\,\bar a+(1-s)\,\bar b$: the model rests on the line between both means. On the ramp $1-s=1+\beta(g-\epsilon)$, hence $g=\epsilon-s/\beta$:
# **soft switching settles below the tolerance, by $s/\beta$**. In our problem $g(w)=\frac12s^2D^2-\frac12$ with
# $D=\lVert\bar a-\bar b\rVert$. Both expressions for $g$ together are a quadratic equation for $s$. The cell solves it
# and compares the solution with the run.

# %% tags=["nbval-check-output"]
soft = run_by_hand(lambda excess: (1 + sharpness * excess).clamp(0, 1))
D = (homes.mean(0) - works.mean(0)).norm()
root = (1 / sharpness**2 + 2 * D**2 * (level + tolerance)).sqrt()
s = (root - 1 / sharpness) / D**2
predicted = s * homes.mean(0) + (1 - s) * works.mean(0)
print(f"share of the objective at rest: {s:.2f}")
print(f"g at rest, by the formula: {tolerance - s / sharpness:.3f}")
print(f"g at rest, of the run: {g(soft[-1]):.3f}")
print("it ends at the predicted place:", torch.allclose(soft[-1], predicted, atol=1e-4))

# %%
plot.show(
    pictures({"hard": hard, "soft": soft}, window=(0.3, 1.3)),
    caption="Soft switching comes to rest inside of the circle, below the tolerance. "
    "Hard switching stays on the border.",
    alt="Left: the path of soft switching ends at a point a little inside of the "
    "circle, that of hard switching on the border. Right: under soft "
    "switching the constraint becomes constant below the dotted line.",
)

# %% [markdown]
# Soft switching pays for the rest: it keeps away from the border, so its objective is larger than under hard switching.
# A larger $\beta$ lowers this price, since $s/\beta$ shrinks. But the ramp may also be too steep. Near the rest point,
# a round multiplies the distance along the line between $\bar a$ and $\bar b$ by $1-\eta\,(1+\beta sD^2)$, where $\eta$
# is the step size. If $\eta\,(1+\beta sD^2)>2$, the distance grows: soft switching zigzags, as hard switching does. The
# cell computes the sharpness at which this begins, and tries one below and one above.

# %% tags=["nbval-check-output"]
k = 2 / lr - 1  # at the border, beta s D^2 = k
steepest = (k * (k / 2 + 1) / (level + tolerance)) ** 0.5 / D
below = run_by_hand(lambda excess: (1 + 0.8 * steepest * excess).clamp(0, 1))
above = run_by_hand(lambda excess: (1 + 2.0 * steepest * excess).clamp(0, 1))
print(f"it begins at the sharpness {steepest:.1f}")
for name, path in {"0.8 times": below, "twice": above}.items():
    rests = (path[-1] - path[-2]).norm().item() < 1e-4
    print(f"it rests with {name} this sharpness: {rests}")

# %%
plot.show(
    pictures({"0.8 times the sharpness": below, "twice the sharpness": above}, (0.3, 1.3)),
    caption="Soft switching with a sharpness below the computed one comes to rest; "
    "above it, the model zigzags.",
    alt="Left: two paths along the border of the circle, one smooth and one in "
    "zigzags. Right: one curve becomes constant below the dotted line, the "
    "other jumps up and down to the end.",
)

# %% [markdown]
# **Question.** With a smaller step size, may the ramp be steeper? What would you choose, then, if the constraint should
# be used up to the tolerance?
#
# ```{admonition} Answer
# :class: dropdown
# Yes. For a small step size $\eta$ the steepest $\beta$ is about $\sqrt2/(\eta D\sqrt{1/2+\epsilon})$, so it grows
# like $1/\eta$. A small step with a large $\beta$ settles just below the tolerance, and needs more rounds. Without
# such care a large $\beta$ is hard switching: the ramp becomes a step.
# ```

# %% [markdown]
# ## Fewer bits
#
# From here on we use the library. Its method FedSGM, the *federated switching gradient method*
# {cite}`upadhyay2025switching,fedsgm2025`, is what we did by hand:

# %% tags=["nbval-check-output"]
from dataclasses import replace

problem = replace(problems.quadratics(homes, works, level=level), w0=start)
method = fl.FedSGM(
    lr=lr, local_steps=1, participants=10, tolerance=tolerance, switch=fl.Soft(sharpness)
)


def path_of(method, problem, rounds=rounds):
    path = []

    def remember(_round, _metrics, state):
        path.append(state.w[0, 0].clone())

    fl.run(method, problem, rounds=rounds, seeds=seed, progress=False, callback=remember)
    return torch.stack(path)


same = torch.allclose(path_of(method, problem)[:20], soft[:20])
print("the library makes the same first steps:", same)

# %% [markdown]
# Models have millions of parameters, and uplinks are slow. *Top-K* sends only the K entries of largest magnitude, here
# one of two. Without a memory, a client whose north-south entry is always the smaller one never sends it.
# *Error feedback* is this memory: a client adds what it did not send to its next message.

# %% tags=["nbval-check-output"]
top = replace(method, uplink=fl.TopK(0.5), error_feedback=False)
feedback = replace(top, error_feedback=True)
methods = {"soft": method, "Top-K alone": top, "Top-K with feedback": feedback}
paths = {name: path_of(m, problem) for name, m in methods.items()}
for name, path in paths.items():
    excess = losses(path[-1], homes.mean(0))
    bits = methods[name].uplink.bits(2)
    print(f"{name}: {bits} bits a message; f ends {excess:.2f} above its smallest value")

# %%
plot.show(
    pictures(paths, window=(0.3, 1.3)),
    caption="With one of two entries a message, Top-K alone rests at a wrong place. "
    "With error feedback it hovers around the place where soft switching with"
    " all entries rests.",
    alt="Left: three paths; those of soft switching and of Top-K with feedback "
    "end at nearly the same point, that of Top-K alone beside it. Right: the "
    "constraint of all three ends below the dotted line.",
)

# %% [markdown]
# **Question.** Every message has the larger of its two entries. Why does the place to meet move nevertheless?
#
# ```{admonition} Answer
# :class: dropdown
# At rest the clients' messages must cancel, not their directions. The two clients far out pull hard, and of their pull
# only the larger entry arrives. The others pull back with entries that do arrive. So the messages cancel where the
# directions do not. Error feedback makes the sum of a client's messages equal to the sum of its directions, up to the
# memory, which stays bounded. Hence over many rounds the directions cancel, too
# ([proof](note_compression.ipynb)).
# ```

# %% [markdown]
# ## Half of the clients
#
# Phones are switched off. In every round the server draws five of the ten clients, and knows their constraints only.

# %% tags=["nbval-check-output"]
half = replace(method, participants=5)
careful = replace(half, lr=lr / 4)
methods = {"soft": method, "half": half, "half, small step": careful}
paths = {name: path_of(m, problem, rounds=4 * rounds) for name, m in methods.items()}

at_rest = paths["soft"][-1]
g_j = losses(at_rest, works) - limit  # of every client
readings = torch.combinations(g_j, 5).mean(1)  # what the server may read, for every draw
sigma = method.switch(g(at_rest) - tolerance)
mean_sigma = method.switch(readings - tolerance).mean()
print(f"sigma at rest: {sigma:.2f}; its mean over all draws: {mean_sigma:.2f}")
for name, path in paths.items():
    late = path[2 * rounds :]
    values = torch.stack([g(w) for w in late])
    f = losses(late, homes.mean(0)).mean()
    print(
        f"{name}: g {values.mean():.2f} (deviation {values.std():.2f}), f {f:.2f} above its least"
    )

# %%
plot.show(
    pictures(paths, window=(0.3, 1.3)),
    caption="With half of the clients a round, the model never rests. A smaller step "
    "size calms it, and makes it slower.",
    alt="Left: three paths; with all clients the path ends at a point, with half "
    "of them it wanders around, and with a smaller step size it wanders less."
    " Right: the constraint of the last two fluctuates.",
)

# %% [markdown]
# Two things are lost. The steps differ with the clients drawn, so the model wanders; a smaller step size averages over
# more draws. And the server switches on a wrong value of $g$. This second loss does not vanish with the step size: the
# ramp bends at both ends, so the mean of $\sigma$ over all draws, which the cell computes, is not $\sigma$ at the mean.
# Here it is larger, and the model rests nearer to the workplaces, at a larger objective.
#
# **Question.** If only half of the clients take part, should $\beta$ be larger or smaller?
#
# ```{admonition} Answer
# :class: dropdown
# Smaller. On a flat ramp fewer draws end where it bends, and between the bends the mean of $\sigma$ over the draws *is*
# $\sigma$ at the mean. The price is a rest point further below the tolerance, by $s/\beta$. FedSGM's
# [chapter](../book/fedsgm/index.md) finds the same on real data.
# ```

# %% [markdown]
# ## Two objectives in place of one
#
# Now nobody sets a limit: the place should be near the homes *and* near the workplaces. A model is *Pareto optimal* if
# no other is better for one objective without being worse for another. Let $d_1$ and $d_2$ be the gradients of both
# objectives at $w$, averaged over the clients. All weighted means of them form their *convex hull*, a line segment.
# Its shortest vector $d$ has a nice property: a small step along $-d$ lowers *both* objectives, since
# $\langle d_k,d\rangle\ge\lVert d\rVert^2$ for both $k$.

# %% tags=["nbval-check-output"]
w = torch.tensor([-0.6, 1.4])
d1 = w - homes.mean(0)
d2 = w - works.mean(0)
difference = d2 - d1
weight = (difference @ d2) / (difference @ difference)
weight = weight.clamp(0, 1)
d = weight * d1 + (1 - weight) * d2
print(f"weights: {weight:.2f} for the homes, {1 - weight:.2f} for the workplaces")
print("both objectives fall along -d:", bool(d1 @ d > 0 and d2 @ d > 0))


# %%
def draw_arrow(ax, start, vector, color, label):
    ax.quiver(
        *start,
        *vector,
        color=color,
        label=label,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.007,
    )


fig = plot.figure((5.0, 3.2))
ax = fig.subplots()
draw_arrow(ax, w, -d1, plot.COLORS[2], "$-d_1$ (homes)")
draw_arrow(ax, w, -d2, plot.COLORS[3], "$-d_2$ (workplaces)")
draw_arrow(ax, w, -d, plot.COLORS[4], "$-d$")
ends = torch.stack([w - d1, w - d2])
ax.plot(*ends.T, "--", color="gray", label="ends of weighted means")
ax.set(aspect="equal", xlim=(-0.9, 2.4), ylim=(-0.3, 1.6))
ax.legend(loc="lower right")
plot.show(
    fig,
    caption="Three ways down from one place to meet: the steepest for either "
    "objective, and their shortest weighted mean, which leads down for both.",
    alt="Two arrows from one point to the two ends of a dashed segment, and a "
    "third, shorter one that meets the segment at a right angle.",
)

# %% [markdown]
# FedCMOO, *federated communication-efficient multi-objective optimization* {cite}`askin2025fedcmoo`, steps along this
# direction. The server needs only the products $\langle d_k,d_l\rangle$, which it estimates from compressed gradients.
# In the method that FedCMOO is compared with, FSMGDA (*federated stochastic multi-gradient descent averaging*)
# {cite}`yang2023fsmgda`, a client sends an update for every objective. Beside the shortest vector, we try a plain
# average of both losses. In the second run of each, the distances to workplaces are measured in other units.

# %%
points = torch.stack([homes, works], 1).unsqueeze(1)  # [clients, 1 row, 2 objectives, 2]
units = torch.tensor([[1.0, 1.0], [5.0, 5.0]])
plain_units = problems.pareto(points, w0=start)
scaled_units = problems.pareto(points, units, w0=start)
plain = fl.Scalarized(lr=lr, local_steps=1, participants=10)
hull = fl.FedCMOO(lr=lr, local_steps=1, participants=10, weights=fl.MinNorm())
paths = {
    "plain average": path_of(plain, plain_units),
    "shortest vector": path_of(hull, plain_units),
    "average, other units": path_of(plain, scaled_units),
    "shortest, other units": path_of(hull, scaled_units),
}

fig = plot.figure((5.0, 4.0))
ax = fig.subplots()
draw_map(ax, paths)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
plot.show(
    fig,
    caption="All four runs end on the segment between both means, whose points are "
    "the Pareto optimal models. Where they end depends on the weights and on "
    "the units.",
    alt="Four paths from the upper left to different points of the segment "
    "between the means of homes and workplaces.",
)

# %% [markdown]
# **Question.** In other units, the shortest vector ends at the homes, although the losses of the workplaces count five
# times. Why?
#
# ```{admonition} Answer
# :class: dropdown
# Five times the loss has five times the gradient. The shortest vector of the hull lies near the *shorter* of the two
# gradients, which is now that of the homes. A plain average does the opposite: it follows the longer gradient. So with
# losses of different scale neither is neutral; `problem.scaled()` brings all losses to one scale first.
# ```

# %% [markdown]
# ## A set with corners
#
# The last demand: the place must be at most one kilometre from the station, along streets that run north-south or
# east-west. All such places form a diamond. *Frank-Wolfe methods* stay inside without ever projecting onto the set: they
# ask for the corner that lies furthest down the gradient, and move a share $\eta$ of the way to it. A corner is a short
# message.

# %% tags=["nbval-check-output"]
station = torch.tensor([1.2, 0.6])
near = homes - station  # positions seen from the station
diamond = fl.L1Ball(1.0)
w = torch.tensor([-0.3, -0.4])
gradients = w - near  # a row for each client
corner = diamond.lmo(gradients.mean(0))
eta = 0.4
next_model = w + eta * (corner - w)
print(f"the corner {corner.tolist()} takes {diamond.wire(2).bits(2)} bits")
own_corners = torch.stack([diamond.lmo(gradient) for gradient in gradients])
print("mean of the clients' own corners:", own_corners.mean(0).round(decimals=1).tolist())


# %%
fig = plot.figure((5.0, 3.8))
ax = fig.subplots()
ax.plot([1, 0, -1, 0, 1], [0, 1, 0, -1, 0], color="gray")
ax.plot(*near.T, "^", color="gray", label="homes")
draw_arrow(ax, w, near.mean(0) - w, plot.COLORS[2], "down the gradient")
draw_arrow(ax, w, next_model - w, plot.COLORS[3], "one step")
ax.plot(*corner, "o", color=plot.COLORS[3], label="its corner")
ax.set(aspect="equal", xlim=(-1.3, 3.4), ylim=(-1.2, 2.5))
ax.legend(loc="lower right")
plot.show(
    fig,
    caption="One Frank-Wolfe step: not down the gradient, but a share of the way to "
    "the corner that lies furthest down.",
    alt="A diamond with an arrow from a point inside of it down the gradient, and"
    " a second arrow towards one corner.",
)

# %% [markdown]
# What if every client sends its own corner? Their mean is what *naive averaging* moves to. FedFW (*federated
# Frank-Wolfe*) and its variant FedFW+ {cite}`dadras2024fedfw` leave every client a model of its own, and pull these
# models together by a growing penalty.

# %% tags=["nbval-check-output"]
inside = problems.pareto(near[:, None, None, :]).within(diamond)
methods = {
    "naive averaging": fl.NaiveFW(),
    "FedFW": fl.FedFW(lam0=0.05),
    "FedFW+": fl.FedFWPlus(lam0=0.05),
}
best = diamond.project(near.mean(0))
for name, m in methods.items():
    distance = (path_of(m, inside)[-1] - best).norm()
    print(f"{name} ends {distance:.2f} from the best place")

# %% [markdown]
# **Question.** Why does the mean of the corners not lead to the best place, although the mean of the gradients does?
#
# ```{admonition} Answer
# :class: dropdown
# A corner says where to go, not how urgently: the two clients far out pull hard, but send a corner like everybody else.
# At the best place the gradients cancel, the corners do not, so naive averaging leaves it. With models of their own,
# the clients' steps differ only by the pull to the mean, which grows until they agree
# ([proof](note_fedfw.ipynb)).
# ```

# %% [markdown]
# ## The names, and where to go on
#
# | name | stands for | on this page | chapter |
# | --- | --- | --- | --- |
# | FedSGM | federated switching gradient method | switching, Top-K, half of the clients | [FedSGM](../book/fedsgm/index.md) |
# | FedCMOO | federated communication-efficient multi-objective optimization | the direction in the hull | [FedCMOO](../book/fedcmoo/index.md) |
# | FSMGDA | federated stochastic multi-gradient descent averaging | the method that FedCMOO is compared with | [FedCMOO](../book/fedcmoo/index.md) |
# | FedFW | federated Frank-Wolfe | the set with corners | [FedFW](../book/fedfw/index.md) |
# | FedDR | federated Douglas-Rachford splitting; it projects | not here: FedFW is compared with it | [FedFW](../book/fedfw/index.md) |
# | SSCA | stochastic successive convex approximation | not here: it replaces each loss by a convex quadratic one | [SSCA](../book/ssca/index.md) |
#
# Which of them fits your problem? See [Which method?](../book/methods/index.md) To run one on your own data, start with
# [five situations](tutorial_own.ipynb).
