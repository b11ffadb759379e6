#!/usr/bin/env bash
# The commands behind results/dd_ssp: the figures and tables of the DD-SSP paper. Stored trials do not run again.
source "$(dirname "$0")/reproduce.sh"
linear="linreg_mean linreg_adult linreg_acsincome linreg_fire linreg_taxi"
logistic="logreg_adult logreg_acsincome logreg_acsmobility logreg_acsemployment logreg_acspubliccoverage"
beyond="linreg_adult_fixed_split linreg_adult_all_attributes linreg_adult_model_size logreg_degree4 poisson_taxi
  coverage_adult"
reproduce dd_ssp "$linear $logistic $beyond" "$@"
