"""The scripts of this folder are run by its tests; they hold no examples of their own."""

from pathlib import Path

collect_ignore = [p.name for p in Path(__file__).parent.glob("*.py") if p.name[:5] != "test_"]
