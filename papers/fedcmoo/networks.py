"""The networks of the multi-task experiments: one encoder, one decoder for every task.

The models of Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective
Optimization*, AISTATS 2025, with the layers of the authors' code, without its dropout: it is
random, and a loss here is a function of the model and the rows. Parameters of the encoder come
first in `models.ravel`, so that the first `encoder_size` of them are those that all tasks share.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from fedlib.shapes import AnyTensor

BONDS = 5  # numbers of an edge: four kinds of bond, and the distance
ATOM = 11  # numbers of an atom
WIDTH = 128  # hidden units of the network that makes a matrix of an edge
PASSES = 3  # rounds of messages
QUESTIONS = 3  # of the pooling of atoms


class Tasks(nn.Module):
    """An encoder and a list of decoders: outputs `[..., M, out]`, one row for every task."""

    def __init__(self, encoder: nn.Module, decoders: list[nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoders = nn.ModuleList(decoders)

    def forward(self, *inputs: AnyTensor) -> Float[Tensor, "*B M out"]:
        """What every decoder makes of the code."""
        if len(inputs) == 1:
            inputs = (channels_last(inputs[0]),)
        code = self.encoder(*inputs)
        return torch.stack([decoder(code) for decoder in self.decoders], dim=-2)


def channels_last(pictures: Float[Tensor, "*B c h w"]) -> Float[Tensor, "*B c h w"]:
    """The same pictures with their channels innermost in memory: convolution is faster there.

    For one channel the order is the same and only the strides say so.
    """
    if pictures.shape[-3] == 1:
        plane = pictures.squeeze(-3)
        return plane.unsqueeze(-1).movedim(-1, -3)
    innermost = pictures.movedim(-3, -1).contiguous()
    return innermost.movedim(-1, -3)


def encoder_size(module: Tasks) -> int:
    """How many of the first parameters all tasks share."""
    return sum(p.numel() for p in module.encoder.parameters())


def pair_lenet(
    rng: torch.Generator | None = None,
    *,
    decoders: int = 2,
    out: int = 10,
    hidden: int = 50,
) -> Tasks:
    """The network for pictures of 1 x 28 x 28 pixels: two convolutions, then linear maps.

    Encoder (28,515 parameters): convolutions 1-10 (padding 1) and 10-15 of 3 x 3, each with
    max-pooling of 2 and ReLU; linear 540-50, ReLU. Decoders: linear 50-`hidden`, ReLU, linear
    `hidden`-`out`; one linear map 50-`out` if `hidden` is 0. With the defaults 34,635 in all.
    """

    def decoder() -> nn.Module:
        if not hidden:
            return nn.Linear(50, out)
        return nn.Sequential(nn.Linear(50, hidden), nn.ReLU(), nn.Linear(hidden, out))

    def make() -> Tasks:
        encoder = nn.Sequential(
            nn.Conv2d(1, 10, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(10, 15, 3),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(-3),
            nn.Linear(540, 50),
            nn.ReLU(),
        )
        return Tasks(encoder, [decoder() for _ in range(decoders)])

    return started(make, rng)


def pair_cnn(rng: torch.Generator | None = None) -> Tasks:
    """The network for pictures of 3 x 32 x 32 pixels and two tasks, 1,726,508 parameters.

    Encoder (1,685,888): convolutions 3-64 and 64-64 of 3 x 3, padding 1, each with ReLU and
    max-pooling of 2; linear 4096-384 and 384-192, each with ReLU. Decoders: linear 192-100-10 with
    nothing between (the paper calls it a single linear layer, its number of parameters is
    that of two).
    """

    def make() -> Tasks:
        encoder = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(-3),
            nn.Linear(4096, 384),
            nn.ReLU(),
            nn.Linear(384, 192),
            nn.ReLU(),
        )
        return Tasks(encoder, [decoder(), decoder()])

    def decoder() -> nn.Module:
        return nn.Sequential(nn.Linear(192, 100), nn.Linear(100, 10))

    return started(make, rng)


class MessagePassing(nn.Module):
    r"""The encoder for molecules, as complete graphs of at most n atoms; padded atoms are masked.

    In the paper's letters::

        h_v = relu(linear(x_v))
        three times:
            m_v = relu(root h_v + bias + mean over u != v of A(e_uv) h_u)
            h_v = GRU(m_v, h_v)
        code = relu(linear(Set2Set(h)))

    A is a matrix of 64 x 64 that a network of two layers, 5-128-4096, makes of an edge. It is
    linear in the 128 numbers $a_{uv}$ of the hidden layer, so the sum over u is taken first:
    $\sum_u A(e_{uv})h_u = \sum_k A_k\sum_u a_{uvk}h_u + A_0\sum_u h_u$, which needs no matrix
    for an edge.
    """

    def __init__(self, dim: int = 64) -> None:
        super().__init__()
        self.dim = dim
        self.first = nn.Linear(ATOM, dim)
        self.edge = nn.Linear(BONDS, WIDTH)
        self.matrix = nn.Linear(WIDTH, dim * dim)  # [from, to] of the message, row by row
        self.root = nn.Linear(dim, dim)
        self.gates_in = nn.Linear(dim, 3 * dim)
        self.gates_own = nn.Linear(dim, 3 * dim)
        self.pool = Set2Set(dim)
        self.last = nn.Linear(2 * dim, dim)

    def forward(
        self,
        atoms: Float[Tensor, "B n 11"],
        edges: Float[Tensor, "B n n 5"],
        real: Bool[Tensor, "B n"],
    ) -> Float[Tensor, "B dim"]:
        """The code of every molecule; `real` says which atoms are there."""
        share = share_of_neighbours(real, atoms.dtype)
        a = torch.relu(self.edge(edges))
        hidden = a * share.unsqueeze(-1)  # [B, v, u, width]
        h = torch.relu(self.first(atoms))
        for _ in range(PASSES):
            from_itself = self.root(h)
            m = torch.relu(from_itself + self.messages(hidden, share, h))
            h = self.gated(m, h)
        code = self.last(self.pool(h, real))
        return torch.relu(code)

    def messages(
        self,
        hidden: Float[Tensor, "B n n width"],
        share: Float[Tensor, "B n n"],
        h: Float[Tensor, "B n dim"],
    ) -> Float[Tensor, "B n dim"]:
        """The mean over all other atoms u of A(e_uv) h_u, for every atom v."""
        mixed = hidden.transpose(-1, -2) @ h.unsqueeze(-3)  # [B, v, width, from]
        matrices = self.matrix.weight.view(self.dim, self.dim, -1)
        by_width = matrices.permute(2, 0, 1)
        A = by_width.reshape(-1, self.dim)
        A_0 = self.matrix.bias.view(self.dim, self.dim)
        constant = (share @ h) @ A_0
        return mixed.flatten(-2) @ A + constant

    def gated(
        self, m: Float[Tensor, "B n dim"], h: Float[Tensor, "B n dim"]
    ) -> Float[Tensor, "B n dim"]:
        """A gated recurrent unit: reset r, update z, candidate c; (1 - z) c + z h."""
        r_in, z_in, c_in = self.gates_in(m).chunk(3, -1)
        r_own, z_own, c_own = self.gates_own(h).chunk(3, -1)
        r = torch.sigmoid(r_in + r_own)
        z = torch.sigmoid(z_in + z_own)
        c = torch.tanh(c_in + r * c_own)
        return (1 - z) * c + z * h


def share_of_neighbours(real: Bool[Tensor, "B n"], dtype: torch.dtype) -> Float[Tensor, "B n n"]:
    """What each other atom u counts in the mean over the neighbours of v; 0 where one is padded."""
    both_real = real.unsqueeze(-1) & real.unsqueeze(-2)
    itself = torch.eye(real.shape[-1], dtype=dtype, device=real.device)
    near = both_real.to(dtype) * (1 - itself)
    count = near.sum(-1, keepdim=True)
    return near / count.clamp_min(1)


class Set2Set(nn.Module):
    """A molecule's code from its atoms: an LSTM asks a few times, attention answers."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gates_in = nn.Linear(2 * dim, 4 * dim)
        self.gates_own = nn.Linear(dim, 4 * dim)

    def forward(
        self, h: Float[Tensor, "B n dim"], real: Bool[Tensor, "B n"]
    ) -> Float[Tensor, "B 2*dim"]:
        """The last question and its answer, side by side."""
        question = cell = torch.zeros_like(h[..., 0, :])
        both = torch.cat([question, question], -1)
        for _ in range(QUESTIONS):
            gates = self.gates_in(both) + self.gates_own(question)
            i, f, g, o = gates.chunk(4, -1)
            remembered = torch.sigmoid(f) * cell
            cell = remembered + torch.sigmoid(i) * torch.tanh(g)
            question = torch.sigmoid(o) * torch.tanh(cell)
            answer = attended(h, question, real)
            both = torch.cat([question, answer], -1)
        return both


