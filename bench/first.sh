#!/usr/bin/env bash
# Clones the repository, and measures how long after `make run` with empty caches of Go the first tool in each language answers, in seconds.
# Port 8000 must be free. With KEEP_MODULES=1 Go's modules are not downloaded again. With NETWORK=none, which needs unshare and ip, there is
# only the machine's own network, the port need not be free, and Go's compiled code is kept, since compiling does not depend on the network.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${NETWORK:-}" = none ]; then
	export NETWORK=cut KEEP_MODULES=1 KEEP_COMPILED=1
	[ "$(id -u)" = 0 ] || user=--map-root-user
	exec unshare --net ${user:-} -- sh -c 'ip link set lo up && exec bench/first.sh'
fi
folder=$(mktemp -d)
run=
# stop ends make and all processes that it has started, and waits for their end: until then they use the folder.
stop() {
	[ -z "$run" ] || kill -- "-$run" 2>/dev/null || true
	wait
	while [ -n "$run" ] && kill -0 -- "-$run" 2>/dev/null; do sleep 0.1; done
	chmod -R u+w "$folder"
	rm -rf "$folder"
}
trap stop EXIT
git clone --quiet . "$folder/toolsrv"
GOCACHE=$([ -n "${KEEP_COMPILED:-}" ] && go env GOCACHE || echo "$folder/build")
export GOCACHE XDG_CACHE_HOME="$folder/cache"
[ -n "${KEEP_MODULES:-}" ] || export GOMODCACHE="$folder/modules"
begin=$(date +%s%N)
set -m # with a process group of its own
(cd "$folder/toolsrv" && exec make run) >"$folder/log" 2>&1 &
run=$!
set +m
seconds() { echo "$(date +%s%N) $begin" | awk '{printf "%.1f", ($1 - $2) / 1e9}'; }
alive() { [ $SECONDS -lt 3600 ] && kill -0 "$run" 2>/dev/null; }
# Until it listens, asking would take a third of a processor.
until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null || ! alive; do sleep 0.2; done
# answer LANGUAGE PATH ARGUMENTS waits until a tool answers with 200, for an hour at most: the machine may have others to serve.
answer() {
	until curl -fsS "localhost:8000$2" -H 'Content-Type: application/json' -d "$3" >/dev/null 2>&1; do
		alive || { echo "no answer of $2:"; cat "$folder/log"; exit 1; } >&2
		sleep 0.2
	done
	echo "first_answer_s $1 $(seconds)"
}
answers=()
answer rust /hash/digest '{"data": "abc"}' & answers+=($!)
answer python /invoice/total '{"lines": [{"quantity": "3", "price": "9.99", "tax": "19"}]}' & answers+=($!)
answer javascript /code/javascript '{"code": "6 * 7"}' & answers+=($!)
answer typescript /diff/unified '{"before": "a", "after": "b"}' & answers+=($!)
answer go /math/add '{"a": 2, "b": 3}' & answers+=($!)
for a in "${answers[@]}"; do wait "$a"; done
