# Sourced by the script of each paper.
set -euo pipefail

# The environment of `make install`, unless another one is active.
command -v dpbench > /dev/null || PATH="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin:$PATH"
command -v dpbench > /dev/null || { echo "dpbench is not installed: run \`make install\` first" >&2; exit 1; }

# reproduce PAPER EXPERIMENTS [SETTING...]: run and draw each experiment, then draw the paper. With --dry-run it prints
# the plans of the experiments and draws nothing.
reproduce() {
  local paper=$1 experiments=$2 draw=dpbench experiment
  shift 2
  [[ " $* " != *" --dry-run "* ]] || draw=:
  for experiment in $experiments; do
    dpbench run "experiment=$experiment" "$@"
    $draw figures "experiment=$experiment" "$@"
  done
  $draw figures "paper=$paper" "$@"
}
