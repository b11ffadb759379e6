#!/usr/bin/env bash
# The commands behind results/bayesian_glm: the figures of Kulkarni et al. (2021). What is stored already does not run.
# jax keeps its compiled programs in the data cache, so that only the first trial of each kind compiles.
set -euo pipefail
for experiment in bayes_figure3 bayes_figure4 bayes_figure5 bayes_figure6; do
  dpbench run "experiment=$experiment" "$@"
  dpbench figures "experiment=$experiment" "$@"
done
dpbench figures paper=bayesian_glm "$@"
