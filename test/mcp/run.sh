#!/usr/bin/env bash
# Tries the running server with the clients of others: the official conformance suite of MCP, the TypeScript SDK in both
# of its lines, the Inspector's command line, the Python SDK in both of its lines, FastMCP's client, and the client libraries of
# docs/mcp.md; and two servers with one state in NATS. Needs Go, npm, Python and, the first time, the registries of these.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)

command -v npm >/dev/null || { echo "npm is not installed: https://nodejs.org has it"; exit 1; }

make --no-print-directory -C "$root" build tools
mkdir -p "$root/build/mcp"
"$root/bin/toolsrv" pack "$root/testdata/mcp/guest.wasm" --manifest "$root/testdata/mcp/tools.json" -o "$root/build/mcp/guest.wasm"

# The packages are out of the way of whatever walks the repository. The copy of the lock file is the last thing written: it
# says that they are whole and up to date. The Node.js that the lock file pins runs them, where it has one for this system.
node=$root/.venv/mcp-node
if ! cmp -s package-lock.json "$node/installed.json"; then
	rm -rf "$node"
	mkdir -p "$node"
	cp package.json package-lock.json "$node/"
	npm ci --prefix "$node" --ignore-scripts --no-audit --no-fund --loglevel=error
	cp package-lock.json "$node/installed.json"
fi
cp ./*.mjs "$node/"

./python.sh
(cd ../nats && go build -o "$root/build/mcp/nats-server" github.com/nats-io/nats-server/v2)

PYTHON=$root/.venv/mcp-python/bin/python PYTHON1=$root/.venv/mcp-python-v1/bin/python \
	TOOLSRV=$root/bin/toolsrv TOOLS=$root/build/tools GUEST=$root/build/mcp/guest.wasm NODE_PACKAGES=$node NATS=$root/build/mcp/nats-server \
	go test -count=1 "$@" ./...
