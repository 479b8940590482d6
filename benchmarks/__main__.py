"""`python -m benchmarks`: the command line of bench.py."""

import sys

from benchmarks.bench import main

if __name__ == "__main__":
    sys.exit(main())
