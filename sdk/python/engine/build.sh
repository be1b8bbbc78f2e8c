#!/bin/sh
# Builds the engine for Python into the folder $1: python.wasm, its licences, and about.txt with what `seal` is to write into it.
# With --revision instead of a folder it prints the digest of what it builds from, and builds nothing.
# CPython itself is compiled once for its sources, changes and flags, which takes minutes; then a change of the package toolsrv or
# of the glue takes seconds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
. "$here/../../engines/cache.sh"
. "$here/cpython.sh"

version=3.13.5
stack=4194304 # bytes of the stack in memory
capacity=$(sed -n 's/^#define TOOLSRV_BUNDLE_CAPACITY //p' "$here/engine.h")

target="--target=wasm32-wasi"
flags="-O2 -DNDEBUG -g0 -Wno-date-time"
zlib_parts="adler32 crc32 deflate inffast inflate inftrees trees zutil compress uncompr"

# link_engine compiles modules and glue, and links them.
link_engine() {
	mkdir "$1/work"
	(
		cd "$1/work"
		python="$engines/$compiled"
		"$engines/$freezer/freezer" "$here/freeze.py" "$engines/$sources/cpython/Lib" "$here/.." "$engines/$sources/tzdata/tzdata" .
		for part in engine hostmodule log2 settle where; do
			zig cc $target $flags -std=c23 -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror \
				-isystem "$python/include" -I "$here/../../engines" -ffile-prefix-map="$here=." -c -o $part.o "$here/$part.c"
		done
		for part in capability malloc; do
			zig cc $target $flags -std=c23 -ffile-prefix-map="$here/../../engines=." -c -o $part.o "$here/../../engines/$part.c"
		done
		zig cc $target -O0 -g0 -std=c23 -isystem "$python/include" -I "$here" -c frozen.c -o frozen.o
		zig cc $target -mexec-model=reactor -O2 -s -Wl,-z,stack-size=$stack -Wl,--export=toolsrv_bundle \
			-o ../python.wasm capability.o engine.o hostmodule.o log2.o malloc.o settle.o where.o frozen.o -L"$python/lib" -lpython3.13 -lz -lmpdec -lexpat -lHacl_Hash_SHA2 \
			-lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks
	)
	rm -rf "$1/work"
	"$here/licenses.sh" "$engines/$sources" "$engines/$zig_stage" >"$1/python.licenses.txt"
	printf -- '-name python -version "cpython %s" -revision %s -capacity %s\n' $version "$revision" "$capacity" >"$1/about.txt"
}

sources=python-sources-$(digest "$here/sources.txt" "$here/requirements.txt" </dev/null)
freezer=python-freezer-$(echo "$sources" | digest "$here/cpython.sh")
compiled=cpython-$(echo "$sources $zig_version $target $flags $zlib_parts" | digest "$here/config.site" "$here/patch.py" "$here/cpython.sh")
revision=$(
	echo "$compiled $stack" | digest "$here"/*.c "$here"/*.h "$here"/*.py "$here"/lib/*.py "$here"/*.sh \
		"$here"/../../engines/capability.c "$here"/../../engines/capability.h "$here"/../../engines/malloc.c "$here"/../../engines/heap.h "$here"/../toolsrv/*.py
)
if [ "$out" = --revision ]; then
	echo "$revision"
	exit
fi
if [ ! -d "$engines/python-$revision" ]; then
	stage "$zig_stage" setup_zig
	stage "$sources" fetch_sources
	stage "$freezer" build_freezer
	stage "$compiled" compile_cpython
fi
stage "python-$revision" link_engine
mkdir -p "$out"
cp "$engines/python-$revision"/* "$out/"
