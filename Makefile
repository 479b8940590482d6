# Everything runs in .venv, which is made when it is missing, and added to when the pins have changed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
PROFILE ?= full
ARGS ?=
JOBS ?= 2
WORKERS ?= 2
MINUTES ?= 60
CORES ?= 1
STUDY ?= all
# On every change the first page, a study of each paper, a note and a tutorial, each in one of two checks; every page
# starts a kernel, so cheap ones are taken. PAGES=all: all pages in both. `make nbval` compares pages with their
# outputs, by stored runs and without data sets; `make quick` executes quick profiles, where no check may say NO.
VALIDATED ?= $(if $(filter all,$(PAGES)),$(wildcard notebooks/*.ipynb),$(patsubst %,notebooks/%.ipynb,\
	start_here cmoo_mixed fw_stochastic np_workshop cartpole_table ssca_tradeoff))
QUICK ?= $(if $(filter all,$(PAGES)),all,note_ssca_privacy tutorial_algorithm)
export OMP_NUM_THREADS ?= 1
COPY := _build/mutants
INSTALL := $(BIN)/pip install --quiet -c constraints.txt
RUN := $(BIN)/python notebooks/execute.py
BOOK := $(BIN)/jupyter-book build . --config _config.yml --toc book/_toc.yml --path-output . \
	-W -n --keep-going
NAMED = $(if $(NAME),,$(error this target needs NAME=..., a file of notebooks/src without .py))

.PHONY: help book pdf check-book test lint types unit library studies pages nbval quick notebook lab notebooks \
	reproduce claims bench federation mutants recheck runs clean clean-all bytecode

help:
	@echo "make book                                     build the HTML book from the committed notebooks"
	@echo "make test                                     lint, types, unit tests, notebooks against their outputs"
	@echo "make pdf                                      the whole book as one PDF (needs chromium)"
	@echo "make check-book                               links, offline and browser tests of the built book"
	@echo "make notebook NAME=np_workshop ARGS='-p rounds 50'   one notebook with other parameters (--list: all)"
	@echo "make quick                                    execute some pages in the quick profile, where checks must hold"
	@echo "make lab                                      the notebooks in JupyterLab, with the book's roles"
	@echo "make notebooks                                execute all pages again (the committed ones)"
	@echo "make reproduce NAME=np_workshop PROFILE=full  recompute a study's runs, compare with the stored ones"
	@echo "make federation                              the example's methods on a real SuperLink with four SuperNodes"
	@echo "make runs STUDY=cmoo_pairs CORES=4            runs that are not stored as the paper has them (--dry-run: ARGS)"
	@echo "make claims                                   the verdict of every claim, from the stored runs"
	@echo "make recheck ARGS='--seconds 600'            recompute a sample of the stored runs (a minute)"
	@echo "make bench                                    how long a round takes: beside peers, at first, at scale"
	@echo "make mutants MINUTES=60                       changes of one token, in a copy, that no test notices"
	@echo "make clean                                    remove what was built (clean-all: .venv too)"

# The pip that Python brings may be too old for --group: the pinned one replaces it.
$(STAMP): constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fedlib needs Python 3.11 or newer; pass PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt pip
	$(INSTALL) -e ".[flower]" -e ./papers --group dev
	@touch $@

book: $(STAMP)
	$(BOOK)
	@echo "The book is built: open _build/html/index.html"

pdf: $(STAMP)
	rm -rf _build/singlehtml
	$(BOOK) --builder singlehtml
	$(BIN)/python book/pdf.py _build/singlehtml _build/book.pdf

check-book: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) tests/built

# Three at a time on two cores, the longest first, each a single process: who waits for a kernel to start
# leaves its core to the others.
test: bytecode
	@$(MAKE) --no-print-directory --keep-going -j 3 JOBS=1 --output-sync=line \
		studies library nbval pages types quick lint

library studies pages: WORKERS = 0
library: TESTS = fedlib tests/fedlib
studies: TESTS = papers tests/papers
pages: TESTS = tests/book tests/repo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Tests and notebooks start hundreds of processes; where these may not write bytecode, each would
# compile our packages anew.
bytecode: $(STAMP)
	@$(BIN)/python -m compileall -q fedlib papers benchmarks

unit library studies pages: bytecode
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not flower$(if $(filter all,$(PAGES)),, and not weekly)' $(TESTS)

# Real processes of Flower on the loopback, with both cores for them alone. DRAW=2: the first and two others.
federation: $(STAMP)
	DRAW=$(DRAW) $(BIN)/python -m pytest -m flower tests/fedlib/flower

# A pytest call of its own: xdist does not get on with nbval. The addopts of pyproject.toml (doctests,
# import mode) are for Python files, and a kernel's own warnings are not ours.
nbval: bytecode
	@printf '%s\n' $(VALIDATED) | xargs -P $(JOBS) -n $(if $(filter 1,$(JOBS)),100,3) $(BIN)/python -m pytest -o addopts= -W default \
		-p no:cacheprovider --nbval-lax --nbval-current-env --nbval-cell-timeout=300 || { echo "Where a cell differs, the code no longer" \
		"gives what is committed: find out why; if the code is right: make notebooks"; exit 1; }

quick: bytecode
	$(RUN) $(QUICK) --profile quick --jobs $(JOBS)

notebook: $(STAMP)
	$(NAMED)$(RUN) $(NAME) --profile quick $(if $(ARGS),--line '$(subst ','\'',$(ARGS))')

lab: $(STAMP)
	$(INSTALL) --group lab
	$(BIN)/python -m ipykernel install --sys-prefix --name fedlib --display-name "fedlib (.venv)"
	$(BIN)/jupyter lab --notebook-dir notebooks $(ARGS)

notebooks: $(STAMP)
	$(RUN) all --profile full --jobs $(JOBS)

reproduce: $(STAMP)
	$(NAMED)$(BIN)/python -m papers reproduce $(NAME) --profile $(PROFILE) $(ARGS)

claims: $(STAMP)
	$(BIN)/python -m papers claims $(ARGS)

# Snakemake is installed here, and only here. CORES groups at a time. Its lock would outlive a kill, and our
# files are written whole: without it, the same command goes on.
runs: $(STAMP)
	$(INSTALL) --group runs
	$(BIN)/snakemake --cores $(CORES) --keep-going --nolock --rerun-incomplete $(ARGS) \
		--config study=$(STUDY) profile=$(if $(filter command line,$(origin PROFILE)),$(PROFILE),paper)

# Another sample every day; CI draws the same on every change, and another every week.
recheck: $(STAMP)
	$(BIN)/python -m papers recheck $(ARGS)

bench: bytecode
	$(BIN)/python -m benchmarks $(ARGS)

# What it needs is installed here, and only here. Code is mutated in a copy under _build; what was tried of
# code that has not changed since is not tried again. ARGS="fedlib.steps*": some modules.
mutants: $(STAMP)
	$(INSTALL) --group mutants
	mkdir -p $(COPY) && cd $(COPY) && rm -rf fedlib papers tests examples
	git ls-files -z fedlib papers tests examples pyproject.toml README.md | xargs -0 cp --parents -t $(COPY)
	-cd $(COPY) && timeout $(MINUTES)m $(abspath $(BIN))/mutmut run --max-children $(WORKERS) $(ARGS)
	cd $(COPY) && $(abspath $(BIN))/mutmut results --all true | $(abspath $(BIN))/python -m tests.helpers.mutants

clean:
	rm -rf _build .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

clean-all: clean
	rm -rf .venv *.egg-info
