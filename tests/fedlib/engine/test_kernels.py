"""Passes over captured rounds: products by oneDNN, and means before products."""

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
from tests.helpers.randoms import generator, numbers, uniform

CLIENTS = 6
ROWS = 50
FEATURES = 300
CLASSES = 40
MM = "fedlib_kernels.mm.default"
BMM = "fedlib_kernels.bmm.default"
PLAIN_MM = "aten.mm.default"
PLAIN_BMM = "aten.bmm.default"


@pytest.fixture
def onednn(monkeypatch):
    """As on a processor on which oneDNN is the faster library."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(kernels, "product_library", lambda: "onednn")


def operations(function, *arguments, passes=(choose_kernels,)):
    """Those of the function, captured with passes; it must still give the function's values."""
    captured = capture(function, *arguments, passes=passes)
    torch.testing.assert_close(
        captured(*arguments),
        function(*arguments),
        rtol=1e-4,
        atol=1e-4,
    )
    return [str(node.target) for node in captured.graph.graph.nodes if node.op == "call_function"]


LARGE = numbers(400, 300)
OTHER = numbers(300, 40)
PLACES = torch.randint(3000, (2000,), generator=generator())


def select(data, places):
    return data.index_select(0, places)


@pytest.mark.parametrize(
    ("function", "arguments", "operation"),
    [
        (torch.mm, (LARGE, OTHER), MM),
        (torch.mm, (LARGE, numbers(40, 300).T), MM),
        (torch.addmm, (numbers(40), LARGE, OTHER), MM),
        (torch.bmm, (LARGE.expand(3, -1, -1).clone(), OTHER.expand(3, -1, -1).clone()), BMM),
        (torch.mm, (numbers(20, 30), numbers(30, 40)), PLAIN_MM),
        (torch.mm, (LARGE.double(), OTHER.double()), PLAIN_MM),
        (select, (numbers(3000, 300), PLACES), "fedlib_kernels.rows.default"),
    ],
)
def test_large_products_and_long_rows_are_computed_by_onednn(
    onednn,
    function,
    arguments,
    operation,
):
    assert operation in operations(function, *arguments)


def test_nothing_changes_where_torch_is_the_faster_library(monkeypatch):
    monkeypatch.setattr(kernels, "product_library", lambda: "torch")
    assert operations(torch.mm, LARGE, OTHER) == [PLAIN_MM]


def on_the_left(shared, separate):
    return torch.bmm(shared.expand(CLIENTS, -1, -1), separate.transpose(1, 2))


def on_the_right(shared, separate):
    return torch.bmm(separate, shared.T.unsqueeze(0).expand(CLIENTS, -1, -1))


@pytest.mark.parametrize("function", [on_the_left, on_the_right])
def test_clients_that_share_a_matrix_have_one_product(onednn, function):
    names = operations(function, numbers(CLASSES, FEATURES), numbers(CLIENTS, ROWS, FEATURES))
    assert MM in names
    assert PLAIN_BMM not in names


def test_the_smaller_factor_is_the_one_that_is_copied(onednn):
    wide = numbers(300, 40).T  # [40, 300]: as a model's weights in a forward product
    result = kernels.multiply(numbers(20, 40), wide)
    assert result.shape == (20, 300)
    assert not result.is_contiguous()


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


