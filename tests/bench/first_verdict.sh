#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# first_verdict.sh [REPOSITORY]: how long it takes on a CPU from a clone of the gate to a verdict on
# the example's kernels, step by step. It works in a folder of its own, which goes at the end.
set -euo pipefail

from=${1:-$(git -C "$(dirname "$0")" rev-parse --show-toplevel)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GATE_CACHE=$folder/cache

print_time() { # SINCE NAME
    local ms=$((($(date +%s%N) - $1) / 1000000))
    printf '%5d.%d s  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$2"
}

# A verdict may be 'no-verdict' or 'environment' on a busy machine: 3 and 4 are said and no failure.
step() { # NAME COMMAND...
    local name=$1 start code=0
    start=$(date +%s%N)
    shift
    "$@" </dev/null >"$folder/log" 2>&1 || code=$?
    [ $code -eq 0 ] || name="$name, exit code $code"
    print_time "$start" "$name"
    if [ $code -ne 0 ] && [ $code -ne 3 ] && [ $code -ne 4 ]; then
        tail -5 "$folder/log" >&2
        exit 1
    fi
}

commit() {
    git init -q -b main && git add . &&
        git -c user.name=you -c user.email=you@example.org commit -qm Kernels
}

begun=$(date +%s%N)
echo "$(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
step 'git clone' git clone -q "$from" "$folder/gate"
step "make -j$(nproc) CUDA=0 WEB=0" make -C "$folder/gate" -j"$(nproc)" CUDA=0 WEB=0
PATH=$folder/gate/build/bin:$PATH
mkdir "$folder/kernels"
cd "$folder/kernels"
step 'gate init --example' gate init --example --ci none
step 'git commit' commit
step 'cmake' sh -c 'cmake -S . -B build && cmake --build build'
step 'gate verify' gate verify --device host
step 'gate run --accept-new' gate run --device host --accept-new
step 'gate run' gate run --device host
print_time "$begun" "all; load $(cut -d' ' -f1 /proc/loadavg)"
