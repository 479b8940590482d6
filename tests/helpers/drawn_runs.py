"""Whether words that a page shows name the runs that it shows under them."""

import re
from functools import cache
from itertools import combinations


class NamedRuns:
    """What the runs of a study, and what else its quantities are about, may be called."""

    def __init__(self, stored):
        self.stored = stored

    def words(self, run):
        """Words that a run may be called by, and how much one of them tells."""
        labels = self.stored.labels.get(run, {})
        texts = " ".join(label_text(label, value) for label, value in labels.items())
        known = [(words(run), 1.0), (words(texts), 2.0)]
        if run in self.stored.traces:
            config = self.stored.traces[run].config
            known.append((words(str(config["algorithm"])), 2.0))
            known.append((participation_words(config), 2.0))
            known.append((words(str(config["problem"])), 0.5))
        return known


def label_text(label, value):
    """A label in words."""
    if isinstance(value, bool):
        return label if value else f"no {label}"
    return f"{label} {value}"


def participation_words(config):
    """What figures call a run by who takes part in a round."""
    clients = config["problem"].get("clients")
    participants = config["algorithm"].get("participants")
    if clients == 1:
        return frozenset({"centralized"})
    everyone = clients is not None and participants == clients
    return frozenset({"all"} if everyone else ())


@cache
def words(text):
    """The words and numbers of a text, numbers without superfluous digits."""
    tokens = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?|[^\W\d_]+", text)
    return frozenset(f"{float(x):g}" if x[0].isdigit() else x.lower() for x in tokens)


def likeness(label_words, known_words):
    """How many of the words are among the known, a word for three numbers; endings may differ."""
    return sum(points(word, known_words) for word in label_words)


@cache
def points(word, known_words):
    """How much a word of a label tells: 1 for a known one, 2 more for one that is no number."""
    count = 1 if word in known_words else 0
    if not word[0].isdigit() and any(is_related(word, known) for known in known_words):
        count += 2
    return count


def is_related(word, known):
    """Whether two words are equal, or one of some length begins with the other."""
    if word == known:
        return True
    begins = known.startswith(word) or word.startswith(known)
    return begins and min(len(word), len(known)) > 3


def fit(label, names, described):
    """How well a label fits a run; of several with the same values the one that it fits best."""
    label_words = words(label)
    fits = []
    for name in names:
        scores = [weight * likeness(label_words, known) for known, weight in described[name]]
        fits.append(sum(scores))
    return max(fits)


def exchanged(runs, series):
    """(pairs that are told apart, pairs, sentences on pairs whose labels fit better exchanged).

    `series` has a panel, a label and the names of the runs that may be meant, for each label.
    """
    described = {}
    for _, _, names in series:
        described.update({name: runs.words(name) for name in names if name not in described})
    distinct = 0
    pairs = 0
    wrong = []
    for (a_panel, a, a_names), (b_panel, b, b_names) in combinations(series, 2):
        if a_panel != b_panel or a == b or a_names & b_names:
            continue
        pairs += 1
        as_drawn = fit(a, a_names, described) + fit(b, b_names, described)
        swapped = fit(a, b_names, described) + fit(b, a_names, described)
        distinct += as_drawn > swapped
        if as_drawn < swapped:
            wrong.append(f"{a_panel}: {a!r} shows {sorted(a_names)}, {b!r} shows {sorted(b_names)}")
    return distinct, pairs, wrong
