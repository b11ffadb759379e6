#!/usr/bin/env bash
# The commands behind results/dd_ssp: the figures and tables of the DD-SSP paper. Stored trials do not run again.
set -euo pipefail
linear="linreg_mean linreg_adult linreg_acsincome linreg_fire linreg_taxi"
logistic="logreg_adult logreg_acsincome logreg_acsmobility logreg_acsemployment logreg_acspubliccoverage"
beyond="linreg_adult_fixed_split linreg_adult_all_attributes linreg_adult_model_size logreg_degree4 poisson_taxi
  coverage_adult"
for experiment in $linear $logistic $beyond; do
  dpbench run "experiment=$experiment" "$@"
  dpbench figures "experiment=$experiment" "$@"
done
dpbench figures paper=dd_ssp "$@"
