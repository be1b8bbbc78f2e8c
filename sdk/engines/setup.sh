#!/bin/sh
# Installs what engines are built with, into the cache of engines.
set -eu
. "$(dirname "$0")/cache.sh"

stage "$zig_stage" setup_zig
echo "zig $zig_version is in $engines"
