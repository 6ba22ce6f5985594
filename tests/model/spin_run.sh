# Runs configurations of the models.  Sourced by check.sh and check_large.sh, which list them:
#
#   exhaust NAME MODEL FLAG...           every state is visited and no assertion fails
#   cycle   NAME MODEL FLAG...           and there is no cycle
#   mutant  NAME FAILURE MODEL FLAG...   the search finds the failure: a pattern of spin's message
#   finish                               runs them, prints a line for each and the sum
#
# JOBS (2) run at a time, each with at most MEMORY_MIB (3500) MiB and LIMIT_S (300) seconds.

models=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
JOBS=${JOBS:-2} MEMORY_MIB=${MEMORY_MIB:-3500} LIMIT_S=${LIMIT_S:-300} COMPRESS=${COMPRESS:-}
DEPTH=100000
export JOBS MEMORY_MIB LIMIT_S COMPRESS DEPTH models

for tool in spin "${CC:=gcc}"; do
    if ! command -v "$tool" >/dev/null; then
        echo "$0: $tool is not installed (apt-get install spin gcc): the models are not checked"
        exit 77
    fi
done
export CC

work=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/model.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export work

list() { printf '%s;%s;%s;%s;%s\n' "$1" "$2" "$3" "$4" "${*:5}" >>"$work/list"; }
exhaust() { list exhaust "$1" '' "$2" "${@:3}"; }
cycle() { list cycle "$1" '' "$2" "${@:3}"; }
mutant() { list mutant "$1" "$2" "$3" "${@:4}"; }

# Translates, compiles and searches; leaves pan's output in ./out.
search() { # kind failure model flags
    local compile run=
    case $1:$2 in
    exhaust:*) compile="-O1 -DSAFETY $COMPRESS" ;;
    cycle:* | mutant:*cycle*) compile='-O1 -DNP' run=-l ;;
    mutant:*) compile='-O0 -DSAFETY' ;;
    esac
    spin -a $4 "$models/$3" >translation 2>&1 || return
    $CC -w $compile -DMEMLIM="$MEMORY_MIB" -o pan pan.c || return
    timeout "$LIMIT_S" ./pan $run -m$DEPTH >out 2>&1
}

# Sets verdict from ./out; fails if it is not the wanted one.
judge() { # kind failure
    local found
    found=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' out)
    if [ -n "$found" ]; then
        verdict="finds: $found"
        [ "$1" = mutant ] && [[ $found =~ $2 ]]
    elif grep -q 'max search depth too small\|Search not completed' out ||
        ! grep -q 'errors: 0' out; then
        verdict='not exhausted'
        return 1
    else
        verdict=exhausted
        [ "$1" != mutant ]
    fi
}

one() { # a line of the list
    local kind name failure model flags verdict word=ok start=$EPOCHREALTIME
    IFS=';' read -r kind name failure model flags <<<"$1"
    cd "$(mktemp -d "$work/run.XXXXXX")" || exit 2
    search "$kind" "$failure" "$model" "$flags" 2>errors
    if [ ! -s out ]; then
        word=FAIL verdict="not run: $(cat translation errors 2>/dev/null | head -3 | tr '\n' ' ')"
        : >out
    elif ! judge "$kind" "$failure"; then
        word=FAIL
    fi
    printf '%-4s %-60s %9s states %5.1f s %5.0f MiB  %s\n' "$word" "$kind: $name" \
        "$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out | grep . || echo 0)" \
        "$(awk "BEGIN { print $EPOCHREALTIME - $start }")" \
        "$(sed -n 's/^ *\([0-9.]*\).*total actual memory usage/\1/p' out | grep . || echo 0)" \
        "$verdict" | tee -a "$work/results"
    [ $word = ok ] || echo "     with: spin -a $flags $model"
    rm -rf "$PWD"
}
export -f search judge one

finish() {
    xargs -d '\n' -P "$JOBS" -n 1 bash -c 'one "$1"' one <"$work/list"
    local listed passed
    listed=$(grep -c . "$work/list")
    passed=$(grep -c '^ok' "$work/results")
    echo "$passed passed, $((listed - passed)) failed"
    [ "$passed" -eq "$listed" ]
}
