"""What the page tells who sets a federation up is what its test runs."""

import re
from pathlib import Path

from tests.helpers.superlink import CERTIFICATES, KEY, SAFE_LINK, SAFE_NODE

PAGE = Path(__file__).resolve().parents[2] / "book" / "federation.md"


def commands():
    """The lines of the page's shell blocks, continued ones as one."""
    blocks = re.findall(
        r"```bash\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [" ".join(line.partition("  #")[0].split()) for line in joined.splitlines()]


def test_certificates_and_keys_are_made_as_in_the_test():
    shown = commands()
    for line in (*CERTIFICATES, KEY.replace("NUMBER", "0")):
        assert " ".join(line.split()) in shown


def test_the_superlink_and_its_nodes_are_started_as_in_the_test():
    shown = commands()
    for program, options in (("flower-superlink", SAFE_LINK), ("flower-supernode", SAFE_NODE)):
        (line,) = [c for c in shown if c.startswith(program) and "--insecure" not in c]
        assert " ".join(options).replace("NUMBER", "0") in line
