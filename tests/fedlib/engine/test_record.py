"""Recording gives what the function gives, whatever simplification finds to do."""

import pytest
import torch
from randoms import numbers
from recorded import same
from torch.func import grad, vmap

from fedlib.engine.record import record


def written_through_a_view(x):
    a, b = x.clone(), x.clone()
    a.view(-1)[1:3].add_(1)
    return a, b, x.clone()


def read_before_and_after(x):
    a = x.clone()
    alias = a.view(-1)
    before = a + 1
    alias.mul_(2)
    return before, a + 1, alias + 1


def fresh_buffers(x):
    a, b = torch.zeros(3), torch.zeros(3)
    a[0] = 5.0
    a += x[0, :3]
    return a, b, torch.zeros(3) + b


def reshaped_in_place(x):
    a, b = x.clone(), x.clone()
    a.unsqueeze_(0)
    c = (x * 2).squeeze_()
    d = (x * 2).transpose_(0, 1)
    return a, b, c, d, x * 2


def written_parts(x):
    left, right = (x + 0).split(2, dim=1)
    left.zero_()
    again, _ = (x + 0).split(2, dim=1)
    return left, right, again


def constant_written(x):
    a = torch.ones(4)
    b = torch.ones(4)
    a.cumsum_(0)
    return a * x, b * x, torch.ones(4) + a


def result_unused(x):
    a = x * 3
    a[1].fill_(7.0)
    torch.relu_(a.T)
    return a


def index_written(x):
    a = x.clone()
    rows = torch.tensor([0, 2])
    first = a[rows]
    a.index_fill_(0, rows, 9.0)
    return first, a[rows], a.index_put((rows,), torch.tensor(1.0))


def compared_and_written(x):
    a = x + 0
    positive = a > 0
    a.neg_()
    return a, x * positive


PLANTED = [
    compared_and_written,
    written_through_a_view,
    read_before_and_after,
    fresh_buffers,
    reshaped_in_place,
    written_parts,
    constant_written,
    result_unused,
    index_written,
]


@pytest.mark.parametrize("function", PLANTED, ids=lambda f: f.__name__)
def test_in_place_operations_change_no_result(function):
    replay = same(function, numbers(4, 4))
    x = numbers(4, 4, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(replay(x), replay(x), strict=True))


def kept(memory, other, who, new):
    rows = who.view(-1, 1).expand_as(new)
    seen = memory[who].sum()
    return memory.scatter(0, rows, new + memory[who]), other + seen


def read_late(memory, other, who, new):
    after, other = kept(memory, other, who, new)
    return after, other + after.sum() * memory.T.sum()


def shown_twice(memory, other, who, new):
    after, _ = kept(memory, other, who, new)
    return after, after.T


def gone_elsewhere(memory, other, who, new):
    after, _ = kept(memory, other, who, new)
    return other, after


def put_from_itself(memory, other, who, new):
    rows = who.view(-1, 1).expand_as(new)
    return memory.scatter(0, rows, memory[-2:]), other + new.sum()


def half_of_it(memory, other, who, new):
    rows = who.view(-1, 1).expand_as(new)
    return memory[:3].scatter(0, rows % 3, new).repeat(2, 1), other


def mapped(memory, other, who, new):
    after, other = vmap(kept)(memory.view(1, 6, 2), other[None], who[None], new[None])
    return after[0], other[0]


@pytest.mark.parametrize(
    ("function", "writes"),
    [(kept, True), (mapped, True), (read_late, False), (shown_twice, False),
     (gone_elsewhere, False), (put_from_itself, False), (half_of_it, False)],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_a_spent_input_is_written_to_where_nobody_can_tell(function, writes):
    first = numbers(6, 2), numbers(6, 2, seed=1)
    who, new = torch.tensor([4, 1]), numbers(2, 2, seed=2)
    replay = record(function, *first, who, new, spent=[0])
    plain, state = first, tuple(x.clone() for x in first)
    assert torch.equal(first[0], numbers(6, 2))  # recording writes to nothing
    for t in range(4):
        held = state[0].data_ptr()
        state, plain = replay(*state, (who + t) % 6, new), function(*plain, (who + t) % 6, new)
        assert all(torch.equal(a, b) for a, b in zip(state, plain, strict=True))
        assert (state[0].data_ptr() == held) == writes
    record(function, *first, who, new)(*first, who, new)
    assert torch.equal(first[0], numbers(6, 2))  # nothing is spent unless one says so


def test_gradients_under_two_maps():
    def step(w, x):
        return w - 0.1 * grad(lambda u: torch.log1p((x @ u).exp()).mean())(w)

    both = vmap(vmap(step, in_dims=(None, 0)), in_dims=(0, None))
    same(both, numbers(3, 5), numbers(2, 6, 5))


def test_fixed_arguments_come_first():
    replay = record(lambda f, x: f["a"] * x, torch.ones(2), fixed=({"a": torch.tensor(3.0)},))
    assert torch.equal(replay(torch.full((2,), 2.0)), torch.full((2,), 6.0))


def test_other_structure_is_an_error():
    replay = record(lambda x: x[0] + x[1], (torch.ones(2), torch.ones(2)))
    with pytest.raises(ValueError, match="structure of the recorded example"):
        replay([torch.ones(2), torch.ones(2)])
