#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh: tries the tree on a machine with nothing installed by hand.
#
#   ci/fresh.sh                      makes a bare root, runs the README's commands there, says what
#                                    it saw, and removes the root
#   ci/fresh.sh make DIR             makes a bare root in DIR, with a clone of HEAD in it
#   ci/fresh.sh in DIR COMMAND...    runs a command in the clone
#   ci/fresh.sh try DIR 'COMMAND'    runs a command that the README shows in the clone
#
# A bare root is Debian 12 with git, make and ca-certificates, and nothing else that Debian does not
# need itself: no compiler, no Python. It is made by mmdebstrap from the mirror that apt is
# configured with, and needs root. Three things come from this machine: the CUDA toolkit, which is
# no Debian package (read-only), the settings by which npm finds its registry, and the network.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly suite=bookworm
# Of the README: what a machine has before the first command.
readonly given=git,make,ca-certificates

die() {
    echo "ci/fresh.sh: $1" >&2
    exit 1
}

# One line "deb URI RELEASE COMPONENT..." for each source of Debian 12 that apt has here.
sources() {
    # shellcheck disable=SC2016 # apt fills them in
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | grep " $suite" | sort -u
}

make_root() {
    local root=$1 start=$SECONDS name value
    [ "$(id -u)" -eq 0 ] || die 'a bare root can be made by root only'
    command -v mmdebstrap >/dev/null ||
        die "there is no mmdebstrap; install it with 'apt-get install mmdebstrap'"
    sources | grep -q . || die "apt has no source of Debian's $suite here"
    unshare --mount --pid --fork true 2>/dev/null ||
        die 'mounts of its own are refused here (unshare --mount --pid)'

    sources | mmdebstrap --quiet --mode=root --variant=apt --include=$given \
        --aptopt='Acquire::Languages "none"' $suite "$root" - || die 'mmdebstrap failed'
    # How this machine reaches the mirror, the registry and names.
    apt-config dump | grep -E '^Acquire::(https?|Check-(Date|Valid-Until)|Retries)\b' \
        >"$root/etc/apt/apt.conf.d/90fresh" || true
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    # Nobody needs it after a power failure.
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/fresh"
    if command -v npm >/dev/null; then
        for name in registry cafile proxy https-proxy; do
            value=$(npm config get $name 2>/dev/null)
            if [ $name = cafile ] && [ -r "$value" ]; then
                cp -L "$value" "$root/etc/npm-ca.crt"
                value=/etc/npm-ca.crt
            fi
            [[ $value =~ ^(null|undefined|)$ ]] || echo "$name=$value"
        done >"$root/etc/npmrc.fresh"
    fi
    git clone --quiet --no-hardlinks . "$root/srv/kernel-gate"
    if [ -d /usr/local/cuda ]; then
        echo "the CUDA toolkit of this machine is in it, read-only: $(realpath /usr/local/cuda)"
    else
        echo 'there is no CUDA toolkit in /usr/local/cuda here, so none is in it'
    fi
    echo "a bare Debian 12 with $given: $(du -sh "$root" | cut -f1)," \
        "made in $((SECONDS - start)) s; the clone is at $(git rev-parse --short HEAD)"
    if [ -n "$(git status --porcelain)" ]; then
        echo 'what is not committed here is not in the clone'
    fi
}

# Mounts and processes end with the command, since they are in namespaces of their own. Does not
# return. The command is not the first process of its namespace: make as such one, told to end,
# tries it for ever.
in_root() {
    local root=$1 cuda
    shift
    [ -d "$root/srv/kernel-gate" ] || die "there is no bare root in '$root'"
    cuda=$(realpath -q /usr/local/cuda || true)
    # shellcheck disable=SC2016 # of the shell within
    exec unshare --mount --propagation private --pid --fork --kill-child bash -euc '
        root=$1 cuda=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        if [ -n "$cuda" ]; then
            mkdir -p "$root/usr/local/cuda"
            mount --bind "$cuda" "$root/usr/local/cuda"
            mount -o remount,bind,ro "$root/usr/local/cuda"
        fi
        cd /
        exec chroot "$root" /usr/bin/env -i HOME=/srv ${LISTEN+LISTEN="$LISTEN"} \
            ${CUDA_ARCHS+CUDA_ARCHS="$CUDA_ARCHS"} \
            ${CI+CI="$CI"} ${NO_COLOR+NO_COLOR="$NO_COLOR"} LC_ALL="${LC_ALL-C.UTF-8}" \
            NPM_CONFIG_USERCONFIG=/etc/npmrc.fresh \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            bash -c "cd /srv/kernel-gate && \"\$@\"; exit" fresh "$@"
    ' fresh "$root" "$cuda" "$@"
}

# The commands of the README's "Start", one a line.
commands() {
    sed -n 's/^\$ \(make [^#]*[^# ]\).*/\1/p' README.md
}

try_root() {
    local root=$1 command=$2 start=$SECONDS
    commands | grep -qxF "$command" || die "README.md does not show '$command' ('\$ make ...')"
    printf '\n$ %s\n' "$command"
    if [ "$command" = 'make serve' ]; then
        serve_in "$root"
        return
    fi
    # shellcheck disable=SC2086 # as a reader types it
    (in_root "$root" $command) || die "'$command' ended with $?"
    echo "-- '$command': exit 0 after $((SECONDS - start)) s, packages included"
}

serve_in() {
    local start=$SECONDS log url status
    log=$(mktemp)
    # The port of the README may be taken here.
    LISTEN=127.0.0.1:0 in_root "$1" make serve >"$log" 2>&1 &
    while url=$(sed -n 's|.*listening on http://\([0-9.:]*\)/.*|\1|p' "$log") && [ -z "$url" ]; do
        if ! kill -0 $! 2>/dev/null; then
            cat "$log"
            die "'make serve' ended before it listened"
        fi
        sleep 0.2
    done
    cat "$log"
    status=$(exec 3<>"/dev/tcp/${url%:*}/${url#*:}" &&
        printf 'GET / HTTP/1.0\r\n\r\n' >&3 && head -1 <&3)
    kill -KILL $! # what it waits for dies with it; it takes no other signal
    wait $! 2>/dev/null || true
    rm "$log"
    echo "-- 'make serve': listened after $((SECONDS - start)) s and answered '${status%$'\r'}'"
    [[ $status == *' 200 '* ]] || die 'that is no page'
}

case ${1-all} in
all)
    root=$(mktemp -d)
    trap 'rm -rf --one-file-system "$root"' EXIT
    chmod 755 "$root"
    make_root "$root"
    readarray -t all < <(commands)
    for command in "${all[@]}"; do
        try_root "$root" "$command"
    done
    ;;
make)
    make_root "$2"
    ;;
try)
    try_root "$2" "$3"
    ;;
in)
    shift
    in_root "$@"
    ;;
*)
    echo "usage: ci/fresh.sh [make DIR | try DIR 'COMMAND' | in DIR COMMAND...]" >&2
    exit 64
    ;;
esac
