#!/usr/bin/env bash
# Clones the repository, and measures how long after `make run` with empty caches of Go the first tool in each language answers, in seconds.
# Port 8000 must be free. With KEEP_MODULES=1 Go's modules are not downloaded again.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'kill "$run" 2>/dev/null || true; wait "$run" 2>/dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
git clone --quiet . "$folder/toolsrv"
export GOCACHE="$folder/build" XDG_CACHE_HOME="$folder/cache"
[ -n "${KEEP_MODULES:-}" ] || export GOMODCACHE="$folder/modules"
begin=$(date +%s%N)
(cd "$folder/toolsrv" && exec make run) >"$folder/log" 2>&1 &
run=$!
seconds() { echo "$(date +%s%N) $begin" | awk '{printf "%.1f", ($1 - $2) / 1e9}'; }
# answer LANGUAGE PATH ARGUMENTS waits until a tool answers with 200.
answer() {
	until curl -fsS "localhost:8000$2" -H 'Content-Type: application/json' -d "$3" >/dev/null 2>&1; do
		kill -0 "$run" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
		sleep 0.1
	done
	echo "first_answer_s $1 $(seconds)"
}
answer rust /hash/digest '{"data": "abc"}' &
answer python /invoice/total '{"lines": [{"quantity": "3", "price": "9.99", "tax": "19"}]}' &
answer javascript /code/javascript '{"code": "6 * 7"}' &
answer typescript /diff/unified '{"before": "a", "after": "b"}' &
answer go /math/add '{"a": 2, "b": 3}' &
wait %2 %3 %4 %5 %6
