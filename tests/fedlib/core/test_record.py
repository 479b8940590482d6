"""Recording gives what the function gives, whatever simplification finds to do."""

import pytest
import torch
from torch.func import grad, vmap

from fedlib.compress import Rounding
from fedlib.core.operations import operations
from fedlib.core.record import record
from fedlib.core.simplify import simplify


def simplified(function, *example):
    """Names of the operations left after simplification, and the simplified module."""

    def flat(*inputs):
        found = function(*inputs)
        return found if isinstance(found, tuple) else (found,)

    module = operations(flat, example)
    simplify(module)
    calls = [n.target for n in module.graph.nodes if n.op == "call_function"]
    return [c.__name__.partition(".")[0] for c in calls], module


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same(function, *example):
    """The recording of `function`, checked bit for bit on the example and on other arguments."""
    replay = record(function, *example)
    for arguments in (example, [x * 2 - 1 for x in example]):
        expected = function(*arguments)
        expected = expected if isinstance(expected, tuple) else (expected,)
        given = replay(*arguments)
        given = given if isinstance(given, tuple) else (given,)
        for a, b in zip(given, expected, strict=True):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
    return replay


def test_equal_operations_are_done_once():
    def steps(shares, weights, u):
        for _ in range(4):
            u = u - (shares @ weights).sum() * u
        return u

    names, _ = simplified(steps, numbers(5, 2), numbers(2), numbers(3))
    assert names.count("mv") == names.count("sum") == 1
    same(steps, numbers(5, 2), numbers(2), numbers(3))


def test_chains_of_views_become_one_and_idle_views_none():
    def views(x):
        return x.unsqueeze(0).view(1, 6, 2).unsqueeze(3).view(3, 4) + 1, x.view(3, 4).expand(3, 4)

    names, _ = simplified(views, numbers(3, 4))
    assert names == ["add"]
    same(views, numbers(3, 4))


def test_a_transposed_view_is_kept():
    def transposed(x):
        return x.T.reshape(-1) + x.reshape(-1), x.T.unsqueeze(0).squeeze(0), x[None, 1:2].squeeze()

    same(transposed, numbers(3, 3))
    replay = record(transposed, numbers(3, 3))
    x = numbers(3, 3, seed=1).T  # not the strides of the example
    assert all(torch.equal(a, b) for a, b in zip(replay(x), transposed(x), strict=True))


@pytest.mark.parametrize(
    "there_and_back",
    [
        lambda x: x.mT.mT + 1,
        lambda x: x.permute(2, 0, 1).permute(1, 2, 0) + 1,
        lambda x: x.permute(0, 2, 1).transpose(-1, -2) + 1,
    ],
)
def test_axes_that_are_turned_back_were_never_turned(there_and_back):
    x = numbers(2, 3, 4)
    assert simplified(there_and_back, x)[0] == ["add"]
    same(there_and_back, x)


def test_axes_that_are_turned_on_stay_so():
    x = numbers(2, 3, 4)
    assert simplified(lambda x: x.permute(2, 0, 1).permute(2, 0, 1) + 1, x)[0][-1] == "add"
    replay = same(lambda x: x.permute(2, 0, 1).permute(2, 0, 1) + 1, x)
    assert replay(x).shape == (3, 4, 2)


@pytest.mark.parametrize("masked", [lambda g, y: g * (y > 0), lambda g, y: (y > 0) * g])
def test_the_derivative_of_a_relu_is_one_operation(masked):
    g, y = numbers(5, 4), numbers(5, 4, seed=1)
    y[0, 0] = 0.0
    assert simplified(masked, g, y)[0] == ["threshold_backward"]
    same(masked, g, y)


@pytest.mark.parametrize(
    ("function", "g"),
    [
        (lambda g, y: g * (y > 1), numbers(5, 4)),
        (lambda g, y: g * (y > 0), numbers(4)),  # another shape
        (lambda g, y: g * (y > 0), numbers(5, 4).double()),  # another type
    ],
)
def test_what_only_looks_like_the_derivative_of_a_relu_is_left_alone(function, g):
    y = numbers(5, 4, seed=1)
    assert simplified(function, g, y)[0] == ["gt", "mul"]
    same(function, g, y)


def test_a_view_as_another_type_is_kept():
    same(lambda x: x.view(torch.int32) + 0, numbers(4))
    same(vmap(Rounding(3)), numbers(2, 5))


def test_rows_are_gathered_whole():
    def gather(x, rows):
        return x[rows.long()], x[:, rows.long()[0]], x[rows.long(), rows.long()]

    x, rows = numbers(6, 7), torch.tensor([[0, 5], [3, 3]])
    names, _ = simplified(gather, x, rows)
    assert names.count("index_select") == 1
    assert names.count("index") == 2
    replay = record(gather, x, rows)
    assert all(torch.equal(a, b) for a, b in zip(replay(x, rows), gather(x, rows), strict=True))
    x, rows = numbers(6, 7, seed=1), 5 - rows
    assert all(torch.equal(a, b) for a, b in zip(replay(x, rows), gather(x, rows), strict=True))


def of_runs(x, rows):
    """Of every run its own rows, counted from the start and from the end."""
    return vmap(lambda x, rows: (x[rows], x[rows - 6]))(x, rows)


def of_clients_of_runs(x, rows):
    return vmap(vmap(lambda x, rows: x[rows.flip(0)], (None, 0)))(x, rows)


@pytest.mark.parametrize("gather", [of_runs, of_clients_of_runs])
def test_rows_of_runs_with_data_of_their_own_are_gathered_whole(gather):
    x, rows = (
        numbers(3, 6, 16),
        torch.tensor([[[0, 5], [3, 3]], [[1, 2], [5, 0]], [[4, 4], [2, 0]]]),
    )
    names, _ = simplified(gather, x, rows)
    assert "index" not in names
    assert "index_select" in names
    replay = record(gather, x, rows)
    for given in ((x, rows), (numbers(3, 6, 16, seed=1), 5 - rows), (x, rows.roll(1, 0))):
        found, expected = replay(*given), gather(*given)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_short_rows_and_strange_tables_are_left_alone():
    rows = torch.tensor([[0, 1], [2, 0]])

    def gather(x, y, rows):
        return x[rows, rows], y.mT[rows, rows], y[:, rows, rows]

    x, y = numbers(6, 7), numbers(6, 6, 20)
    replay = record(gather, x, y, rows)
    targets = [str(n.target) for n in replay.graph.graph.nodes]
    assert targets.count("aten.index.Tensor") == 3
    for one, other in zip(replay(x, y, rows), gather(x, y, rows), strict=True):
        assert torch.equal(one, other)


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


def test_every_random_number_stays_its_own():
    _, module = simplified(lambda x: (torch.rand_like(x), torch.rand_like(x)), numbers(8))
    a, b = module(numbers(8))
    assert not torch.equal(a, b)


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
