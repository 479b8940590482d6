"""Several rounds in one compiled call, for runs that are long enough to earn it back.

The recorded operations of some rounds, one after the other, go through inductor, torch's own
compiler, which makes few C++ kernels of them: no time is lost between operations, and what is
small stays in registers. The compiler takes seconds to minutes, so that only long runs gain.
Compiled rounds agree with replayed ones up to rounding; what does not is not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from fedlib.core.problem import Draw
from fedlib.core.schedule import Schedule
from fedlib.core.trees import index_tree, stack_trees
from fedlib.engine.launches import Function, launches
from fedlib.engine.operations import has_own_code
from fedlib.engine.record import Recording

#: Seconds that all rounds would take by replay, from which on a run is compiled. Compilation takes
#: 4 to 60 s the first time, a tenth of that from torch's cache.
LONG = 60.0
#: Entries of the largest tensor of a round up to which compiled code was faster: beyond, the time
#: is that of memory, and of products that are called all the same.
LARGEST = 2**22
aten = torch.ops.aten
TURN, TURNED = aten.permute.default, [0, 2, 1]
VIEWS = (aten.view.default, aten._unsafe_view.default)
Named = dict[str, Float[Tensor, "..."]]

MOST = 8  # rounds of one call
SMALL = 3e-4  # seconds: from there on a round is long beside its call

#: How the compiler is asked, the fastest way first; the first whose code is right is taken. To keep
#: what several steps read (gathered rows, say) saves up to a fifth of the time, and torch 2.13 then
#: now and then reads a tensor before a `scatter` has written to it.
WAYS: tuple[dict[str, Any], ...] = ({"realize_reads_threshold": 1}, {})

#: What the operations of a replay take: each of them, an entry of its result, a multiplication.
PER_OPERATION, PER_ENTRY, PER_FLOP = 1.5e-6, 3e-10, 1e-11


def cost(graph: GraphModule) -> tuple[float, int]:
    """About how many seconds a replay of the operations takes; entries of the largest tensor.

    By number and shapes alone, so that the same run is treated alike wherever it runs.
    """
    seconds, largest = 0.0, 0
    for node in graph.graph.nodes:
        if node.op == "call_function":
            entries = sum(x.numel() for x in _tensors(node))
            seconds += PER_OPERATION + PER_ENTRY * entries + PER_FLOP * _flops(node)
            largest = max(largest, entries)
    return seconds, largest


def _tensors(node: Node) -> list[Tensor]:
    found = pytree.tree_leaves(node.meta.get("val"))
    return [x for x in found if isinstance(x, Tensor)]


def _flops(node: Node) -> float:
    done = node.meta.get("product", node.target)
    counted = flop_registry.get(getattr(done, "overloadpacket", None))
    if counted is None:
        return 0.0
    args, kwargs = pytree.tree_map_only(Node, lambda n: n.meta["val"], (node.args, node.kwargs))
    return float(counted(*args, **kwargs, out_val=node.meta["val"]))


def rounds_of_a_call(step: Any, measure: Any, rounds: int, schedule: Schedule) -> int:
    """How many rounds go into a call: few if they are long, and in step with the evaluations.

    None at all if all rounds are too short to earn a compilation back, or too large to gain.
    """
    if not (isinstance(step, Recording) and isinstance(measure, Recording)):
        return 0
    if _stays(step.graph):
        return 0
    seconds, largest = cost(step.graph)
    evaluating = len(schedule.before(rounds)) * cost(measure.graph)[0]
    if rounds * seconds + evaluating < LONG or largest > LARGEST:
        return 0
    most, every = MOST if seconds < SMALL else 1, schedule.every
    if isinstance(every, str):  # a power of 2, as the distances are
        return most
    if every <= most:  # evaluations are part of the calls
        return 0 if _stays(measure.graph) else most // every * every
    return max(k for k in range(1, most + 1) if every % k == 0)


def _stays(graph: GraphModule) -> bool:
    """Whether replaying is best: large tensors, large products, or code of ours, take the time."""
    large = any("product" in node.meta for node in graph.graph.nodes)
    return bool(graph.meta.get("in portions")) or large or has_own_code(graph.graph)


class Kernels(Recording):
    """A recording of `(*fixed, state, draws) -> (state, ...)` that is compiled.

    Raises
    ------
    Exception
        of torch's compiler, where no C++ compiler is there or an operation cannot be compiled.
    RuntimeError
        if what it made gives other numbers than the operations.
    """

    def __init__(self, function: Callable[..., Any], example: Any, fixed: tuple[Any, ...]) -> None:
        super().__init__(function, example, fixed)
        turn_tall_products(self.graph)
        inputs = [*self.always, *(x.contiguous() for x in pytree.tree_leaves(example))]
        first = len(self.always)
        state = slice(first, first + len(pytree.tree_leaves(example[0])))
        for way in WAYS:
            whole, made = compiled_once(self.graph, inputs, way)
            if agree(whole, self.graph, inputs, state):
                self.again: Function = launches(whole, made, inputs, first)
                return
        raise RuntimeError("torch's compiler makes other numbers of these operations")


def turn_tall_products(module: GraphModule) -> None:
    """Give many small products their longer side as columns, where MKL takes half of the time.

    What is compiled may have any layout, so that turning the results back costs nothing.
    """
    for node in module.graph.nodes:
        if node.target in VIEWS:  # of what may have another layout now
            node.target = aten.reshape.default
        if node.target is aten.bmm.default:
            _, rows, columns = node.meta["val"].shape
            if columns < rows:
                with module.graph.inserting_before(node):
                    a, b = (module.graph.call_function(TURN, (x, TURNED)) for x in node.args)
                    product = module.graph.call_function(aten.bmm.default, (b, a))
                node.target, node.args = TURN, (product, TURNED)
    module.recompile()


def compiled_once(
    graph: GraphModule, inputs: Sequence[Shaped[Tensor, "..."]], way: Mapping[str, Any]
) -> tuple[Function, list[Any]]:
    """What inductor makes of a graph, as a function and as its own record."""
    from torch._inductor import config  # takes seconds, and few runs need it

    settings = {
        "cpp.threads": torch.get_num_threads(),
        "compile_threads": 1,
        "cpp_cache_precompile_headers": False,  # half a minute, the first time
        **way,
    }
    made: list[Any] = []
    with config.patch(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own lowerings
        from torch._inductor.compile_fx import compile_fx, compile_fx_inner

        def inner(*given: Any, **options: Any) -> Any:
            made.append(compile_fx_inner(*given, **options))
            return made[-1]

        whole: Any = compile_fx(graph, list(inputs), inner_compile=inner)
        whole(*inputs)  # what is put off until the first call is done here
    return whole, made


def agree(
    one: Function, other: Function, inputs: Sequence[Shaped[Tensor, "..."]], state: slice
) -> bool:
    """Whether two functions give the same but for rounding, in two calls one after the other.

    What they give first is the state, which the second call begins from.
    """
    count = state.stop - state.start
    for _ in range(2):
        found, expected = one(*inputs), other(*inputs)
        if not all(map(near, found, expected)):
            return False
        after = [x.contiguous() for x in expected[:count]]
        inputs = [*inputs[: state.start], *after, *inputs[state.stop :]]
    return True


def near(found: Shaped[Tensor, "..."], expected: Shaped[Tensor, "..."]) -> bool:
    """Whether they are equal, to half of the digits of the largest entry if they are no counts."""
    if not expected.is_floating_point():
        return torch.equal(found, expected)
    much = torch.finfo(expected.dtype).eps ** 0.5
    finite = expected.nan_to_num(posinf=0.0, neginf=0.0).abs()
    most = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(found, expected, rtol=much, atol=much * most, equal_nan=True)


class Unrolled:
    """`rounds` rounds in one compiled call, with the metrics of those that are evaluated.

    Parameters
    ----------
    step : `(*fixed, state, draw) -> (state, info)`, one round.
    measure : `(*fixed, w) -> metrics`.
    fixed, state, draw : an example of what they take.
    rounds : of one call.
    schedule : the evaluated rounds; those of a call are part of it if there are any in every
        call, else the caller makes them.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        measure: Callable[..., Any],
        fixed: tuple[Any, ...],
        state: Any,
        draw: Draw,
        rounds: int,
        schedule: Schedule,
    ) -> None:
        self.rounds, self.evaluates = rounds, schedule.always(rounds)

        def unrolled(*arguments: Any) -> Any:
            *same, state, draws = arguments
            metrics, infos = [], []
            for t in range(rounds):
                if self.evaluates and schedule.due(t):
                    metrics.append(measure(*same, state.w))
                state, info = step(*same, state, index_tree(draws, t))
                infos.append(info)
            return state, block(infos), block(metrics) if metrics else {}

        draws = stack_trees([draw] * rounds)
        self.kernels = Kernels(unrolled, (state, draws), fixed)

    def __call__(self, state: Any, draws: Draw) -> tuple[Any, Named, Named]:
        """The state after the calls for some draws, and their infos and metrics `[G, S, T]`."""
        kernels = self.kernels
        leaves: Sequence[Tensor] = pytree.tree_leaves(state)
        drawn, count, blocks = pytree.tree_leaves(draws), len(leaves), []
        for first in range(0, len(draws.participants), self.rounds):
            few = [x[first : first + self.rounds] for x in drawn]
            # compiled for one layout: what a round returns may have another
            found = kernels.again(*kernels.always, *(x.contiguous() for x in (*leaves, *few)))
            leaves = found[:count]
            blocks.append(found[count:])
        rest = [torch.cat(each, -1) for each in zip(*blocks, strict=True)]
        after: tuple[Any, Named, Named] = pytree.tree_unflatten([*leaves, *rest], kernels.out)
        return after


def block(steps: Sequence[Mapping[str, Float[Tensor, "..."]]]) -> Named:
    """One tensor `[..., T]` a name in place of T a name."""
    return {k: torch.stack([s[k] for s in steps], -1) for k in steps[0]}
