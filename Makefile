# Everything runs in a virtual environment that the first target makes from locked versions.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SNSYNTH := .venv-snsynth
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NPROC=1

.PHONY: quickstart golden test test-slow test-slurm test-dask test-browser test-journeys lint figures arena-lite paper site test-site smoke bench install snsynth audit-packages clean

install: $(STAMP)

# uv installs the lock in seconds; pip could do the same. PyTorch is its CPU build: from the folder of wheels that pip
# is set up with, if there is one, else from where PyTorch keeps such builds.
LINKS := $(shell $(PYTHON) -m pip config get global.find-links 2>/dev/null)
TORCH := $(if $(LINKS),--find-links $(LINKS),--torch-backend cpu)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.8
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(TORCH) -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $(STAMP)

# smartnoise-synth needs older packages than the rest: its GANs and its AIM run in an environment of their own.
snsynth: $(SNSYNTH)/.installed

$(SNSYNTH)/.installed: requirements-snsynth.lock | $(STAMP)
	$(PYTHON) -m venv $(SNSYNTH)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(SNSYNTH)/bin/python $(TORCH) -r requirements-snsynth.lock
	touch $@

# Public packages, each in an environment of its own, audited as they are installed (docs/packages.md).
SOURCES ?= sources
audit-packages: snsynth .venv-diffprivlib/.installed .venv-dpmm/.installed .venv-opendp/.installed
	$(THREADS) $(BIN)/python -m benchmarks.packages --sources $(SOURCES)

.venv-%/.installed: requirements-%.lock | $(STAMP)
	$(PYTHON) -m venv .venv-$*
	$(BIN)/uv pip install --quiet --python .venv-$*/bin/python -r $<
	touch $@

# A real grid on data that ship with the project, and its figure.
quickstart: $(STAMP)
	$(BIN)/dpbench run experiment=quickstart
	$(BIN)/dpbench figures experiment=quickstart
	@echo "The figure is results/quickstart/figures/quickstart.png"

test: $(STAMP)
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist worksteal

# Store what new parts compute, and a new version of those that compute something else (conf/golden).
golden: $(STAMP)
	$(THREADS) $(BIN)/python -m dpbench.grid.golden

# Slow and statistical suites.
test-slow: $(STAMP)
	$(THREADS) $(BIN)/python -m pytest -n 2 -m slow

# On a SLURM of one node, which the tests start and stop, from Debian's packages; they say so where there are none.
SLURM := munge slurmctld slurmd slurm-client
APT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n) apt-get -q -o Acquire::Retries=0 -o Acquire::http::Timeout=20
test-slurm: $(STAMP)
	@PATH="$$PATH:/usr/sbin" which munged slurmctld slurmd sbatch > /dev/null || \
	  { $(APT) update && $(APT) install --yes --no-install-recommends $(SLURM); } || \
	  echo "SLURM cannot be installed here: what needs one is not tested"
	$(THREADS) $(BIN)/python -m pytest -m slurm -rs tests/slurm

# On Dask: a scheduler and workers on this machine, which the tests start and stop.
test-dask: $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-dask.lock
	$(THREADS) $(BIN)/python -m pytest -m dask -rs tests/grid/test_dask.py

# The report in a headless browser: Chromium of Debian, driven by Playwright; the tests say so where there is none.
# `make test-slow` has the reports of the committed trials, where Playwright is there.
test-browser: $(STAMP)
	@which chromium > /dev/null || { $(APT) update && $(APT) install --yes --no-install-recommends chromium; } || \
	  echo "Chromium cannot be installed here: the report is not tested in a browser"
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-browser.lock
	$(THREADS) $(BIN)/python -m pytest -m "browser and not slow" -rs tests/report/page

# What outsiders do first, each from the wheel in an empty environment, with the seconds of their commands.
test-journeys: $(STAMP)
	$(THREADS) $(BIN)/python -m pytest -m journeys -rP tests/journeys

