#!/bin/bash
# sync_faults.sh WEIR - eight processes under each fault that `weir sync-demo` knows, each judged by the
# bound: what they granted in all, and in any window of it. A run that asked for nothing, or in which
# the fault did not happen, fails too.
set -euo pipefail
weir=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# run NAME JQ-CONDITION ARGUMENT...
run() {
    local name=$1 condition=$2
    shift 2
    if ! "$weir" sync-demo --processes 8 --demand 3x --duration 4s --json "$@" >"$folder/$name"; then
        echo "$name: above the bound"
        failed=1
    fi
    local seen='.asked > 3000 and .granted > 1500 and .bound > 0 and .within_bound'
    if ! jq -e "$seen and ($condition)" "$folder/$name" >/dev/null; then
        echo "$name: not so: $seen and ($condition)"
        failed=1
    fi
    jq -r --arg name "$name" '"\($name): granted \(.granted), allowed \(.allowed), worst window " +
        "\(.worst_window_excess), bound \(.bound)"' "$folder/$name"
}

sum() { # of a field over the processes
    echo "([.processes[].$1] | add)"
}

run none 'true'
run one '([.processes[].granted] | map(select(. > 0)) | length) == 1' --pattern one
run outage "$(sum timeouts) + $(sum disconnects) > 0" --fault outage=1500ms@1s
run latency '.rtt_s > 0.1' --fault latency=200ms
run flush "$(sum marker_lost) > 0" --fault flush@1s
run script-flush "$(sum refused) > 0" --fault script-flush@1s
run kill-node '([.processes[].killed] | any)' --fault kill-node@1s
run kill-redis "$(sum disconnects) > 0" --fault kill-redis@1s
[ "$failed" -eq 0 ] && echo 'all within their bounds'
exit "$failed"
