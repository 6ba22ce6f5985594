#!/bin/bash
# install.sh BUILD SOURCE - what a stranger does with weir: install it, link a program through
# pkg-config with the shared and the static library, load it by dlopen, use it as a meson
# subproject.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}

DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet
pc=$(find "$work/root" -name weir.pc)
[ -n "$pc" ] || { echo "no weir.pc was installed"; exit 1; }
# The prefix of the build, inside the folder that it went to.
export PKG_CONFIG_SYSROOT_DIR=$work/root PKG_CONFIG_LIBDIR=$(dirname "$pc")
library=$(find "$work/root" -name 'libweir.so.0' | head -1)
[ -n "$library" ] || { echo "no libweir.so.0 was installed: the soname is 0"; exit 1; }
if ! readelf -d "$library" | grep -q 'SONAME.*\[libweir.so.0\]'; then
    echo "the soname is not libweir.so.0"
    exit 1
fi

echo "== shared"
$cc -std=c11 "$source/tests/install_program.c" -o "$work/shared" \
    $(pkg-config --cflags --libs weir)
LD_LIBRARY_PATH=$(dirname "$library") "$work/shared"

echo "== static"
archive=$(find "$work/root" -name libweir.a)
mkdir "$work/only_static"
cp "$archive" "$work/only_static"
$cc -std=c11 "$source/tests/install_program.c" -o "$work/static" $(pkg-config --cflags weir) \
    -L"$work/only_static" $(pkg-config --static --libs weir | sed 's/-L[^ ]*//g')
if ldd "$work/static" | grep weir; then
    echo "the static program needs the shared library"
    exit 1
fi
"$work/static"

echo "== dlopen"
$cc -std=gnu11 "$source/tests/install_plugin.c" -o "$work/plugin" $(pkg-config --cflags weir) \
    -ldl -lpthread
"$work/plugin" "$library"

echo "== subproject"
mkdir -p "$work/project/subprojects"
ln -s "$source" "$work/project/subprojects/weir"
cp "$source/tests/install_program.c" "$work/project/program.c"
cat >"$work/project/meson.build" <<'END'
project('user', 'c', default_options: ['c_std=c11'])
weir = dependency('weir', fallback: 'weir')
test('program', executable('program', 'program.c', dependencies: weir))
END
unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
meson setup --wrap-mode=forcefallback "$work/project/build" "$work/project" \
    >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
meson compile -C "$work/project/build" -j 2 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
meson test -C "$work/project/build" --no-rebuild >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -E '^(Ok|Fail):' "$work/log"
