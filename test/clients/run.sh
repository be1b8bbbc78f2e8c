#!/usr/bin/env bash
# Has real clients take the document and the running service: a Go client that oapi-codegen generates, and
# schemathesis, which sends what the document allows and what it forbids. Needs Go, Python 3 and, the first time, their
# registries.
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)

make --no-print-directory -C "$root" build tools

# The copy of the requirements is the last thing written: it says that the environment is whole and up to date.
venv=$root/.venv/schemathesis
if ! cmp -s requirements.txt "$venv/requirements.txt"; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r requirements.txt
	cp requirements.txt "$venv/requirements.txt"
fi

TOOLSRV=$root/bin/toolsrv TOOLS=$root/build/tools SCHEMATHESIS=$venv/bin/st go test -count=1 "$@" ./...
