"""`python -m benchmarks`: the command line of bench.py."""

from benchmarks.bench import main

if __name__ == "__main__":
    main()
