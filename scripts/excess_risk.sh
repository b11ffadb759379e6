#!/usr/bin/env bash
# The commands behind results/excess_risk: the figures and tables of Zhou et al. (2024). Stored trials do not run again.
# Experiments share their releases: AIM at ε = 1 of risk_table2 serves Figures 4 and 5, the degrees and the features.
source "$(dirname "$0")/reproduce.sh"
paper="risk_table2 risk_table2_authors risk_figure2
  risk_figure4_adult risk_figure4_churn risk_figure4_compas risk_figure4_dutch risk_figure4_heart risk_figure4_law
  risk_settings_adult risk_settings_churn risk_settings_compas risk_settings_dutch risk_settings_heart risk_settings_law
  risk_majority risk_figure5_adult risk_figure5_relationship risk_figure5_dutch risk_figure5_law"
beyond="risk_bounds risk_gen risk_lower_bound risk_degree risk_features risk_methods"
reproduce excess_risk "$paper $beyond" "$@"
