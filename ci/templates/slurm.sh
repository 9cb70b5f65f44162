#!/bin/bash
# slurm.sh: a batch job that measures kernels on a GPU of a cluster; `sbatch --wait slurm.sh` ends
# with the gate's exit code. Adapt the lines that have a comment.
#SBATCH --job-name=kernel-gate
#SBATCH --gres=gpu:1
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -u

gate=${KERNEL_GATE:-/opt/kernel-gate}/bin/gate # where the tarball of `make dist` was unpacked
library=${1:-build/libmykernels.so}            # your kernel library
export GATE_SERVER=${GATE_SERVER:-}            # your tracking server, or nothing

# SQLite needs a local disk; what waits to be sent may lie on a shared one.
scratch=$(mktemp -d "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/kernel-gate.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export GATE_SPOOL=${GATE_SPOOL:-$HOME/.local/state/kernel-gate/spool}

"$gate" run --suite canonical --device cuda:0 --library "$library" \
    --baselines baselines --db "$scratch/gate.db" \
    --report markdown=gate.md --report junit=gate.xml --report json=gate.json
status=$?

# The token is in a file that only you can read (chmod 600), not in the job's environment.
if [ -n "$GATE_SERVER" ]; then
    "$gate" push --db "$scratch/gate.db" \
        --token-file "${GATE_TOKEN_FILE:-$HOME/.config/kernel-gate/token}" || true
fi
exit $status
