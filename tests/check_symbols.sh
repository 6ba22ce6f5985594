#!/bin/bash
# check_symbols.sh SHARED STATIC - only weir_ names are visible in the shared library, and the
# static one adds no global name to a program but weir_ and wr_ ones.
set -euo pipefail

bad=$(nm -D --defined-only "$1" | awk '$2 != "A" && $3 !~ /^weir_/ { print $3 }')
if [ -n "$bad" ]; then
    echo "visible in $1, and not weir_:" $bad
    exit 1
fi
seen=$(nm -D --defined-only "$1" | awk '$3 ~ /^weir_/' | wc -l)
if [ "$seen" -lt 10 ]; then
    echo "$1 shows only $seen names"
    exit 1
fi
bad=$(nm -g --defined-only "$2" 2>/dev/null | awk 'NF == 3 && $3 !~ /^(weir|wr)_/ { print $3 }')
if [ -n "$bad" ]; then
    echo "global in $2, and neither weir_ nor wr_:" $bad
    exit 1
fi
# Every function of the header is there.
header=$(dirname "$0")/../include/weir.h
for name in $(sed -n 's/^WEIR_API.*[ *]\(weir_[a-z_]*\)(.*/\1/p' "$header"); do
    nm -D --defined-only "$1" | grep -q " $name\$" || { echo "$1 lacks $name"; exit 1; }
done
# A plugin that loads the library must find room for its thread-local storage: a few bytes.
tls=$(($(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')))
if [ "${tls:-0}" -gt 64 ]; then
    echo "$1 needs $tls bytes of thread-local storage"
    exit 1
fi
echo "$seen names, $tls bytes of thread-local storage"
