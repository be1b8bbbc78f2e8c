#!/usr/bin/env bash
# Fetches the official JSON Schema test suite into the folder given, which is the only argument. The source package of
# Python's jsonschema carries it.
set -euo pipefail
target=$(realpath -m "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pip asks a source package for its metadata, with what it is built with: that is pinned, too.
python3 -m venv "$work/venv"
pip=("$work/venv/bin/pip" --quiet --disable-pip-version-check)
"${pip[@]}" install --require-hashes --no-deps -r builders.txt
PATH=$work/venv/bin:$PATH "${pip[@]}" download --require-hashes --no-deps --no-build-isolation --no-binary :all: -d "$work" -r package.txt
mkdir "$work/package"
tar -xzf "$work"/jsonschema-*.tar.gz -C "$work/package" --strip-components 1
rm -rf "$target"
mkdir -p "$(dirname "$target")"
mv "$work/package/json" "$target"
