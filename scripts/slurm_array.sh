#!/bin/bash
#SBATCH --job-name=dpbench
#SBATCH --array=1-25
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=04:00:00
# The plain form of what `dpbench slurm` writes: sbatch scripts/slurm_array.sh, from the folder that holds `results`.
# Each task runs its part of the grid; start it again to run what is missing.
exec dpbench run experiment="${EXPERIMENT:-linreg_adult}" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" jobs="${SLURM_CPUS_PER_TASK:-1}"