def test_another_processor_has_no_maker(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert processor_maker(tmp_path / "missing") == ""


ERRORS = numbers(CLIENTS, ROWS, CLASSES)
INPUTS = numbers(CLIENTS, ROWS, FEATURES, seed=1)
SIZE = CLASSES * FEATURES


def gradients(errors, rows):
    """The gradients of a linear layer, one for each client."""
    return torch.bmm(errors.transpose(1, 2), rows)


def averaged_step(w, errors, rows):
    step = 0.1 * gradients(errors, rows).reshape(CLIENTS, -1)
    return (w[:SIZE] - step).mean(0)


def averaged_layers(w, errors, rows):
    flat = gradients(errors, rows).flatten(1)
    bias = errors.sum(1)
    return (w - 0.1 * torch.cat([flat, bias], 1) / 2.0).mean(0)


def needed_products(w, errors, rows):
    products = gradients(errors, rows)
    return products.mean(0), products.abs().amax((1, 2))


def mean_behind_a_bend(w, errors, rows):
    return gradients(errors, rows).relu().mean(0)


@pytest.mark.parametrize(
    ("function", "moves"),
    [
        (averaged_step, True),
        (averaged_layers, True),
        (needed_products, False),
        (mean_behind_a_bend, False),
    ],
)
def test_a_mean_moves_to_a_product_that_nothing_else_needs(function, moves):
    w = numbers(SIZE + CLASSES)
    names = operations(
        function,
        w,
        ERRORS,
        INPUTS,
        passes=[average_early],
    )
    assert (PLAIN_MM in names) == moves
    assert (PLAIN_BMM in names) != moves


STEP = "fedlib_kernels.descend.default"
IN_PLACE = "fedlib_kernels.descend_in_place.default"
AND_MULTIPLY = "fedlib_kernels.descend_and_multiply.default"
WITH_PRODUCT = "fedlib_kernels.descend_with_product.default"
LAYERS = 2 * SIZE + CLASSES


def layers(errors, rows):
    """The gradients of two layers and a bias, joined for each client."""
    top = gradients(errors, rows).flatten(1)
    bottom = gradients(rows, errors).flatten(1)
    return torch.cat([top, errors.sum(1), bottom], 1)


def step(u, errors, rows):
    return u - 0.1 * layers(errors, rows)


def step_that_is_read(u, errors, rows):
    change = 0.1 * layers(errors, rows)
    return u - change, change


def another_order(u, errors, rows):
    return 0.1 * layers(errors, rows) - u


def no_product(u, errors, rows):
    sines = layers(errors, rows).sin()[:, CLASSES:]
    return u - 0.1 * torch.cat([errors.sum(1), sines], 1)


def a_number_of_the_run(u, errors, rows):
    return u - u.flatten()[0] * layers(errors, rows)


def two_steps(u, errors, rows):
    u_next = step(u, errors, rows)
    return step(u_next, errors + u_next.mean(), rows)


def two_steps_and_the_first(u, errors, rows):
    u_next = step(u, errors, rows)
    return step(u_next, errors, rows), u_next[:, 1:].sum(1)


def product_with(u, inputs):
    """A product with the transposed matrices of the models' first layer."""
    weights, _, _ = u.split([SIZE, CLASSES, SIZE], 1)
    return torch.bmm(inputs, weights.reshape(CLIENTS, CLASSES, FEATURES).transpose(1, 2))


def product_after_one_step(u, errors, rows):
    u_next = step(u, errors, rows)
    return u_next, product_with(u_next, rows.flip(1) + 1)


def product_after_two_steps(u, errors, rows):
    u_last = two_steps(u, errors, rows)
    return u_last, product_with(u_last, rows.flip(1) + 1)


def product_with_rows_of_the_models(u, errors, rows):
    u_last = two_steps(u, errors, rows)
    return u_last, product_with(u_last, rows + u_last.mean())


def product_after_three_steps(u, errors, rows):
    """The only product that can be early comes after the last step."""
    u_second = step(step(u, errors, rows), errors + 1, rows)
    u_last = step(u_second, errors + u_second.mean(), rows)
    return u_last, product_with(u_last, rows.flip(1) + 1)


FUSED = [
    (step, {STEP: 1}),
    (step_that_is_read, {PLAIN_BMM: 0, BMM: 2}),
    (another_order, {BMM: 2}),
    (no_product, {BMM: 2}),
    (a_number_of_the_run, {BMM: 2}),
    (two_steps, {STEP: 1, IN_PLACE: 1}),
    (two_steps_and_the_first, {STEP: 2}),  # models that are read after a step stay
    (product_after_one_step, {WITH_PRODUCT: 1}),
    (product_after_two_steps, {STEP: 1, AND_MULTIPLY: 1}),
    (product_with_rows_of_the_models, {STEP: 1, IN_PLACE: 1, BMM: 1}),
    (product_after_three_steps, {STEP: 1, IN_PLACE: 1, AND_MULTIPLY: 1}),
]


@pytest.mark.parametrize("start", [(LAYERS,), (CLIENTS, LAYERS)])
@pytest.mark.parametrize(("function", "expected"), FUSED)
def test_steps_subtract_the_products_of_one_client_after_another(
    onednn,
    monkeypatch,
    function,
    expected,
    start,
):
    """How often each fused operation and each remaining product stands in the captured function."""
    monkeypatch.setattr(kernels, "LARGE", 1)
    u = numbers(*start)
    unchanged = u.clone()
    names = operations(
        function,
        u,
        ERRORS,
        INPUTS,
        passes=[choose_kernels, fuse_steps],
    )
    for operation in (STEP, IN_PLACE, AND_MULTIPLY, WITH_PRODUCT, BMM):
        assert names.count(operation) == expected.get(operation, 0), operation
    assert torch.equal(u, unchanged)


@pytest.mark.parametrize(
    ("network", "local_steps"),
    [(linear_model(300, 10), 1), (mlp_model(300, 64, 10, None), 3)],
)
def test_a_run_is_the_same_with_and_without_the_passes(onednn, monkeypatch, network, local_steps):
    monkeypatch.setattr(kernels, "LARGE", 100_000)
    rows = Samples(uniform(1200, 300).float(), torch.arange(1200) % 10)
    problem = classifier(rows, rows, torch.arange(1200).view(10, 120), network)
    method = fl.FedAvg(lr=0.1, local_steps=local_steps, participants=10, batch_size=100)

    def run(capture_from):
        monkeypatch.setattr("fedlib.engine.batch.CAPTURE", capture_from)
        return fl.run(method, problem, rounds=10, evaluate_every=5).state.w

    fast = run(capture_from=10)
    plain = run(capture_from=100)
    assert not torch.equal(fast, plain)  # the passes changed some roundings
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-6)


def test_a_run_records_the_library_of_its_products():
    trace = fl.run(fl.FedAvg(0.1, 2, 4), fl.problems.quadratics(), rounds=2)
    assert trace.provenance["products"] == kernels.product_library()
