#!/bin/sh
# nvcc.sh [--fast] LOG COMMAND...: runs an nvcc command with `-Xptxas -v` and keeps what it says in
# LOG, which so has the registers, shared memory and spills of every kernel.
#
# With --fast it also fails on what costs a kernel its speed but is no error to ptxas: more than 32
# bytes of spilled registers (less is a value or two outside of the main loop), and the "performance
# loss" remarks about wgmma that was serialised (C7508, C7510 to C7515).
set -u

fast=no
if [ "$1" = --fast ]; then
    fast=yes
    shift
fi
log=$1
shift

if ! "$@" >"$log" 2>&1; then
    grep -v '^ptxas info' "$log" >&2
    exit 1
fi
[ $fast = yes ] || exit 0

awk '
    /Compiling entry function/ { kernel = $0; sub(/^.*entry function /, "", kernel) }
    /C7508|C751[0-5]/ { print; bad = 1 }
    match($0, /[0-9]+ bytes spill stores/) && substr($0, RSTART) + 0 > 32 {
        sub(/^ */, ""); print "spills in " kernel ": " $0; bad = 1
    }
    END { exit bad }
' "$log" >&2
