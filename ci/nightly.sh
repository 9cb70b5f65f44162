#!/bin/bash
# What takes too long for each commit: kills the server 500 times while runs come in, and, where a
# device is, looks at the kernels with `gate verify --tier nightly`.
# Usage: ci/nightly.sh [MAKE ARGUMENT...]
set -euo pipefail
cd "$(dirname "$0")/.."

make -j "$(nproc)" all tests "$@"
KERNEL_GATE_KILLS=500 tests/run --timeout 3600 tests/e2e/test_ingest.py
if [ -e /dev/nvidiactl ]; then
    build/bin/gate verify --tier nightly
else
    echo 'gate verify --tier nightly is left out: there is no NVIDIA device here.'
fi
