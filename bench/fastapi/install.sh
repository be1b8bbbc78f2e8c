#!/usr/bin/env bash
# Installs FastAPI and what serves it into .venv/fastapi, for `make bench-languages`. Needs Python 3.11 or later and, the first time, its registry.
set -euo pipefail
cd "$(dirname "$0")"
venv=$(cd ../.. && pwd)/.venv/fastapi
if ! cmp -s requirements.txt "$venv/requirements.txt"; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r requirements.txt
	cp requirements.txt "$venv/requirements.txt" # the last thing written: it says that the environment is whole
fi
