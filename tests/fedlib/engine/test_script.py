"""A program of the interpreter gives the bits of the recorded operations, and keeps no value."""

import pytest
import torch
from process import python
from randoms import numbers
from torch.func import grad, vmap
from torch.fx import Graph, GraphModule

import fedlib as fl
from fedlib import problems
from fedlib.engine.operations import operations
from fedlib.engine.script import Program, Unknown, replay

OUTSIDE = numbers(3, 4, seed=9)


def with_numbers(x):
    return 2 * x + 1, x / 3.0, x.clamp(min=-1), x.pow(2), 1 - x, x.add(x, alpha=2)


def with_lists(x):
    return x.view(2, 6).sum([0, 1]), x.sum(()), x.flip(0), x.expand(2, 3, 4), x.roll((1, 2), (0, 1))


def several_values(x):
    first, second, _ = x.split(1)
    largest, where = x.max(1)
    q, r = torch.linalg.qr(x)
    return first * second, largest, where, q @ r, *x.unbind(1)


def of_other_types(x):
    return x.to(torch.float64), x.long(), x > 0, x.half().sum(0, dtype=x.dtype)


def made_here(x):
    ones, rising = torch.ones_like(x), torch.arange(4, device=x.device)
    other = torch.full((3, 4), 0.5, dtype=torch.float64)
    return ones + other, x[:, rising], torch.tensor(2.0) * x, torch.zeros(0), x * OUTSIDE


def with_gaps(x):
    return (x[torch.tensor([2, 0])], x[:, torch.tensor([1])], x.clamp(None, 1))


def in_place(x):
    y = x.clone()
    y.mul_(2).add_(1)
    y[1] = 0
    return y, torch.empty_like(x).copy_(y)


def laid_out(x):
    picture = x.view(1, 3, 2, 2)
    return picture.contiguous(memory_format=torch.channels_last), x.t().contiguous()


FILTERS = numbers(5, 3, 2, 2, seed=1)


def slopes(x):
    def value(w):
        return torch.conv2d(x.view(1, 3, 2, 2), w, padding=1).relu().square().sum()

    return grad(value)(FILTERS), vmap(grad(lambda y: (y.softmax(0).log() * y).sum()))(x)


ALL = {
    "with numbers": with_numbers,
    "with lists": with_lists,
    "several values": several_values,
    "of other types": of_other_types,
    "made here": made_here,
    "with gaps": with_gaps,
    "in place": in_place,
    "laid out": laid_out,
    "slopes": slopes,
}


@pytest.mark.parametrize("function", ALL.values(), ids=ALL)
def test_a_program_gives_the_bits_of_the_operations(function):
    module = operations(lambda x: function(x), (numbers(3, 4),))
    program = Program(module)
    for x in (numbers(3, 4), numbers(3, 4, seed=1)):
        expected = function(x)
        for _ in range(3):  # it stays what it is
            found = program(x)
            assert len(found) == len(expected)
            for a, b in zip(found, expected, strict=True):
                assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
                assert torch.equal(a, b)


def test_what_the_interpreter_does_not_know_is_called_from_python():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.special.expit, (x,)),))
    module = GraphModule(torch.nn.Module(), graph)
    with pytest.raises(Unknown, match="expit"):
        Program(module)
    again = replay(module)
    assert torch.equal(again(OUTSIDE)[0], OUTSIDE.sigmoid())


def test_an_operation_that_it_does_not_know_with_such_arguments_neither():
    def as_integers(x):
        return (x.view(torch.int32),)

    module = operations(as_integers, (OUTSIDE,))
    with pytest.raises(Unknown, match="aten::view"):
        Program(module)
    assert torch.equal(replay(module)(OUTSIDE)[0], as_integers(OUTSIDE)[0])


def test_the_interpreter_s_settings_are_given_back_also_after_an_error():
    module = operations(lambda x: (x @ x,), (numbers(3, 3),))
    program = Program(module)
    for optimize in (True, False):
        torch._C._set_graph_executor_optimize(optimize)
        try:
            program(numbers(3, 3))
            with pytest.raises(RuntimeError, match="cannot be multiplied"):
                program(numbers(3, 4))
            assert torch._C._get_graph_executor_optimize() is optimize
        finally:
            torch._C._set_graph_executor_optimize(True)


@pytest.mark.parametrize(
    "method",
    [
        fl.FedAvg(0.1, 2, 4),
        fl.FedSGM(0.1, 2, 3, tolerance=0.1, uplink=fl.TopK(0.5), downlink=fl.TopK(0.5)),
        fl.SSCA(1.0, fl.PowerLaw(0.9, 0.3), fl.PowerLaw(0.9, 0.3)),
        fl.FedCMOO(lr=0.1, local_steps=2, participants=2),
    ],
)
def test_rounds_need_no_python(method):
    if isinstance(method, (fl.FedCMOO, fl.SSCA)):
        problem = problems.pareto(numbers(4, 1, 2, 3))
    else:
        problem = problems.quadratics(torch.ones(4, 2), numbers(4, 2), level=0.5)
    from fedlib.engine.batch import BatchedRuns

    of = BatchedRuns([method], problem, (0, 1), torch.device("cpu"), None)
    now, draw = of.example()
    of.step(now.state, draw)
    assert isinstance(of._step.again, Program)


LONG = """
import resource, torch
from fedlib.engine.record import record
x = torch.ones(2**20)  # 4 MB
x.sin()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def long(x):
    for i in range(300):
        x = (x + i).sin()
    return x
before = peak()
again = record(long, torch.ones(1))
again(x)
print(peak() - before)
"""


def test_values_are_given_up_after_their_last_use():
    done = python("-c", LONG)
    assert not done.returncode, done.stderr
    assert float(done.stdout) < 200  # MB; all values together are 2,400
