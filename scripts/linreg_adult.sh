#!/usr/bin/env bash
# The commands behind results/linreg_adult: Figure 3a (Adult) of the DD-SSP paper, both calibrations.
set -euo pipefail
dpbench data fetch adult
dpbench run experiment=linreg_adult "$@"
dpbench figures experiment=linreg_adult "$@"
