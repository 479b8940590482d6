"""A method's rounds one after the other, without `run`."""

from fedlib import Vectorized, run
from fedlib.core.sampling import seeded


def walk(algorithm, problem, rounds, engine=Vectorized, seed=0, start=None):
    """Of every round: the state before it, the draw, the state after it, and what is reported."""
    state = algorithm.init(problem) if start is None else start
    rng = seeded(seed, "rounds")
    for _ in range(rounds):
        draw = algorithm.draw(problem, rng)
        next_state, info = algorithm.round(engine(problem), state, draw)
        yield state, draw, next_state, info
        state = next_state


def final_model(method, problem, rounds, **options):
    """The model of the first seed after some rounds."""
    trace = run(method, problem, rounds=rounds, progress=False, **options)
    return trace.state.w[0]
