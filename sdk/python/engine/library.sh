#!/bin/sh
# Prints where the library of CPython is, with its tests, and fetches the sources if the cache has them not.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../engines/cache.sh"
. "$here/cpython.sh"

sources=python-sources-$(digest "$here/sources.txt" "$here/requirements.txt" </dev/null)
stage "$sources" fetch_sources
echo "$engines/$sources/cpython/Lib"
