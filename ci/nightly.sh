#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# nightly.sh [MAKE ARGUMENT...]: what takes too long for each commit.
#
# - the tarball with all architectures and PTX
# - the long tests: broken kernels with a whole pass, histories and simulations with more of each
# - all tests under the address and undefined-behaviour sanitizers, and those of the server under
#   the thread sanitizer; .ci/run has a part of both
# - 500 kills of the server while runs come in
# - ten minutes of fuzzing for each target. The inputs that are worth keeping go on from FUZZ_KEEP
#   (build/fuzz-corpus).
# - where a device is, `gate verify --tier nightly`
#
# Inputs are drawn anew: .ci/run has the same ones each time.
#
# A short look at the last three: KERNEL_GATE_KILLS=5 ci/nightly.sh SECONDS=5
set -euo pipefail
cd "$(dirname "$0")/.."

KERNEL_GATE_DRAW=${KERNEL_GATE_DRAW:-$(od -An -N6 -tx1 /dev/urandom | tr -d ' ')}
export KERNEL_GATE_DRAW
echo "the seed of the inputs that tests draw: KERNEL_GATE_DRAW=$KERNEL_GATE_DRAW"

ci/deps.sh build
ci/deps.sh test
ci/deps.sh fuzz
make dist "$@"
make test-long "$@"
# Without the page's tests, which ask the server for nothing that the others do not ask, and without
# files that start nothing that this build made: test_build.py makes builds of its own, test_docs.py
# and test_crosscheck.py read, test_templates.py asks npm's schemas.
sanitized=$(find tests/unit tests/e2e -name 'test_*.[cp]*' |
    grep -vE '/test_(build|crosscheck|docs|templates)\.py$' | tr '\n' ' ')
make test SANITIZE=address,undefined TESTS="$sanitized" "$@"
threaded='tests/*server* tests/*writer* tests/*ingest* tests/*auth* tests/*ops* tests/*service*'
make test SANITIZE=thread TESTS="$threaded tests/e2e/*alerts* tests/*api*" "$@"
KERNEL_GATE_KILLS="${KERNEL_GATE_KILLS:-500}" tests/run --timeout 3600 tests/e2e/test_ingest.py
make fuzz SECONDS=600 KEEP="${FUZZ_KEEP:-build/fuzz-corpus}" "$@"
if [ -e /dev/nvidiactl ]; then
    build/bin/gate verify --tier nightly
else
    echo 'gate verify --tier nightly is left out: there is no NVIDIA device here.'
fi
