#!/bin/sh
# Builds engines again, from nothing and in another place, and compares them with those in the tree. The arguments are their build.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cache.sh"
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
stage "$zig_stage" setup_zig
mkdir "$again/engines"
ln -s "$engines/$zig_stage" "$again/engines/$zig_stage" # a download, not a build
for build in "$@"; do
	TOOLSRV_ENGINES=$again/engines "$build" "$again/built"
	"$here/seal.sh" "$again/built" -check
	rm -rf "$again/built"
done
