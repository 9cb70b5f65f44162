#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# dist.sh BUILD NAME LIBRARY...: packs dist/NAME.tar.gz, the gate with these kernel libraries of
# BUILD, for a machine that has a driver and a C library and nothing else. Fails when something in
# it needs more.
#
# The unpacked folder has the shape of build/ and of an installed tree. With it go the tests that
# need a GPU and a script that runs them, because the machines that have one often have no compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
name=$2
shift 2
newest_glibc=2.39 # Ubuntu 24.04
libc_family='libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 ld-linux-x86-64.so.2'

die() {
    echo "ci/dist.sh: $1" >&2
    exit 1
}

staging=$(mktemp -d "$build/dist/staging.XXXXXX")
trap 'rm -rf "$staging"' EXIT
stage=$staging/$name
lib=$stage/lib/kernel-gate
share=$stage/share/kernel-gate
licences=$share/licences
mkdir -p "$stage/bin" "$lib" "$share" "$licences"

install -s "$build/dist/gate" "$build/dist/gate-search" "$stage/bin/"
# As built: stored baselines name a library by its hash.
for library in "$@"; do
    cp "$build/lib/kernel-gate/$library" "$lib/"
done
cp -r "$build/share/kernel-gate/." "$share/"

# What is bundled, and under which terms.
cp -L "$(pkg-config --variable=libdir libcjson)/libcjson.so.1" "$lib/"
for package in libcjson-dev libsqlite3-dev libexpat1-dev libmd-dev zlib1g-dev libzstd-dev; do
    cp "/usr/share/doc/$package/copyright" "$licences/${package%-dev}.txt" ||
        die "no licence of $package in /usr/share/doc"
done
if [ -e "$lib/libours.so" ]; then
    echo 'The CUDA runtime is linked statically, as the NVIDIA CUDA Toolkit EULA allows:
https://docs.nvidia.com/cuda/eula/' >"$licences/cuda-runtime.txt"
fi
cp LICENSE CHANGELOG.md "$stage/"
# What it takes to write a kernel library and its suite.
install -Dm 644 -t "$stage/docs" docs/bundles.md docs/kernels.md docs/ops.md
cp -r "$build/include" "$stage/"
cp -r "$build/lib/pkgconfig" "$build/lib/cmake" "$stage/lib/"
if [ -d tests/gpu ]; then
    mkdir -p "$stage/tests/e2e" # of which tests/gpu takes these
    cp -r tests/run tests/gpu "$stage/tests/"
    mkdir "$stage/examples"
    cp -r examples/triton "$stage/examples/"
    cp tests/e2e/{harness,fake_services,fake_tracker,test_adopt}.py "$stage/tests/e2e/"
    find "$stage/tests" -name __pycache__ -prune -exec rm -r {} +
    for folder in gpu mutants; do
        if [ -d "$build/tests/$folder" ]; then
            cp -r "$build/tests/$folder" "$stage/tests/"
        fi
    done
    if [ -d "$stage/tests/mutants" ]; then
        cp tests/mutants/*.py tests/mutants/catalogue.json "$stage/tests/mutants/"
    fi
    install ci/test-gpu.sh "$stage/test-gpu.sh"
fi

# What every program and library in it asks for must be in it, or belong to the C library.
highest=0
while IFS= read -r file; do
    dynamic=$(readelf -dW "$file")
    while IFS= read -r needed; do
        [[ " $libc_family " == *" $needed "* || -e $lib/$needed ]] ||
            die "$file needs $needed, which is neither bundled nor of the C library"
    done < <(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
    while IFS= read -r path; do
        [[ $path == "\$ORIGIN"* ]] || die "$file looks for libraries in $path"
    done < <(sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]/\2/p' <<<"$dynamic")
    glibc=$(readelf -VW "$file" | sed -n 's/.*Name: GLIBC_\([0-9.]*\).*/\1/p' | sort -Vu | tail -1)
    highest=$(printf '%s\n' "$highest" "${glibc:-0}" | sort -V | tail -1)
done < <(find "$stage" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' -o \
    -path '*/gpu/*' -perm -u+x ! -name '*.py' \))
[ "$(printf '%s\n' "$highest" $newest_glibc | sort -V | tail -1)" = $newest_glibc ] ||
    die "it needs glibc $highest, newer than $newest_glibc"
sed "s/@GLIBC@/$highest/" ci/dist-README.md >"$stage/README.md"
env -i "$stage/bin/gate" --version >/dev/null || die 'the packed gate does not start'

mkdir -p dist
epoch=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar -C "$staging" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" \
    --mode=go+rX,go-w -cf - "$name" | gzip -6n >"$staging/packed" # -9: four times as long, 1 % less
install -m 644 "$staging/packed" "dist/$name.tar.gz"
echo "dist/$name.tar.gz: $(du -h "dist/$name.tar.gz" | cut -f1), needs glibc $highest"