def attended(
    h: Float[Tensor, "B n dim"], question: Float[Tensor, "B dim"], real: Bool[Tensor, "B n"]
) -> Float[Tensor, "B dim"]:
    """The mean of the atoms, weighed by the softmax of their products with a question."""
    score = (h @ question.unsqueeze(-1)).squeeze(-1)
    score = score.masked_fill(~real, -torch.inf)
    weight = torch.softmax(score, -1)
    return (weight.unsqueeze(-2) @ h).squeeze(-2)


def molecule_network(rng: torch.Generator | None = None) -> Tasks:
    """Message passing on molecules and eleven linear decoders 64-1, 617,675 parameters.

    The encoder has 616,960: linear 11-64; three rounds of messages with one edge network 5-128-4096
    and one gated recurrent unit; Set2Set of 3 steps; linear 128-64.
    """

    def make() -> Tasks:
        targets: list[nn.Module] = [nn.Linear(64, 1) for _ in range(11)]
        return Tasks(MessagePassing(), targets)

    return started(make, rng)


def started(make: Callable[[], Tasks], rng: torch.Generator | None = None) -> Tasks:
    """The network that `make` describes, its start drawn from `rng` (of seed 0 if None).

    Weights and biases of a linear map or convolution are uniform in +-1/sqrt(inputs of a unit).
    """
    if rng is None:
        rng = torch.Generator().manual_seed(0)
    with torch.device("meta"):  # without storage first: nothing comes from the global generator
        module = make()
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        for layer in module.modules():
            if not isinstance(layer, (nn.Linear, nn.Conv2d)):
                continue
            inputs = layer.weight[0].numel()
            bound = 1 / math.sqrt(inputs)
            for parameter in layer.parameters():
                parameter.uniform_(-bound, bound, generator=rng)
    return module
