"""A model of your own on your own clients: three step sizes at once, the curves as a data frame."""

import torch
from torch import Tensor, nn

import fedlib as fl


class Network(nn.Module):
    """A layer of eight hidden units."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Two scores for each row."""
        scores: Tensor = self.out(torch.tanh(self.hidden(x)))
        return scores


def clients(count: int) -> list[tuple[Tensor, Tensor]]:
    """Rows and labels of some clients."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(count, 20, 3, generator=rng)
    return list(zip(x, (x.sum(2) > 0).long(), strict=True))


def loss(rows: fl.problems.ClientRows) -> Tensor:
    """The mean cross-entropy of a client's rows."""
    return rows.mean(nn.functional.cross_entropy(rows.output, rows.target, reduction="none"))


problem = fl.problems.from_clients(clients(5), module=Network(), objective=loss)
grid = [fl.FedAvg(lr=lr, local_steps=2, participants=5) for lr in (0.1, 0.3, 1.0)]
traces = fl.run(grid, problem, rounds=20, seeds=(0, 1), progress=False)
for method, trace in zip(grid, traces, strict=True):
    frame = trace.to_frame()
    print(method.lr, frame.groupby("round")["f"].mean().iloc[-1])
model = traces[-1].load_into(Network(), seed=0)
