#!/usr/bin/env bash
# The commands behind results/query_release: the figures of Liu, Vietri and Wu (2021). Stored trials do not run again.
source "$(dirname "$0")/reproduce.sh"
paper="queries_adult_reduced queries_adult queries_acs_reduced queries_acs queries_adult_star
  queries_loans queries_grid_adult_reduced queries_grid_acs_reduced"
public="queries_adult_public queries_adult_public_reduced queries_public_year queries_public_state
  queries_public_place"
beyond="queries_regression queries_classification queries_conversion queries_tuning"
options="queries_options_mwem queries_options_pep queries_options_public queries_options_gem queries_options_rap
  queries_options_dualquery"
reproduce query_release "$paper $public $beyond $options" "$@"
