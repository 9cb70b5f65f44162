#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# slurm.sh: a batch job that measures the kernels of a repository on a GPU of a cluster, by its
# gate.json; `sbatch --wait slurm.sh` ends with the gate's exit code, and with 74 where there is no
# library to measure. Adapt the lines that have a comment.
#SBATCH --job-name=kernel-gate
#SBATCH --gres=gpu:1
#SBATCH --exclusive
#SBATCH --time=01:00:00
set -u

# Of the job before: this one may end before it has written its own.
rm -f gate.md gate.xml gate-run.json || exit 74

gate=${KERNEL_GATE:-/opt/kernel-gate}/bin/gate # where the tarball of `make dist` was unpacked
export GATE_SERVER=${GATE_SERVER:-}            # your tracking server, or nothing

# SQLite needs a local disk.
scratch=$(mktemp -d "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/kernel-gate.XXXXXX") || exit 74
trap 'rm -rf "$scratch"' EXIT
export GATE_DB=$scratch/gate.db

{
    @BUILD@
} || {
    echo "the build ended with $?" >&2
    exit 74
}

"$gate" run --wait 600 \
    --report markdown=gate.md --report junit=gate.xml --report json=gate-run.json
status=$?

# The token is in a file that only you can read (chmod 600), not in the job's environment. What was
# built and measured ran as you, too: this job is for code that you trust.
if [ -n "$GATE_SERVER" ]; then
    "$gate" push --token-file "${GATE_TOKEN_FILE:-$HOME/.config/kernel-gate/token}" ||
        echo 'gate-run.json was not sent: gate import gate-run.json && gate push' >&2
fi
exit $status
