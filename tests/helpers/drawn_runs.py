"""Whether the labels of a figure name the runs that are drawn under them."""

import re
from functools import cache
from itertools import combinations


class NamedRuns:
    """The runs of a study, and what they may be called."""

    def __init__(self, traces):
        self.plain = traces

    def words(self, curve):
        """Words that a curve may be called by, and how much one of them tells."""
        config = self.plain[curve[0]].config
        method = words(str(config["algorithm"]))
        problem = words(str(config["problem"]))
        taking_part = participation_words(config)
        return (words(" ".join(curve)), 1.0), (method, 2.0), (taking_part, 2.0), (problem, 0.5)


def participation_words(config):
    """What figures call a run by who takes part in a round."""
    clients = config["problem"].get("clients")
    participants = config["algorithm"].get("participants")
    if clients == 1:
        return {"centralized"}
    return {"all"} if clients is not None and participants == clients else set()


@cache
def words(text):
    """The words and numbers of a text, numbers without superfluous digits."""
    tokens = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?|[^\W\d_]+", text)
    return {f"{float(x):g}" if x[0].isdigit() else x.lower() for x in tokens}


def likeness(label_words, known_words):
    """How many of the words are among the known, a word for three numbers; endings may differ."""
    points = len(label_words & known_words)
    for word in label_words:
        if not word[0].isdigit() and any(is_related(word, known) for known in known_words):
            points += 2
    return points


def is_related(word, known):
    """Whether two words are equal, or one of some length begins with the other."""
    if word == known:
        return True
    begins = known.startswith(word) or word.startswith(known)
    return begins and min(len(word), len(known)) > 3


def fit(label, curves, described):
    """How well a label fits curves, on average."""
    label_words = words(label)
    points = 0.0
    for curve in curves:
        for known_words, weight in described[curve]:
            points += weight * likeness(label_words, known_words)
    return points / len(curves)


def exchanged(runs, series):
    """(pairs that are told apart, pairs, sentences on pairs whose labels fit better exchanged)."""
    described = {}
    for _, _, curves in series:
        described.update({curve: runs.words(curve) for curve in curves})
    distinct = 0
    pairs = 0
    wrong = []
    for (a_panel, a, a_curves), (b_panel, b, b_curves) in combinations(series, 2):
        if a_panel != b_panel or a == b:
            continue
        pairs += 1
        as_drawn = fit(a, a_curves, described) + fit(b, b_curves, described)
        swapped = fit(a, b_curves, described) + fit(b, a_curves, described)
        distinct += as_drawn > swapped
        if as_drawn < swapped:
            wrong.append(
                f"{a_panel}: {a!r} shows {sorted(a_curves)}, {b!r} shows {sorted(b_curves)}"
            )
    return distinct, pairs, wrong
