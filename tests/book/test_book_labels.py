"""Names within the book: each is given once.

Pages are read side by side, so that Sphinx does not see a label that two of them give.
"""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: `(label)=`, `:name:` and `:label:` of directives, the label of a formula.
LABEL = re.compile(
    r"^(?:# )?(?:\((?P<target>[\w-]+)\)=$|:(?:name|label): (?P<option>[\w-]+)$|"
    r"\$\$ \((?P<formula>[\w-]+)\)$)",
    re.MULTILINE,
)


def labels(texts):
    return Counter(match[match.lastgroup].lower() for t in texts for match in LABEL.finditer(t))


def test_no_label_is_given_twice():
    pages = [*(ROOT / "book").rglob("*.md"), *(ROOT / "notebooks" / "src").glob("*.py")]
    counts = labels(page.read_text(encoding="utf-8") for page in pages)
    assert len(counts) > 50
    assert [label for label, times in counts.items() if times > 1] == []
