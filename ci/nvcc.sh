#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nvcc.sh [--spills BYTES] LOG COMMAND...: runs an nvcc command with `-Xptxas -v` and keeps what it
# says in LOG, which so has the registers, shared memory and spills of every kernel.
#
# With --spills it also fails on what costs a kernel its speed but is no error to ptxas: more than
# BYTES of spilled registers (32 are a value or two outside of the main loop), and remarks about
# setmaxnreg that was ignored (C7508), wgmma that was serialised (C7510 to C7515) and a fence that
# was put in (C7519).
set -u

spills=
if [ "$1" = --spills ]; then
    spills=$2
    shift 2
fi
log=$1
shift

if ! "$@" >"$log" 2>&1; then
    grep -v '^ptxas info' "$log" >&2
    exit 1
fi
[ -n "$spills" ] || exit 0

awk -v most="$spills" '
    /Compiling entry function/ { kernel = $0; sub(/^.*entry function /, "", kernel) }
    /C7508|C751[0-59]/ { print; bad = 1 }
    match($0, /[0-9]+ bytes spill stores/) && substr($0, RSTART) + 0 > most {
        sub(/^ */, ""); print "spills in " kernel ": " $0; bad = 1
    }
    END { exit bad }
' "$log" >&2
