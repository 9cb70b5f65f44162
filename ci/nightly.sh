#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What takes too long for each commit: kills the server 500 times while runs come in, fuzzes each
# target for ten minutes, and, where a device is, looks at the kernels with `gate verify --tier
# nightly`. Usage: ci/nightly.sh [MAKE ARGUMENT...]
# The inputs that fuzzing found worth keeping go on from FUZZ_KEEP (build/fuzz-corpus). A short look
# at all of it: KERNEL_GATE_KILLS=5 ci/nightly.sh SECONDS=5
set -euo pipefail
cd "$(dirname "$0")/.."

make -j "$(nproc)" all tests "$@"
KERNEL_GATE_KILLS="${KERNEL_GATE_KILLS:-500}" tests/run --timeout 3600 tests/e2e/test_ingest.py
make fuzz SECONDS=600 KEEP="${FUZZ_KEEP:-build/fuzz-corpus}" "$@"
if [ -e /dev/nvidiactl ]; then
    build/bin/gate verify --tier nightly
else
    echo 'gate verify --tier nightly is left out: there is no NVIDIA device here.'
fi
