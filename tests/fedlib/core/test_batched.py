"""What the batched loop does to problems before it runs them together."""

import torch

from fedlib.core.batched import padded
from fedlib.problems import pareto


def test_problems_are_padded_to_the_most_rows_of_a_client():
    short, long = (pareto(torch.zeros(2, rows, 1, 3).double()) for rows in (2, 5))
    for problem, own in zip(padded([short, long]), (short, long), strict=True):
        real = own.rows.shape[1]
        assert problem.rows.shape == (2, 5)
        assert torch.equal(problem.rows[:, :real], own.rows)
        assert torch.equal(problem.rows[:, real:], own.rows[:, :1].expand(-1, 5 - real))
        assert problem.lengths.tolist() == [real, real] == list(own.sizes)
