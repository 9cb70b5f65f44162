#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh [--check] build|web|test|packages|lint|fuzz|fresh: the Debian and Ubuntu packages that a
# step needs.
#
# Says nothing and exits 0 when all are there. Else it installs what is missing where it may (as
# root, or with sudo that asks for no password), and otherwise, or with --check, prints the one
# command to run and exits 1.
set -eu

usage() {
    echo "usage: ci/deps.sh [--check] build|web|test|packages|lint|fuzz|fresh" >&2
    exit 64
}

check_only=no
if [ "${1-}" = --check ]; then
    check_only=yes
    shift
fi
[ $# -eq 1 ] || usage

missing=
why=
need() {
    missing="$missing $1"
}
need_command() {
    command -v "$1" >/dev/null 2>&1 || need "$2"
}
need_library() {
    pkg-config --exists "$1" 2>/dev/null || need "$2"
}
is_ubuntu() {
    [ -r /etc/os-release ] && grep -qx 'ID=ubuntu' /etc/os-release
}

case $1 in
build)
    need_command "${CC:-gcc}" build-essential
    # nvcc calls it.
    [ "${CUDA-0}" != 1 ] || need_command g++ g++
    need_command pkg-config pkg-config
    need_library libmicrohttpd libmicrohttpd-dev
    need_library gnutls libgnutls28-dev
    need_library sqlite3 libsqlite3-dev
    need_library libcjson libcjson-dev
    need_library expat libexpat1-dev
    need_library libmd libmd-dev
    need_library zlib zlib1g-dev
    need_library libzstd libzstd-dev
    ;;
web)
    need_command npm npm
    why=", which fetches the dashboard's chart library (uPlot). Debian's npm needs some 370 other
packages; 'make WEB=0 serve' does without npm, and without the dashboard"
    ;;
test)
    need_library cmocka libcmocka-dev
    need_command python3 python3
    python3 -c 'import jsonschema' 2>/dev/null || need python3-jsonschema
    need_command openssl openssl
    need_command cmake cmake
    need_command groff groff-base # reads the manual pages
    # Ubuntu has chromium as a snap only; the browser tests are then skipped and say so.
    if [ -d tests/browser ] && ! is_ubuntu; then
        need_command node nodejs
        need_command npm npm
        need_command chromium-headless-shell chromium-headless-shell
    fi
    need_command curl curl # `gate push` starts it, and pages show commands with it
    ;;
fuzz)
    # libFuzzer is a part of clang's run-time libraries.
    if ! echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | "${FUZZ_CC:-clang}" \
        -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2>/dev/null; then
        need clang
        need libclang-rt-dev
    fi
    ;;
packages)
    # What looks at the packages of `make deb`; it is left out without.
    need_command lintian lintian
    ;;
lint)
    need_command clang-format clang-format
    need_command clang-tidy clang-tidy
    need_command cppcheck cppcheck
    need_command shellcheck shellcheck
    ;;
fresh)
    need_command mmdebstrap mmdebstrap
    ;;
*)
    usage
    ;;
esac
missing=${missing# }
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends $missing"
as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
fi

may_install() {
    [ $check_only = no ] && command -v apt-get >/dev/null 2>&1 || return 1
    [ -z "$as_root" ] || sudo -n true 2>/dev/null
}

if ! may_install; then
    echo "Packages are missing. Install them with:" >&2
    echo "    ${as_root:+$as_root }$install" >&2
    exit 1
fi

echo "Installing $missing$why"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Shows what was said last, now and then: hundreds of packages take minutes on a slow machine.
report() {
    while sleep 20 >/dev/null 2>&1; do
        echo "    $(tail -n 1 "$log")"
    done
}
quietly() {
    report &
    status=0
    # shellcheck disable=SC2086 # no sudo is no word
    $as_root env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null || status=$?
    kill $! 2>/dev/null || true
    if [ $status -ne 0 ]; then
        cat "$log" >&2
        echo "ci/deps.sh: '$*' failed" >&2
        exit 1
    fi
}
quietly apt-get update
# shellcheck disable=SC2086 # a list of words
quietly $install -o DPkg::Lock::Timeout=300
