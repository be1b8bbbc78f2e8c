#!/usr/bin/env bash
# Installs the MCP SDK for Python and what uses it, for run.sh and for `make bench-mcp`: line 2 in .venv/mcp-python, line 1 in
# .venv/mcp-python-v1. Needs Python 3.11 or later and, the first time, its registry.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)

# The copy of the requirements is the last thing written: it says that the environment is whole and up to date.
install() {
	local requirements=$1 venv=$root/.venv/$2
	if ! cmp -s "$requirements" "$venv/requirements.txt"; then
		rm -rf "$venv"
		python3 -m venv "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$requirements"
		cp "$requirements" "$venv/requirements.txt"
	fi
}
install requirements.txt mcp-python
install requirements-v1.txt mcp-python-v1
