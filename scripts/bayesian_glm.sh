#!/usr/bin/env bash
# The commands behind results/bayesian_glm: the figures of Kulkarni et al. (2021), and the calibration of the
# posteriors, which is not in the paper. Stored trials do not run again; docs/bayesian_glm.md has the hours.
# jax keeps its compiled programs in the data cache, so that only the first trial of each kind compiles.
source "$(dirname "$0")/reproduce.sh"
paper="bayes_figure3 bayes_figure4 bayes_figure4_unit bayes_figure5 bayes_figure6"
beyond="bayes_calibration bayes_calibration_d5 bayes_coverage bayes_coverage_d bayes_coverage_d5 bayes_joint"
reproduce bayesian_glm "$paper $beyond" "$@"
