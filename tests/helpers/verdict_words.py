"""Words of the prose that say what became of a claim, beside the verdict on the claim they are of.

The prose is parsed as MyST: a paragraph, an item of a list or a row of a table is one unit. A word
is about the claims of the nearest brackets in its sentence, the ones after it first, else about
those of its unit. What is quoted, in code or in a formula is no word of ours.
"""

import re
from typing import NamedTuple

from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from tests.helpers.prose import unfenced

PARSER = MarkdownIt("commonmark").enable("table")
PARSER.use(myst_role_plugin).use(dollarmath_plugin).use(amsmath_plugin)
UNITS = {"list_item_open": "list_item_close", "tr_open": "tr_close"}
CLAIM = re.compile(r"⟦([^⟧]+)⟧")
QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z⟦])|\|")
NOT = (
    r"(?P<no>\b(?i:not|never|nor|neither|cannot|no longer|nothing)\b"
    r"(?: (?:yet|be|been|fully|even|really|all))*\s+)?"
)
WORD = re.compile(
    NOT + r"\b(?P<word>[Rr]eproduced|[Cc]onfirmed|[Rr]efuted|[Uu]ndecided|[Jj]udged|[Mm]ixed|"
    r"[Pp]artly|((?<=is )|(?<=are )|(?<=not )|(?<=stays ))open|Open(?=[,.;:]| [⟦(§])|"
    r"Yes|No(?=[,.;:]| [⟦(§])|[Hh]olds(?! in (?:only )?§)|[Ff]alse|[Ww]rong)"
)
#: Words that are also said of theorems: they count only where their sentence names a claim.
OF_THEOREMS = ("holds", "false", "wrong")
SURE = {"reproduced", "proved", "counted"}
#: What a word says of a claim: the verdicts that it may stand beside, and the state of some part.
MEANS = {
    "reproduced": (SURE, ""),
    "not reproduced": ({"not reproduced"}, ""),
    "open": ({"open"}, "open"),
    "not open": ({*SURE, "not reproduced", "mixed"}, ""),
    "judged": ({*SURE, "not reproduced", "mixed", "open"}, ""),
    "not judged": ({"not judged"}, ""),
    "mixed": ({"mixed"}, ""),
    "not mixed": ({*SURE, "not reproduced", "open"}, ""),
    "yes": (SURE, "holds"),
    "no": ({"not reproduced"}, "fails"),
    "not yes": ({"not reproduced"}, "fails"),
    "not no": (SURE, "holds"),
}
SAME = {
    "confirmed": "reproduced",
    "refuted": "not reproduced",
    "undecided": "open",
    "partly": "mixed",
    "holds": "yes",
    "false": "no",
    "wrong": "no",
}


class Use(NamedTuple):
    """A word about claims: what it says, of which claims, and the sentence."""

    says: str
    claims: tuple[str, ...]
    sentence: str


def units(text):
    """The plain text of every paragraph, item of a list and row of a table, claims marked."""
    tokens = PARSER.parse(unfenced(text))
    open_units = []
    lead = ""  # a line that a list below it may complete
    for token in tokens:
        if token.type in UNITS:
            open_units.append([lead] if lead.rstrip().endswith(":") else [])
        elif token.type in UNITS.values():
            yield " ".join(open_units.pop())
        elif token.type == "td_close":
            open_units[-1].append("|")
        elif token.type == "inline":
            words = "".join(map(plain, token.children or ()))
            if open_units:
                open_units[-1].append(words)
            else:
                lead = words
                yield words
        elif token.type in ("heading_open", "fence"):
            lead = ""


def plain(token):
    """The text of a part of a line; a claim in brackets, other roles and formulas as a sign."""
    if token.type == "text":
        return token.content
    if token.type == "softbreak":
        return " "
    if token.type == "myst_role" and token.meta["name"] == "claim":
        return f"⟦{token.content}⟧"
    return "§" if token.type in ("myst_role", "code_inline", "math_inline") else ""


def uses(text):
    """The words about claims in a page's text."""
    for unit in units(text):
        words = QUOTED.sub("§", unit)
        everywhere = tuple(CLAIM.findall(words))
        if not everywhere:
            continue
        for sentence in SENTENCE.split(words):
            for match in WORD.finditer(sentence):
                near = nearest_group(sentence, match)
                if match["word"].lower() in OF_THEOREMS and not near:
                    continue
                yield Use(
                    meaning(match),
                    near or everywhere,
                    " ".join(sentence.split()),
                )


def nearest_group(sentence, word):
    """The claims of the next brackets after a word of a sentence, else of the last before it."""
    nearest = ""
    for group in re.finditer(r"⟦[^⟧]+⟧(?:(?:, | and |, and | or )⟦[^⟧]+⟧)*", sentence):
        if group.end() <= word.start():
            nearest = group[0]
        elif group.start() >= word.end():
            nearest = group[0]
            break
    return tuple(CLAIM.findall(nearest))


def meaning(match):
    """What a word says, as a key of `MEANS`."""
    word = match["word"].lower()
    word = SAME.get(word, word)
    if not match["no"]:
        return word
    return word.removeprefix("not ") if word.startswith("not ") else f"not {word}"


def contradicts(use, outcomes):
    """Whether no claim that a word is about has such a verdict, or a part in such a state."""
    verdicts, state = MEANS[use.says]
    for claim in use.claims:
        for outcome in outcomes[claim]:
            if outcome.verdict in verdicts or state in outcome.states.values():
                return False
    return True
