#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test-gpu.sh [TEST...]: runs the GPU tests of this unpacked folder. Needs a GPU, its driver and
# Python 3.
set -eu
cd "$(dirname "$0")"
exec python3 tests/run --build . --gpu "$@"
