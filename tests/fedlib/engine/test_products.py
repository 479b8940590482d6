"""Large products by oneDNN: every way to each of them, what is left alone, whole rounds."""

import pytest
import torch
from torch import nn

import fedlib as fl
from fedlib import problems
from fedlib.engine import compile as compiled
from fedlib.engine import products
from fedlib.engine.products import has_avx512
from fedlib.engine.record import record
from fedlib.weights.rules import min_norm

needs = pytest.mark.skipif(not products.available(), reason="this torch has no oneDNN")
M, K, N, B = 200, 220, 240, 3


@pytest.fixture(autouse=True, params=[True, False], ids=["avx512", "avx2"])
def avx512(request, monkeypatch):
    """Both kinds of processors; oneDNN has every way to a product on either."""
    monkeypatch.setattr(products, "has_avx512", lambda: request.param)
    return request.param


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ways_of(replay):
    return [n.target for n in replay.graph.graph.nodes if "product" in n.meta]


def laid_out(x, turned):
    """The same entries, column by column."""
    return x.mT.contiguous().mT if turned else x


@needs
@pytest.mark.parametrize("turned_a", [False, True])
@pytest.mark.parametrize("turned_b", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [((M, K), (K, N)), ((B, M, K), (B, K, N)), ((1, M, K), (1, K, N)), ((6000, 300), (300, 20))],
)
def test_a_large_product_is_the_product(a, b, turned_a, turned_b, avx512):
    x, y = laid_out(normal(*a), turned_a), laid_out(normal(*b, seed=1), turned_b)
    function = torch.bmm if x.dim() == 3 else torch.mm
    replay = record(function, x, y)
    (way,) = ways_of(replay)
    assert (way in products.WAYS) == avx512
    found = replay(x, y)
    exact = x.double() @ y.double()
    torch.testing.assert_close(found.double(), exact, atol=1e-4 * a[-1] ** 0.5, rtol=0)
    assert found.stride() == function(x, y).stride()


@needs
@pytest.mark.parametrize("avx512", [True], indirect=True)
def test_a_factor_that_is_common_to_all_is_multiplied_once():
    one, many = normal(M, K), normal(B, N, K, seed=1)

    def left(x, y):
        return torch.bmm(x.expand(B, M, K), y.mT)

    def right(x, y):
        return torch.bmm(y, x.t().expand(B, K, M))

    for function, way in ((left, products.common_left), (right, products.common_right)):
        replay = record(function, one, many)
        assert ways_of(replay) == [way]
        found = replay(one, many)
        assert found.is_contiguous()
        exact = function(one.double(), many.double())
        torch.testing.assert_close(found.double(), exact, atol=1e-3, rtol=0)


@needs
@pytest.mark.parametrize("avx512", [True], indirect=True)
def test_the_columns_are_taken_where_that_copies_less():
    rows, narrow = normal(6000, 300).t(), normal(6000, 10, seed=1)
    replay = record(torch.mm, rows, narrow)
    assert ways_of(replay) == [products.turned]
    exact = rows.double() @ narrow.double()
    torch.testing.assert_close(replay(rows, narrow).double(), exact, atol=1e-3, rtol=0)


@needs
@pytest.mark.parametrize(
    ("x", "y", "onednn"),
    [
        (normal(10, 20_000), normal(20_000, 10), True),
        (normal(20_000, 10).t(), normal(10, 20_000).t(), True),
        (normal(10, 20_000), normal(20_000, 40), False),  # wide
        (normal(30, 2000), normal(2000, 30), False),  # short
    ],
)
@pytest.mark.parametrize("avx512", [False], indirect=True)
def test_without_avx512_onednn_has_long_sums_with_a_small_result(x, y, onednn):
    replay = record(torch.mm, x, y)
    (way,) = ways_of(replay)
    assert (way in products.WAYS) == onednn
    exact = x.double() @ y.double()
    torch.testing.assert_close(replay(x, y).double(), exact, atol=5e-3, rtol=0)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (normal(M, K, dtype=torch.float64), normal(K, N, dtype=torch.float64)),
        (normal(20, 30), normal(30, 40)),  # small
        (normal(1000, 784), normal(784, 1)),  # narrow
        (normal(200, 200, 20).mT.contiguous().mT, normal(200, 20, 200)),  # many small ones
    ],
)
def test_what_gains_nothing_is_left_alone_bit_for_bit(x, y):
    function = torch.bmm if x.dim() == 3 else torch.mm
    replay = record(function, x, y)
    assert not ways_of(replay)
    assert torch.equal(replay(x, y), function(x, y))


@pytest.mark.parametrize(("said", "has"), [("DEFAULT", False), ("AVX2", False), ("AVX512", True)])
def test_the_kind_of_processor_is_what_torch_says(said, has, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: said)
    assert has_avx512.__wrapped__() is has


def test_without_onednn_all_is_left_alone(monkeypatch):
    monkeypatch.setattr(products, "available", lambda: False)
    x, y = normal(M, K), normal(K, N, seed=1)
    replay = record(torch.mm, x, y)
    assert not ways_of(replay)
    assert torch.equal(replay(x, y), x @ y)


@needs
def test_a_round_of_a_network_is_that_of_the_plain_loop(monkeypatch):
    g = torch.Generator().manual_seed(0)
    clients = [(normal(300, 200, seed=j), torch.randint(4, (300,), generator=g)) for j in range(3)]
    # smooth: a ReLU at its bend would turn a last digit into a jump, on one processor in some
    module = nn.Sequential(nn.Linear(200, 100), nn.Tanh(), nn.Linear(100, 4))
    problem = problems.from_clients(
        clients, module=module, objective=lambda rows: rows.mean(
            nn.functional.cross_entropy(rows.output, rows.target, reduction="none")
        ),
    )  # fmt: skip
    found, record_ = [], products.large_by_onednn

    def counted(module):
        record_(module)
        found.extend(n for n in module.graph.nodes if "product" in n.meta)

    monkeypatch.setattr("fedlib.engine.record.large_by_onednn", counted)
    method, often = fl.FedAvg(0.5, 3, 3), {"rounds": 5, "seeds": [0, 1], "progress": False}
    fast = fl.run(method, problem, **often)
    slow = fl.run(method, problem, engine=fl.Loop, **often)
    assert found
    torch.testing.assert_close(fast.state.w, slow.state.w, atol=1e-5, rtol=0)


@needs
def test_a_run_of_large_products_is_replayed_and_its_cost_counts_them(monkeypatch):
    monkeypatch.setattr(compiled, "LONG", 0.0)
    x, y = normal(M, K), normal(K, N, seed=1)
    step = record(torch.mm, x, y)
    assert compiled.rounds_of_a_call(step, step, 100, compiled.Schedule(1)) == 0
    assert compiled.cost(step.graph)[0] > compiled.PER_FLOP * 2 * M * K * N


def test_beside_code_of_ours_all_is_left_alone():
    def both(x, y):
        product = x @ y
        return product, min_norm((product[:2] @ product[:2].T).double()[None])

    x, y = normal(M, K), normal(K, N, seed=1)
    replay = record(both, x, y)
    assert not ways_of(replay)
    assert torch.equal(replay(x, y)[0], x @ y)
