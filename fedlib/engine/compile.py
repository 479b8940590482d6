"""Compilation: several rounds in one call of torch's compiler, for runs that are long enough.

The compiler turns the captured operations of consecutive rounds into few kernels, so small values
stay in registers and a GPU needs one launch. Compiling takes seconds to minutes. Two calls compare
the compiled function with the captured one; if they differ, the run is not compiled.
"""

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from fedlib.core.problem import Draw
from fedlib.core.trees import index_tree, stack_trees
from fedlib.engine.averages import average_early
from fedlib.engine.capture import CAPTURING, Captured, capture, merge_equal_nodes
from fedlib.engine.kernels import choose_kernels
from fedlib.engine.local_steps import fuse_steps
from fedlib.shapes import AnyTensor

LONG = 60.0  # seconds; a run that would take longer without compilation is compiled
MOST = 8  # the largest number of rounds in one call
SMALL = 1e-3  # seconds; the overhead of a call is negligible in rounds that take longer
PER_OPERATION = 3e-6  # seconds that a captured operation costs,
PER_ENTRY = 3e-10  # those of an entry of its result,
PER_FLOP = 1e-11  # and those of a multiplication
NAMESPACE = "fedlib"  # of this library's own operators

#: The passes over a long run's captured round.
SHORTER = (merge_equal_nodes, average_early, choose_kernels, fuse_steps)

Named = dict[str, Float[Tensor, "..."]]


def estimate_seconds(module: GraphModule) -> float:
    """Estimate the seconds that the operations take, from their number and shapes alone.

    The estimate is independent of the machine, so the same run is compiled everywhere or nowhere.
    """
    seconds = 0.0
    for node in module.graph.nodes:
        if node.op == "call_function":
            values = pytree.tree_leaves(node.meta.get("val"))
            entries = sum(x.numel() for x in values if isinstance(x, Tensor))
            flops = _count_flops(node)
            seconds += PER_OPERATION + PER_ENTRY * entries + PER_FLOP * flops
    return seconds


def _count_flops(node: Node) -> float:
    count_flops = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count_flops is None:
        return 0.0
    arguments = (node.args, node.kwargs)
    args, kwargs = pytree.tree_map_only(Node, lambda node: node.meta["val"], arguments)
    return float(count_flops(*args, **kwargs, out_val=node.meta["val"]))


def rounds_per_call(
    step: Captured,
    rounds: int,
    evaluate_every: int,
) -> int:
    """The number of rounds in a call: a divisor of the evaluation interval, 1 for long rounds.

    It is 0 if all rounds together are too short to justify a compilation, or if they call this
    library's own operators, such as a solver for weights.
    """
    for node in step.graph.graph.nodes:
        if getattr(node.target, "namespace", "") == NAMESPACE:
            return 0
    seconds = estimate_seconds(step.graph)
    if rounds * seconds < LONG:
        return 0
    most = MOST if seconds < SMALL else 1
    return max(k for k in range(1, most + 1) if evaluate_every % k == 0)


