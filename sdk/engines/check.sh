#!/bin/sh
# Builds engines again, from nothing and in another place, and compares them with those of the cache. The arguments are their build.sh.
set -eu
. "$(dirname "$0")/cache.sh"
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
mkdir "$again/engines"
ln -s "$engines/$zig_stage" "$again/engines/$zig_stage" # a download, not a build
for build in "$@"; do
	"$build" "$again/cached"
	TOOLSRV_ENGINES=$again/engines "$build" "$again/built"
	for file in "$again"/cached/*.wasm; do
		cmp "$file" "$again/built/$(basename "$file")"
		echo "$(basename "$file"): built twice, the same: sha256 $(sha256sum <"$file" | cut -d ' ' -f 1)"
	done
	rm -rf "$again/cached" "$again/built"
done
