#!/bin/sh
# Runs the test of malloc.c, natively.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/cache.sh"
stage "$zig_stage" setup_zig
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here"
zig cc -O1 -std=c23 -Wall -Wextra -Werror -fsanitize=undefined -fno-sanitize=function,alignment -o "$work/malloc_test" malloc_test.c
"$work/malloc_test"
