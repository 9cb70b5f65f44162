#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh: the checks of `make lint`. A tool that is not installed is named and left out.
set -u
cd "$(dirname "$0")/.." || exit 70

failed=0 left_out=0
step() {
    local name=$1
    shift
    if "$@"; then
        printf '  %-14s ok\n' "$name"
    else
        printf '  %-14s FAILED\n' "$name"
        failed=$((failed + 1))
    fi
}
leave_out() {
    printf '  %-14s left out: %s\n' "$1" "$2"
    left_out=$((left_out + 1))
}

files() {
    git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
        [ -f "$file" ] && printf '%s\n' "$file"
    done
}

# Its versions differ in what they find well formatted; this is the one of Debian 12.
format_version=14
clang_format=
for candidate in clang-format-$format_version clang-format; do
    if "$candidate" --version 2>/dev/null | grep -q " $format_version\."; then
        clang_format=$candidate
        break
    fi
done

check_format() {
    files '*.c' '*.h' '*.cu' '*.cuh' | xargs "$clang_format" --dry-run -Werror
}

# Both read the flags of compile_flags.txt, as editors do.
check_clang_tidy() {
    files 'gate/*.c' 'server/*.c' 'kernels/host/*.c' 'kernels/reference/*.c' 'tests/*.c' |
        xargs -P "$(nproc)" -n 4 clang-tidy --quiet 2>/dev/null
}

check_cppcheck() {
    xargs -a <(grep -v '^-std' compile_flags.txt) cppcheck --quiet -j "$(nproc)" --std=c11 \
        --error-exitcode=1 --inline-suppr --enable=warning,performance \
        --library=ci/cppcheck.cfg --suppress=uninitvar --suppress=uninitStructMember \
        gate server kernels
}

check_shell() {
    files '*.sh' .ci/run | xargs shellcheck
}

step sources python3 ci/check_sources.py
if [ -n "$clang_format" ]; then
    step clang-format check_format
else
    leave_out clang-format "no version $format_version"
fi
step_of_tool() {
    if command -v "$1" >/dev/null; then
        step "$1" "$2"
    else
        leave_out "$1" 'not installed'
    fi
}
step_of_tool clang-tidy check_clang_tidy
step_of_tool cppcheck check_cppcheck
step_of_tool shellcheck check_shell
echo "lint: $failed failed, $left_out left out"
[ $failed -eq 0 ]
