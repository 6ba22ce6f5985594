#!/bin/bash
# with_redis.sh COMMAND... - runs the command with a redis-server of its own, whose URL is in
# WEIR_REDIS. It listens on a unix socket in a temporary folder, and ends with the command.
set -euo pipefail
command -v redis-server >/dev/null || { echo "there is no redis-server: install it"; exit 1; }
folder=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" --save '' \
    --appendonly no >"$folder/log" 2>&1 &
server=$!
for ((i = 0; i < 1000; i++)); do
    redis-cli -s "$folder/redis.sock" ping >/dev/null 2>&1 && break # its file is there before it
    kill -0 "$server" 2>/dev/null || break
    sleep 0.01
done
redis-cli -s "$folder/redis.sock" ping >/dev/null 2>&1 || { echo "redis-server did not start:"; cat "$folder/log"; exit 1; }
WEIR_REDIS=unix:$folder/redis.sock "$@"