# The static site, site/html: opened from disk (index.html), or served by anything. From what is committed alone.
site: $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-site.lock
	rm -rf site
	$(THREADS) $(BIN)/python -m dpbench.report.site site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file site/mkdocs.yml
	find site/html -name '*.map' -delete
	rm -r site/html/assets/javascripts/lunr
	@du -sb site/html | awk '{ print "site/html:", $$1 / 1e6, "MB"; if ($$1 > 30e6) { print "more than 30 MB"; exit 1 } }'

# The site in a headless browser, with axe-core: see test-browser.
test-site: $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements-browser.lock -r requirements-site.lock
	$(THREADS) $(BIN)/python -m pytest -m browser -rs tests/report/site

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Figures and tables of every paper, and of the experiments that were run here, from what is stored or exported.
figures: $(STAMP)
	$(BIN)/dpbench figures --other-code

# One experiment of each kind at a tiny size, on data that ship, in a folder of its own; what the paper draws without data.
TINY := dataset=adult_synth sample=smoke limits=smoke repetitions=1 epsilon=[1]
smoke: $(STAMP)
	@set -e; folder=$$(mktemp -d); \
	for settings in "quickstart $(TINY)" "linreg_adult $(TINY)" "logreg_adult $(TINY)" "logreg_degree4 $(TINY)" \
	    "coverage_adult $(TINY) dataset.attributes.age.bins=32" "binagg_table1 repetitions=3" \
	    "binagg_figure1_d1 sample.train_rows=1000 repetitions=2"; do \
	  $(BIN)/dpbench run experiment=$$settings results=$$folder; done; \
	$(BIN)/dpbench figures experiment=quickstart $(TINY) results=$$folder; \
	$(BIN)/dpbench figures paper=dd_ssp results=$$folder; \
	$(BIN)/dpbench figures paper=binagg results=$$folder repetitions=3; rm -r $$folder

# The arena's tasks on four tables each, with quick methods and five repetitions; its tables have to be at hand.
arena-lite: $(STAMP)
	@set -e; for task in regression classification intervals queries; do \
	  $(BIN)/dpbench run experiment=arena_lite_$$task; $(BIN)/dpbench figures experiment=arena_lite_$$task; done

# The article that describes the program (docs/paper), as one HTML file with its references.
PANDOC := pypandoc.convert_file("docs/paper/paper.md", "html5", outputfile="docs/paper/paper.html", \
  extra_args=["--citeproc", "--bibliography=docs/paper/paper.bib", "--standalone", "--embed-resources"])
paper: $(STAMP)
	$(BIN)/uv run --quiet --no-project --with pypandoc-binary==1.17 python -c 'import pypandoc; $(PANDOC)'
	@echo "The article is docs/paper/paper.html"

bench: $(STAMP)
	$(THREADS) $(BIN)/python -m benchmarks.harness
	$(THREADS) $(BIN)/python -m benchmarks.figures --all
	$(THREADS) $(BIN)/python -m benchmarks.engine
	$(THREADS) $(BIN)/python -m benchmarks.sums
	$(THREADS) $(BIN)/python -m benchmarks.aim_speed --limit 300
	$(THREADS) $(BIN)/python -m benchmarks.aim_degree4 --limit 300
	$(THREADS) $(BIN)/python -m benchmarks.dpsgd
	$(THREADS) $(BIN)/python -m benchmarks.binagg
	$(THREADS) $(BIN)/python -m benchmarks.noise
	$(THREADS) $(BIN)/python -m benchmarks.figure4
	$(THREADS) $(BIN)/python -m benchmarks.bayesian_glm
	$(THREADS) $(BIN)/python -m benchmarks.query_release --times 2
	$(THREADS) $(BIN)/python -m benchmarks.marginals
	$(THREADS) $(BIN)/python -m benchmarks.own_table

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache
