#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh: turns files into a C table (embed.h), when the gate is built.
#
#     embed.sh SYMBOL FILE...         > table.c
#     embed.sh --page SYMBOL FILE...  > table.c
#
# writes `const struct embedded_file SYMBOL[]`, sorted by name, and `SYMBOL_count`. The name of a
# file in the table is FILE without its folders, or what follows web/ in it, as "chart/plot.js" of
# web/chart/plot.js. With --page, for files that a browser is given, the table is of `struct
# embedded_asset`, each with its gzip form, `SYMBOL_version` is a hash of all names and bytes, and
# in index.html every "NAME" of another file becomes "files/VERSION/NAME": an address with a
# version never gets other bytes and may be kept forever. The modules name each other relatively,
# so they need no change and never mix versions.
set -eu
export LC_ALL=C

page='' kind=file
[ "$1" != --page ] || { page=yes kind=asset; shift; }
symbol=$1
shift
cat "$@" < /dev/null > /dev/null # all can be read
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for file; do
    case $file in *web/*) name=${file#*web/} ;; *) name=${file##*/} ;; esac
    printf '%s %s\n' "$name" "$file"
done | sort > "$folder/files"

# The bytes as an array, with a NUL that is not counted.
put_bytes() {
    printf 'static const unsigned char %s[] = {\n' "$1"
    od -An -v -tu1 -w24 "$2" | sed 's/[0-9][0-9]*/&,/g'
    printf '0};\n'
}

printf '/* Made by the build. */\n#include "gate/base/embed.h"\n\n'
version=$(while read -r name file; do
    printf '%s %s\n' "$name" "$(sha256sum < "$file")"
    printf 's|"%s"|"files/VERSION/%s"|g\n' "$(printf %s "$name" | sed 's/\./\\./g')" "$name" >> \
        "$folder/edits"
done < "$folder/files" | sha256sum | cut -c -16)
sed -i "s/VERSION/$version/" "$folder/edits"

i=0
while read -r name file; do
    case $name in *[!A-Za-z0-9_./-]*) # sed would take some for more than themselves
        echo "embed.sh: '$name' has characters that no name here may have" >&2
        exit 1 ;;
    esac
    if [ "$page$name" = yesindex.html ]; then
        sed -f "$folder/edits" "$file" > "$folder/page"
        file=$folder/page
    fi
    put_bytes "file_$i" "$file"
    row="\"$name\", file_$i, $(wc -c < "$file")"
    if [ "$page" ]; then
        gzip -9nc "$file" > "$folder/gz"
        put_bytes "gz_$i" "$folder/gz"
        row="$row, gz_$i, $(wc -c < "$folder/gz")"
    fi
    printf '    {%s},\n' "$row" >> "$folder/rows"
    i=$((i + 1))
done < "$folder/files"

[ -z "$page" ] || printf '\nconst char %s_version[] = "%s";\n' "$symbol" "$version"
printf '\nconst struct embedded_%s %s[] = {\n' "$kind" "$symbol"
cat "$folder/rows"
printf '};\nconst size_t %s_count = %d;\n' "$symbol" "$i"
