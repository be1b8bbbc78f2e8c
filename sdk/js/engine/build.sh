#!/bin/sh
# Builds the engine for JavaScript into the folder $1: javascript.wasm, its licences, and about.txt, the arguments for seal.
# With --revision instead of a folder it prints the digest of what it builds from, and builds nothing.
# The interpreter itself is compiled once for its sources and flags; then a change of the package toolsrv or of the glue takes seconds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
. "$here/../../engines/cache.sh"

capacity=4194304 # bytes for a script with all that it imports
stack=1048576    # bytes of the stack in memory
room=393216       # of these, what is left to the interpreter when a script has used up its part

read -r _ crate version checksum <<-END
	$(grep '^crate rquickjs-sys ' "$here/sources.txt")
END
interpreter=$(sed -n 's/^version //p' "$here/sources.txt")

# Reproducible: no path of this machine gets into the module.
target="--target=wasm32-wasi -mexec-model=reactor"
flags="-O2 -DNDEBUG -D_GNU_SOURCE -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_SIGNAL -fvisibility=hidden -g0"
parts="quickjs libregexp libunicode dtoa"

# fetch_sources edits what is in the crate where it is not as we need it.
fetch_sources() {
	fetch_crate "$crate" "$version" "$checksum" "$1/crate"
	mv "$1/crate/quickjs" "$1/quickjs"
	rm -rf "$1/crate"
	"$here/edit.sh" "$1/quickjs"
}

compile_interpreter() {
	for part in $parts; do
		(cd "$engines/$sources/quickjs" && zig cc $target $flags -w -c -o "$1/$part.o" "$part.c")
	done
}

# list_sources writes the JavaScript that is built in as tables in C.
list_sources() {
	for table in package web; do
		case $table in
		package) folder=$here/.. names=$package_files ;;
		web) folder=$here/web names=$web_files ;;
		esac
		for name in $names; do
			printf 'static const char %s_%s[] = {\n#embed "%s"\n, 0};\n' "$table" "$(basename "$name" .js)" "$folder/$name"
		done
		printf 'static const struct source %s_sources[] = {\n' "$table"
		for name in $names; do
			id=${table}_$(basename "$name" .js)
			printf '\t{"%s", %s, sizeof %s - 1},\n' "$name" "$id" "$id"
		done
		printf '};\n'
	done
}

# license prints a heading, and files.
license() {
	printf '%s\n%s\n\n' "$1" "$(echo "$1" | tr -c '\n' '=')"
	shift
	cat "$@"
	echo
}

link_engine() {
	mkdir "$1/work"
	list_sources >"$1/work/sources.inc"
	for part in engine bundle host memory modules random; do
		zig cc $target $flags -std=c23 -Wall -Wextra -Wno-unused-parameter -Werror -I "$engines/$sources/quickjs" -I "$1/work" -I "$here/../../engines" \
			-DTOOLSRV_CAPACITY=$capacity -DTOOLSRV_STACK=$((stack - room)) -ffile-prefix-map="$here=." -c -o "$1/work/$part.o" "$here/$part.c"
	done
	for part in capability malloc; do
		zig cc $target $flags -std=c23 -Wall -Wextra -Werror -ffile-prefix-map="$here/../../engines=." -c -o "$1/work/$part.o" "$here/../../engines/$part.c"
	done
	objects=
	for part in $parts; do
		objects="$objects $engines/$objects_stage/$part.o"
	done
	zig cc $target -s -Wl,-z,stack-size=$stack -Wl,--export=toolsrv_bundle -Wl,--gc-sections \
		-lwasi-emulated-process-clocks -lwasi-emulated-signal -o "$1/javascript.wasm" "$1"/work/*.o $objects
	rm -rf "$1/work"
	libc=$(echo "$engines/$zig_stage"/lib/python*/site-packages/ziglang)
	{
		license "QuickJS-ng" "$engines/$sources/quickjs/LICENSE"
		license "The C library: wasi-libc" "$libc"/lib/libc/wasi/LICENSE* "$libc"/lib/libc/musl/COPYRIGHT
		license "zig, with what the compiler links" "$libc/LICENSE"
	} >"$1/javascript.licenses.txt"
	printf -- '-name javascript -version "%s" -revision %s -capacity %s\n' "$interpreter" "$revision" "$capacity" >"$1/about.txt"
}

# What the package toolsrv is in the sandbox: the files that it publishes, without those that are for tests only.
package_files=$(sed -n 's/^ *"files": \[\(.*\)\],*$/\1/p' "$here/../package.json" | tr -d '" ' | tr ',' '\n' | grep '\.js$' | grep -v -x -e double.js -e host.js -e register.js -e testing.js)
web_files="begin.js timers.js encoding.js performance.js crypto.js clone.js host.js urlparts.js searchparams.js url.js events.js headers.js body.js fetch.js intl.js console.js"

sources=quickjs-sources-$(digest "$here/sources.txt" "$here/edit.sh" </dev/null)
objects_stage=quickjs-$(echo "$sources $zig_version $target $flags $parts" | digest)
revision=$(
	files=
	for name in $package_files; do files="$files $here/../$name"; done
	for name in $web_files; do files="$files $here/web/$name"; done
	echo "$objects_stage $capacity $stack $room" | digest "$here"/*.c "$here"/*.h "$here/build.sh" "$here"/../../engines/capability.c "$here"/../../engines/capability.h "$here"/../../engines/malloc.c "$here"/../../engines/heap.h $files
)
if [ "$out" = --revision ]; then
	echo "$revision"
	exit
fi
if [ ! -d "$engines/javascript-$revision" ]; then
	stage "$zig_stage" setup_zig
	stage "$sources" fetch_sources
	stage "$objects_stage" compile_interpreter
fi
stage "javascript-$revision" link_engine
mkdir -p "$out"
cp "$engines/javascript-$revision"/* "$out/"