class CompiledRounds:
    """Several rounds `(*fixed, state, draw) -> (state, info)` in one compiled call.

    `state` and `draw` are examples of a round's arguments; `fixed` is the same in all rounds.
    Raises an Exception of torch's compiler if there is no C++ compiler or an operation cannot be
    compiled; RuntimeError if the compiled function returns other numbers than the captured one.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        fixed: tuple[Any, ...],
        state: Any,
        draw: Draw,
        rounds: int,
    ) -> None:
        self.rounds = rounds
        self.fixed = [x.contiguous() for x in pytree.tree_leaves(fixed)]

        def unrolled(
            fixed: tuple[Any, ...],
            state: Any,
            draws: Draw,
        ) -> Any:
            infos = []
            for t in range(rounds):
                state, info = step(*fixed, state, index_tree(draws, t))
                infos.append(info)
            return state, stack_rounds(infos)

        draws = stack_trees([draw] * rounds)
        self.captured = capture(unrolled, fixed, state, draws, passes=SHORTER)
        self.on_gpu = state.w.is_cuda
        leaves = pytree.tree_leaves((fixed, state, draws))
        example = [x.contiguous() for x in leaves]
        with CAPTURING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of torch's own lowerings
            self.function = compile_graph(self.captured.graph, example, self.on_gpu)
            check_same(self, partial(self.captured, fixed), state, draws)

    def __call__(self, state: Any, draws: Draw) -> tuple[Any, Named]:
        """The state after the draws' rounds, and their infos `[G, S, T]`."""
        leaves: list[Tensor] = pytree.tree_leaves(state)
        draw_leaves: list[Tensor] = pytree.tree_leaves(draws)
        count = len(leaves)
        infos: list[list[Tensor]] = []
        for start in range(0, len(draws.participants), self.rounds):
            of_call = slice(start, start + self.rounds)
            changing = leaves + [x[of_call] for x in draw_leaves]
            # compiled for one layout, but a round may return another
            arguments = self.fixed + [x.contiguous() for x in changing]
            # the next call overwrites results: those of a graph on a GPU, small ones on a CPU
            results = [x.clone() for x in self.function(*arguments)]
            leaves = list(results[:count])
            infos.append(list(results[count:]))
        curves = [torch.cat(blocks, -1) for blocks in zip(*infos, strict=True)]
        result: tuple[Any, Named] = pytree.tree_unflatten(leaves + curves, self.captured.outputs)
        return result


def compile_graph(
    graph: GraphModule,
    example: list[Any],
    on_gpu: bool,
) -> Callable[..., Any]:
    """Compile the operations for arguments of the example's shapes.

    On a CPU the graph goes directly to the compiler behind `torch.compile`. Its front end reads
    Python code, of which a captured graph has none, and would take time in every call.
    """
    compiled: Callable[..., Any]
    if on_gpu:
        compiled = torch.compile(graph, fullgraph=True, dynamic=False, mode="reduce-overhead")
        return compiled
    from torch._inductor import compile as compile_captured  # slow

    in_main_thread = threading.current_thread() is threading.main_thread()
    options: dict[str, Any] = {
        "cpp.threads": torch.get_num_threads(),
        "cpp_wrapper": True,  # C++ allocates the buffers, which is faster
        # small buffers are on the stack, which may be too small in other threads
        "aot_inductor.allow_stack_allocation": in_main_thread,
        # values that several steps read are stored, not recomputed by each: otherwise
        # a call's rounds would become slower with their number
        "realize_reads_threshold": 1,
        "cpp_cache_precompile_headers": False,  # it would take half a minute the first time
    }
    compiled = compile_captured(graph, example, options)
    return compiled


def check_same(
    compiled: Callable[..., Any],
    captured: Callable[..., Any],
    state: Any,
    draws: Draw,
) -> None:
    """Raise RuntimeError unless two functions agree up to rounding in two calls."""
    for _ in range(2):
        results = pytree.tree_leaves(compiled(state, draws))
        expected = captured(state, draws)
        for x, y in zip(results, pytree.tree_leaves(expected), strict=True):
            if not are_close(x, y):
                raise RuntimeError("torch's compiler makes other numbers of these operations")
        state = expected[0]


def are_close(x: AnyTensor, expected: AnyTensor) -> bool:
    """Whether tensors agree: whole numbers exactly, floats to half of the largest one's digits."""
    if not expected.is_floating_point():
        return torch.equal(x, expected)
    tolerance = torch.finfo(expected.dtype).eps ** 0.5
    finite = expected.nan_to_num(posinf=0.0, neginf=0.0).abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    absolute = tolerance * largest
    return torch.allclose(x, expected, rtol=tolerance, atol=absolute, equal_nan=True)


def stack_rounds(rounds: Sequence[Mapping[str, Float[Tensor, "..."]]]) -> Named:
    """For each name, stack the rounds' values into one tensor `[..., T]`."""
    curves = {}
    for name in rounds[0]:
        curves[name] = torch.stack([info[name] for info in rounds], -1)
    return curves
