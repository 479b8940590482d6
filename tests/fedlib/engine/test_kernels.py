"""Passes over captured rounds: products by oneDNN, and means before products."""

from functools import partial

import pytest
import torch

import fedlib as fl
from fedlib.engine import kernels
from fedlib.engine.averages import average_early
from fedlib.engine.capture import capture
from fedlib.engine.kernels import choose_kernels, processor_maker
from fedlib.engine.local_steps import fuse_steps
from fedlib.problems import classifier
from fedlib.problems.classification import Samples, linear_model, mlp_model
from tests.helpers.randoms import generator

CLIENTS = 6
ROWS = 50
FEATURES = 300
CLASSES = 40


@pytest.fixture
def onednn(monkeypatch):
    """As on a processor on which oneDNN is the faster library."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(kernels, "product_library", lambda: "onednn")


def random(*shape):
    return torch.randn(*shape, generator=generator())


def targets(captured):
    return [str(node.target) for node in captured.graph.graph.nodes if node.op == "call_function"]


def assert_same(function, *arguments, passes):
    """The captured function with the passes, which must give the function's values."""
    captured = capture(function, *arguments, passes=passes)
    torch.testing.assert_close(captured(*arguments), function(*arguments), rtol=1e-4, atol=1e-4)
    return targets(captured)


@pytest.mark.parametrize("turned", [False, True])
def test_a_large_product_is_computed_by_onednn(onednn, turned):
    a = random(400, 300)
    b = random(40, 300).T if turned else random(300, 40)
    assert "fedlib_kernels.mm.default" in assert_same(torch.mm, a, b, passes=[choose_kernels])


def test_a_small_product_and_one_in_float64_are_left_alone(onednn):
    small = random(20, 30), random(30, 40)
    double = random(400, 300).double(), random(300, 40).double()
    for pair in (small, double):
        assert "aten.mm.default" in assert_same(torch.mm, *pair, passes=[choose_kernels])


def test_many_large_products_are_computed_by_onednn(onednn):
    pair = random(3, 400, 300), random(3, 300, 40)
    assert "fedlib_kernels.bmm.default" in assert_same(torch.bmm, *pair, passes=[choose_kernels])


def test_a_product_with_a_bias_keeps_its_bias(onednn):
    names = assert_same(
        torch.addmm, random(40), random(400, 300), random(300, 40), passes=[choose_kernels]
    )
    assert "fedlib_kernels.mm.default" in names


@pytest.mark.parametrize("side", ["left", "right"])
def test_clients_that_share_a_matrix_have_one_product(onednn, side):
    shared = random(CLASSES, FEATURES)
    separate = random(CLIENTS, ROWS, FEATURES)

    def on_the_left(shared, separate):
        return torch.bmm(shared.expand(CLIENTS, -1, -1), separate.transpose(1, 2))

    def on_the_right(shared, separate):
        return torch.bmm(separate, shared.T.unsqueeze(0).expand(CLIENTS, -1, -1))

    function = on_the_left if side == "left" else on_the_right
    names = assert_same(function, shared, separate, passes=[choose_kernels])
    assert "fedlib_kernels.mm.default" in names
    assert "aten.bmm.default" not in names


def test_long_rows_are_copied_whole(onednn):
    data = random(3000, 300)
    places = torch.randint(3000, (2000,), generator=generator())
    names = assert_same(
        lambda data, places: data.index_select(0, places), data, places, passes=[choose_kernels]
    )
    assert names == ["fedlib_kernels.rows.default"]


def test_nothing_changes_where_torch_is_the_faster_library(monkeypatch):
    monkeypatch.setattr(kernels, "product_library", lambda: "torch")
    names = assert_same(torch.mm, random(400, 300), random(300, 40), passes=[choose_kernels])
    assert names == ["aten.mm.default"]


@pytest.mark.parametrize(
    ("text", "maker"),
    [
        ("processor : 0\nvendor_id\t: AuthenticAMD\nmodel : 1\n", "AuthenticAMD"),
        ("vendor_id : GenuineIntel\n", "GenuineIntel"),
        ("Features : fp asimd\n", ""),
    ],
)
def test_the_maker_is_read_from_linux(tmp_path, monkeypatch, text, maker):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert processor_maker(path) == maker
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert processor_maker(tmp_path / "missing") == ""


def gradients(errors, rows):
    """The gradients of a linear layer, one for each client."""
    return torch.bmm(errors.transpose(1, 2), rows)


