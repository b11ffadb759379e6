#!/usr/bin/env bash
# The commands behind results/binagg: the figures and tables of the BinAgg paper. Stored trials do not run again.
# Table 3 needs `make snsynth` first. With its 10 repetitions it takes hours; the rest is about an hour on two cores.
source "$(dirname "$0")/reproduce.sh"
simulated="binagg_figure1_d1 binagg_figure1_d5 binagg_figure1_d10 binagg_figure2"
simulated="$simulated binagg_figure1_d1_authors binagg_figure1_d5_authors binagg_figure1_d10_authors"
simulated="$simulated binagg_table1 binagg_table1_authors binagg_table1_coarse"
real="binagg_table2 binagg_table2_authors binagg_table2_unchecked binagg_table3 binagg_table3_mu"
real="$real binagg_theta binagg_theta_all binagg_theta_coarse binagg_ratio"
beyond="binagg_intervals binagg_inference_d1 binagg_inference_d5 binagg_inference_d10 binagg_all_methods"
reproduce binagg "$simulated $real $beyond" "$@"
