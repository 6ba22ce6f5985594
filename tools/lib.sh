# shellcheck shell=bash
# lib.sh - what tools/try and tools/check share. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What it takes to build the library and the command, and to draw. By Debian's names.
build_packages=(libc6-dev meson ninja-build pkg-config libck-dev libxxhash-dev zlib1g-dev
    libjansson-dev libjemalloc-dev libhiredis-dev gnuplot-nox)
command -v clang >/dev/null || build_packages+=(gcc)

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# quietly LOG COMMAND...: runs the command with its output in LOG, which is shown when it fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null && return
    cat "$log" >&2
    return 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

missing_packages() {
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            printf '%s\n' "$package"
    done
}

# need PACKAGE...: installs those that are missing. Without apt it names them and goes on if there is
# a meson at all, which then says what it does not find.
need() {
    local missing log
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        say "There is no apt here. This needs, by Debian's names: $*"
        command -v meson >/dev/null || die "install these, meson first, and run it again"
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
        die "run it as root, or install these first: ${missing[*]}"
    say "Installing ${missing[*]}"
    log=$(mktemp)
    quietly "$log" as_root apt-get update -q -o DPkg::Lock::Timeout=120 ||
        die "apt-get update failed; see above"
    quietly "$log" as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
        --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}" ||
        die "apt-get could not install ${missing[*]}; see above"
    rm -f "$log"
}

# configure FOLDER OPTION...: a build folder with these options; made anew where it cannot be changed.
configure() {
    local folder=$1
    shift
    mkdir -p "$folder"
    if [ -f "$folder/build.ninja" ]; then
        meson setup --reconfigure "$folder" "$root" "$@" >/dev/null 2>&1 </dev/null && return
        rm -rf "$folder"
        mkdir -p "$folder"
    fi
    quietly "$folder/setup.log" meson setup "$folder" "$root" "$@"
}

# compile FOLDER
compile() {
    quietly "$1/compile.log" meson compile -C "$1" -j 2
}