def averaged_step(w, errors, rows):
    step = 0.1 * gradients(errors, rows).reshape(CLIENTS, -1)
    return (w - step).mean(0)


def averaged_layers(w, errors, rows):
    flat = gradients(errors, rows).flatten(1)
    bias = errors.sum(1)
    return (w - 0.1 * torch.cat([flat, bias], 1) / 2.0).mean(0)


@pytest.mark.parametrize("function", [averaged_step, averaged_layers])
def test_a_mean_moves_to_the_product(function):
    biases = CLASSES if function is averaged_layers else 0
    w = random(CLASSES * FEATURES + biases)
    errors = random(CLIENTS, ROWS, CLASSES)
    rows = random(CLIENTS, ROWS, FEATURES)
    names = assert_same(function, w, errors, rows, passes=[average_early])
    assert "aten.mm.default" in names
    assert "aten.bmm.default" not in names


def test_a_mean_stays_where_the_products_are_needed():
    def function(errors, rows):
        products = gradients(errors, rows)
        return products.mean(0), products.abs().amax((1, 2))

    errors = random(CLIENTS, ROWS, CLASSES)
    rows = random(CLIENTS, ROWS, FEATURES)
    names = assert_same(function, errors, rows, passes=[average_early])
    assert "aten.bmm.default" in names


def test_a_mean_stays_behind_what_is_not_linear():
    def function(errors, rows):
        return gradients(errors, rows).relu().mean(0)

    errors = random(CLIENTS, ROWS, CLASSES)
    rows = random(CLIENTS, ROWS, FEATURES)
    assert "aten.bmm.default" in assert_same(function, errors, rows, passes=[average_early])


STEP = "fedlib_kernels.descend.default"
IN_PLACE = "fedlib_kernels.descend_in_place.default"
LAYERS = 2 * CLASSES * FEATURES + CLASSES


def layers(errors, rows):
    """The gradients of two layers and a bias, joined for each client."""
    blocks = [gradients(errors, rows).flatten(1), errors.sum(1), gradients(rows, errors).flatten(1)]
    return torch.cat(blocks, 1)


def plain_step(u, errors, rows):
    return u - 0.1 * layers(errors, rows)


def another_reader(u, errors, rows):
    step = 0.1 * layers(errors, rows)
    return u - step, step


def another_order(u, errors, rows):
    return 0.1 * layers(errors, rows) - u


def no_product(u, errors, rows):
    return u - 0.1 * torch.cat([errors.sum(1), layers(errors, rows).sin()[:, CLASSES:]], 1)


def a_number_of_the_run(u, errors, rows):
    return u - u.flatten()[0] * layers(errors, rows)


def steps(monkeypatch, function, u):
    """The operations of a step from `u`, captured with the passes."""
    monkeypatch.setattr(kernels, "LARGE", 1)
    errors = random(CLIENTS, ROWS, CLASSES)
    rows = random(CLIENTS, ROWS, FEATURES)
    return assert_same(function, u, errors, rows, passes=[choose_kernels, fuse_steps])


@pytest.mark.parametrize("shape", [(LAYERS,), (CLIENTS, LAYERS)])
def test_a_step_subtracts_the_products_of_one_client_after_another(onednn, monkeypatch, shape):
    names = steps(monkeypatch, plain_step, random(*shape))
    assert STEP in names
    assert "aten.cat.default" not in names
    assert "fedlib_kernels.bmm.default" not in names


@pytest.mark.parametrize(
    "function", [another_reader, another_order, no_product, a_number_of_the_run]
)
def test_a_step_of_another_form_is_left_alone(onednn, monkeypatch, function):
    assert STEP not in steps(monkeypatch, function, random(CLIENTS, LAYERS))


def two_steps(u, errors, rows):
    u_next = plain_step(u, errors, rows)
    return plain_step(u_next, errors + u_next.mean(), rows)


def two_steps_and_the_first(u, errors, rows):
    u_next = plain_step(u, errors, rows)
    return plain_step(u_next, errors, rows), u_next[:, 1:].sum(1)


def test_a_second_step_changes_the_models_in_place(onednn, monkeypatch):
    u = random(LAYERS)
    copied = u.clone()
    names = steps(monkeypatch, two_steps, u)
    assert names.count(STEP) == 1
    assert names.count(IN_PLACE) == 1
    assert torch.equal(u, copied)


