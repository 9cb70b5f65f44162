#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh VERSION: packs dist/kernel-gate_*.deb (the gate with its kernel libraries) and
# dist/kernel-gate-server_*.deb, of what `make install` puts into a tree, and checks them with
# lintian where it is installed. `make deb` calls this.
#
# DEB_MAINTAINER='NAME <MAIL>', else git's user.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1-}
version=${version//-/+}
if ! [[ $version =~ ^[0-9][A-Za-z0-9.+~]*$ ]]; then
    echo "ci/deb.sh: '${1-}' is no version of a package: it begins with a digit and has only" \
        "letters, digits and . + - ~" >&2
    exit 64
fi
maintainer=${DEB_MAINTAINER:-$(git config user.name) <$(git config user.email)>}
architecture=$(dpkg --print-architecture)
date=$(date -u -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}")

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
umask 022
make --no-print-directory install DESTDIR="$staging/all" PREFIX=/usr >/dev/null

# What a program or library of a folder needs of other packages.
depends() {
    mkdir -p "$staging/shlibs/debian"
    printf 'Source: kernel-gate\n\nPackage: kernel-gate\nArchitecture: any\n' \
        >"$staging/shlibs/debian/control"
    mapfile -t files < <(find "$1" -type f \( -path '*/bin/*' -o -name '*.so' \))
    (cd "$staging/shlibs" && dpkg-shlibdeps -O --ignore-missing-info "${files[@]}" 2>/dev/null) |
        sed -n 's/^shlibs:Depends=//p'
}

# pack NAME SUMMARY DESCRIPTION RECOMMENDS: of the tree $staging/NAME
pack() {
    local name=$1 tree=$staging/$1 doc=$staging/$1/usr/share/doc/$1 needs
    needs=$(depends "$tree")
    mkdir -p "$doc" "$tree/DEBIAN"
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n'
        printf 'Files: *\nCopyright: %s the authors of Kernel Gate\n' "$(date -d "$date" +%Y)"
        printf 'License: Apache-2.0\n On Debian systems, the text of this licence is in\n'
        printf ' /usr/share/common-licenses/Apache-2.0.\n'
    } >"$doc/copyright"
    printf '%s (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
        kernel-gate "$version" "$maintainer" "$date" | gzip -9n >"$doc/changelog.gz"
    find "$tree" -type f \( -path '*/bin/*' -o -name '*.so' \) -exec strip --strip-unneeded \
        --remove-section=.comment --remove-section=.note {} +
    find "$tree" -name '*.so' -exec chmod 644 {} +
    [ ! -d "$tree/usr/share/man" ] || find "$tree/usr/share/man" -type f -exec gzip -9n {} +
    cat >"$tree/DEBIAN/control" <<CONTROL
Package: $name
Source: kernel-gate
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $needs
Recommends: $4
Section: devel
Priority: optional
Description: $2
$3
CONTROL
    (cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    mkdir -p dist
    dpkg-deb --root-owner-group --build "$tree" "dist/${name}_${version}_$architecture.deb"
}

take() {
    mkdir -p "$staging/$1/$(dirname "$2")"
    mv "$staging/all/$2" "$staging/$1/$2"
}
take kernel-gate-server usr/bin/gate-server
take kernel-gate-server usr/lib/systemd/system/gate-server.service
take kernel-gate-server usr/lib/systemd/system/gate-server.socket
take kernel-gate-server usr/share/man/man1/gate-server.1
take kernel-gate-server usr/share/bash-completion/completions/gate-server
install -Dm 644 -t "$staging/kernel-gate-server/usr/share/doc/kernel-gate-server" CHANGELOG.md
mv "$staging/all" "$staging/kernel-gate"
# Of no architecture, and found by cross compilers too.
mv "$staging/kernel-gate/usr/lib/pkgconfig" "$staging/kernel-gate/usr/share/pkgconfig"
rm -rf "$staging/kernel-gate/usr/lib/systemd"
find "$staging" -type d -empty -delete

pack kernel-gate 'regression gate for GPU kernels' \
    ' Verifies and measures the kernels of a library, compares them with stored
 baselines in the same processes, and passes or fails.' 'git, curl'
pack kernel-gate-server 'tracking server and dashboard of Kernel Gate' \
    ' Keeps the runs of kernel-gate over time, detects changes, raises alerts and
 shows them in a dashboard.' 'ca-certificates'
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "dist/kernel-gate_${version}_$architecture.deb" \
        "dist/kernel-gate-server_${version}_$architecture.deb"
fi
