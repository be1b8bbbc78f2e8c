#!/bin/sh
# Prints the licences of all that is in the engine for Python: the sources are in $1, the compiler with its C library is in $2.
set -eu
section() {
	printf '\n%s\n%s\n\n' "$1" "$(echo "$1" | tr -c '\n' '=')"
	shift
	cat "$@"
}
libc=$(echo "$2"/lib/python*/site-packages/ziglang/lib/libc)
section "CPython" "$1/cpython/LICENSE"
section "What CPython contains" "$1/cpython/Doc/license.rst"
section "Expat" "$1/cpython/Modules/expat/COPYING"
section "zlib" "$1/zlib/LICENSE"
section "Time zones: package tzdata" "$1"/tzdata/tzdata-*.dist-info/licenses/LICENSE "$1"/tzdata/tzdata-*.dist-info/licenses/licenses/LICENSE_APACHE
section "The C library: wasi-libc" "$libc"/wasi/LICENSE* "$libc"/musl/COPYRIGHT