def weights_of_models(u):
    """The transposed matrices of the first layer."""
    weights = u.split([CLASSES * FEATURES, CLASSES, CLASSES * FEATURES], 1)[0]
    return weights.reshape(CLIENTS, CLASSES, FEATURES).transpose(1, 2)


def product_after_steps(u, errors, rows, inputs):
    """The models after two steps, and a product with their first blocks."""
    u_next = plain_step(u, errors, rows)
    u_last = plain_step(u_next, errors + u_next.mean(), rows)
    return u_last, torch.bmm(inputs(rows, u_last), weights_of_models(u_last))


def next_rows(rows, u_last):
    return rows.flip(1) + 1


def rows_of_the_models(rows, u_last):
    return rows + u_last.mean()


def product_after_one_step(u, errors, rows):
    u_next = plain_step(u, errors, rows)
    return u_next, torch.bmm(next_rows(rows, u_next), weights_of_models(u_next))


def test_a_step_that_is_not_in_place_computes_the_next_product_too(onednn, monkeypatch):
    names = steps(monkeypatch, product_after_one_step, random(LAYERS))
    assert names.count("fedlib_kernels.descend_with_product.default") == 1
    assert "fedlib_kernels.bmm.default" not in names


def product_after_three_steps(u, errors, rows):
    """The only product that can be early comes after the last step."""
    u_second = plain_step(plain_step(u, errors, rows), errors + 1, rows)
    u_last = plain_step(u_second, errors + u_second.mean(), rows)
    return u_last, torch.bmm(next_rows(rows, u_last), weights_of_models(u_last))


def test_no_step_computes_a_product_that_comes_after_another_step(onednn, monkeypatch):
    names = steps(monkeypatch, product_after_three_steps, random(LAYERS))
    assert names.count(STEP) == 1
    assert names.count(IN_PLACE) == 1
    assert names.count("fedlib_kernels.descend_and_multiply.default") == 1


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (next_rows, "fedlib_kernels.descend_and_multiply.default"),
        (rows_of_the_models, IN_PLACE),
    ],
)
def test_a_step_computes_the_next_product_with_its_models(onednn, monkeypatch, inputs, expected):
    function = partial(product_after_steps, inputs=inputs)
    names = steps(monkeypatch, function, random(LAYERS))
    assert names.count(expected) == 1
    assert names.count("fedlib_kernels.bmm.default") == (inputs is rows_of_the_models)


def test_models_that_are_read_after_a_step_stay(onednn, monkeypatch):
    names = steps(monkeypatch, two_steps_and_the_first, random(LAYERS))
    assert names.count(STEP) == 2
    assert IN_PLACE not in names


def test_the_smaller_factor_is_the_one_that_is_copied(onednn):
    wide = random(300, 40).T  # [40, 300]: as a model's weights in a forward product
    result = kernels.multiply(random(20, 40), wide)
    assert result.shape == (20, 300)
    assert not result.is_contiguous()


@pytest.mark.parametrize("model", ["linear", "network"])
@pytest.mark.parametrize("local_steps", [1, 3])
def test_a_run_is_the_same_with_and_without_the_passes(onednn, monkeypatch, model, local_steps):
    monkeypatch.setattr(kernels, "LARGE", 100_000)
    X = torch.rand(1200, 300, generator=generator())
    y = torch.arange(1200) % 10
    rows = Samples(X, y)
    network = mlp_model(300, 64, 10, None) if model == "network" else linear_model(300, 10)
    problem = classifier(rows, rows, torch.arange(1200).view(10, 120), network)
    method = fl.FedAvg(
        lr=0.1,
        local_steps=local_steps,
        participants=10,
        batch_size=100,
    )

    def run(capture_from):
        monkeypatch.setattr("fedlib.engine.batch.CAPTURE", capture_from)
        return fl.run(method, problem, rounds=10, evaluate_every=5, progress=False)

    fast = run(capture_from=10)
    plain = run(capture_from=100)
    assert not torch.equal(fast.state.w, plain.state.w)  # the passes changed some roundings
    torch.testing.assert_close(fast.state.w, plain.state.w, rtol=1e-4, atol=1e-6)


def test_a_run_records_the_library_of_its_products():
    problem = fl.problems.quadratics()
    trace = fl.run(fl.FedAvg(0.1, 2, 4), problem, rounds=2, progress=False)
    assert trace.provenance["products"] == kernels.product_library()
