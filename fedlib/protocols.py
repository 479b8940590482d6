r"""What can be plugged in: every interface of the library, each with its smallest example.

What is plugged in is a frozen dataclass, because a run is described by its fields. Nothing is
registered: pass an object of your class where the library's own would stand.

>>> from dataclasses import dataclass
>>> import torch
>>> from fedlib import FedAvg, FedCMOO, FedFW, FedSGM, problems, run
>>> from fedlib.protocols import *

An `Algorithm` has `init`, `draw` and `round`. A base such as `LocalWork` brings the first two, so a
method says what happens at a client and what the server makes of the answers:

>>> @dataclass(frozen=True)
... class Averaging(LocalWork):
...     lr: float
...     local_steps: int
...     participants: int
...
...     def local_update(self, client, w):
...         return self.local_model(client, w, client.objective_weights(w))
...
...     def round(self, fed, state, draw):
...         clients = fed.clients(draw)
...         models = fed.ask(self.local_update, clients, state.w)
...         return Model(fed.mean(models, clients)), fed.info()
>>> method = Averaging(lr=0.1, local_steps=2, participants=4)
>>> run(method, problems.quadratics(), rounds=20).late("g").round(2)
array([0.45])

Three more names have a meaning on an algorithm, if it has them. `client_state` is a class variable
with the names of the state's fields that hold a row for each client. `output(state)` is the model
that the method returns, if that is not `state.w`. `sampling()` has the arguments of `draw_round`;
`LocalWork` and `Sampled` draw by it.

A `Compressor` makes a message of a vector and a vector of a message. The message's `layout` has its
parts in their order and the bits of each, from which `bits` follows. `draw`, `contraction` and
`variance` may be left out:

>>> @dataclass(frozen=True)
... class Signs(Compressor):
...     def __call__(self, x, noise=()):
...         return torch.copysign(x.abs().mean(), x)
...
...     def encode(self, x, noise=()):
...         signs = torch.copysign(torch.ones_like(x), x)
...         return Message(torch.cat([x[:1].abs(), signs]))
...
...     def decode(self, message, like, noise=()):
...         return message.values[0] * message.values[1:]
...
...     def layout(self, dim):
...         return Field("number", 1, 32), Field("sign", dim, 1)
...
...     def contraction(self, dim):
...         return 1 / dim
>>> method = FedSGM(0.1, 2, 4, tolerance=0.05, uplink=Signs())
>>> run(method, problems.quadratics(), rounds=20).info["bits_up"][0, -1]
np.float64(264.0)

A `Sketch` is the same for a matrix `[M, d]` of gradients, and a `GramEstimate` an exchange of
messages about their products.

A `Switch` maps the violation z of the constraint to the constraint's share of a round:

>>> @dataclass(frozen=True)
... class Root:
...     def __call__(self, z):
...         return z.clamp(0, 1).sqrt()
>>> method = FedSGM(0.1, 2, 4, tolerance=0.05, switch=Root())
>>> run(method, problems.quadratics(), rounds=20).late("g").round(1)
array([0.1])

`LocalSteps` make some steps from a point along gradients, which depend on the point and the step:

>>> @dataclass(frozen=True)
... class Momentum:
...     def __call__(self, u, gradient, steps, lr):
...         m = torch.zeros_like(u)
...         for step in range(steps):
...             m = 0.5 * m + gradient(u, step)
...             u = u - lr * m
...         return u
>>> method = FedAvg(0.1, 2, 4, local=Momentum())
>>> run(method, problems.quadratics(), rounds=20).late("g").round(2)
array([0.48])

`Weights` map the Gram matrix of several objectives' gradients and the last weights to weights:

>>> @dataclass(frozen=True)
... class ShortestGradient:
...     def __call__(self, gram, before):
...         shortest = gram.diagonal().argmin()
...         return torch.eye(len(before), dtype=gram.dtype)[shortest]
>>> method = FedCMOO(0.1, 2, 2, weights=ShortestGradient())
>>> run(method, problems.pareto(), rounds=3).info["weight_1"].shape
(1, 3)

A `Schedule` gives a Frank-Wolfe method its step, the growth of its penalty, and the weight of a new
gradient in round t = 1, 2, ..., a tensor; `share` is the probability that a client takes part:

>>> @dataclass(frozen=True)
... class Harmonic:
...     def eta(self, t, share):
...         return 1 / t
...
...     def growth(self, t, share):
...         return t
...
...     def rho(self, t):
...         return 1 / t

A `ConvexSet` has a projection, a linear minimization oracle, and a test:

>>> @dataclass(frozen=True)
... class Interval:
...     def project(self, x):
...         return x.clamp(0, 1)
...
...     def lmo(self, direction):
...         return (direction < 0).to(direction.dtype)
...
...     def contains(self, x, tol=1e-6):
...         return ((x >= -tol) & (x <= 1 + tol)).all()
>>> problem = problems.pareto(torch.full((4, 1, 1, 2), 2.0)).within(Interval())
>>> run(FedFW(lam0=0.1, schedule=Harmonic()), problem, rounds=3).model()
tensor([1., 1.])

Two more names have a meaning on a set: `wire(dim)` is the format of its extreme points, else all
entries are sent, and `gauge(x)` is at most 1 in the set and 1 on its boundary.

A `Problem` is an object, not a class: it holds the clients' rows and the losses. The readers of
`fedlib.problems` make it of a frame, a Dataset or arrays:

>>> def losses(w, batch):
...     return batch.weight @ (w - batch.data[0]) ** 2
>>> def metrics(w, problem):
...     return {"f": problem.mean_losses(w)[0]}
>>> problem = Problem(
...     name="mean",
...     data=(torch.tensor([[1.0], [2.0], [6.0]]),),
...     rows=torch.tensor([[0], [1], [2]]),
...     sizes=(1, 1, 1),
...     losses=losses,
...     num_objectives=1,
...     num_constraints=0,
...     w0=torch.zeros(1),
...     metrics=metrics,
... )
>>> run(FedAvg(0.5, 1, 3), problem, rounds=1).model()
tensor([3.])

A field of any of these classes may carry a note for the library. `field(metadata={"shape": True})`
marks a number that determines shapes, so a grid cannot vary it. `added_field(default)` marks a
field that was added after runs had been stored, and `renamed_from` the first name of what was
renamed; neither loses a stored run.
"""

from fedlib.compress.compressors import Compressor
from fedlib.compress.sketches import Sketch
from fedlib.compress.wire import Field, Layout, Message, Noise
from fedlib.core.algorithm import Algorithm
from fedlib.core.client import Client, ClientState, Reply
from fedlib.core.describe import added_field, renamed_from
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, ConvexSet, Draw, Info, Problem
from fedlib.core.sampling import Sampled, check_work, draw_round
from fedlib.steps.local import LocalSteps
from fedlib.steps.schedules import Schedule
from fedlib.steps.switching import Switch
from fedlib.weights.gram import GramEstimate
from fedlib.weights.rules import Weights
from fedlib.work.local import LocalWork
from fedlib.work.states import Iterate, Model

__all__ = [
    "Algorithm",
    "Batch",
    "Client",
    "ClientState",
    "Compressor",
    "ConvexSet",
    "Draw",
    "Federation",
    "Field",
    "GramEstimate",
    "Info",
    "Iterate",
    "Layout",
    "LocalSteps",
    "LocalWork",
    "Message",
    "Model",
    "Noise",
    "Problem",
    "Reply",
    "Sampled",
    "Schedule",
    "Sketch",
    "Switch",
    "Weights",
    "added_field",
    "check_work",
    "draw_round",
    "renamed_from",
]
