"""`python -m benchmarks`: see bench.py."""

from benchmarks.bench import main

if __name__ == "__main__":
    main()
