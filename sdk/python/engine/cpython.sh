# Sourced by build.sh: the stages that take minutes. Each fills a folder of the cache.

# fetch_sources has the sources that sources.txt pins, and the time zones.
fetch_sources() {
	mkdir "$1/fetched"
	(cd "$1/fetched" && fetch_debian trixie $(sed -n 's/^[^#][^ ]* \([^ ]*\) .*/\1/p' "$here/sources.txt"))
	grep -v '^#' "$here/sources.txt" | while read -r name _ file checksum; do
		echo "$checksum  $1/fetched/$file" | sha256sum --check --quiet || { echo "$file is not what sources.txt pins" >&2; return 1; }
		mkdir "$1/$name"
		tar -xf "$1/fetched/$file" -C "$1/$name" --strip-components=1
	done
	rm -rf "$1/fetched"
	python3 -m venv "$1/venv"
	"$1/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps --target "$1/tzdata" -r "$here/requirements.txt"
	rm -rf "$1/venv"
}

# build_freezer builds the interpreter that compiles modules for the engine: of this version, for this machine, and only as
# much of one as that takes.
build_freezer() {
	mkdir "$1/build"
	(
		cd "$1/build"
		"$engines/$sources/cpython/configure" --disable-test-modules --without-ensurepip OPT="-O1 -DNDEBUG" >configure.log 2>&1 &&
			nice -n 5 make -j"$(nproc)" _bootstrap_python >make.log 2>&1
	) || { tail -n 20 "$1"/build/*.log >&2; return 1; }
	mv "$1/build/_bootstrap_python" "$1/freezer"
	mkdir "$1/Modules"
	touch "$1/Modules/Setup.local" # by this it knows that it has been built here, and finds its library in the sources
	rm -rf "$1/build"
}

# compile_cpython compiles the interpreter and its library for compression to archives for WASI, from a copy of the sources
# with our changes. Paths are relative, and the date is that of the sources, so that the result depends on nothing else.
compile_cpython() {
	cp -r "$engines/$sources/cpython" "$1/cpython"
	cp -r "$engines/$sources/zlib" "$1/zlib"
	python3 "$here/patch.py" "$1/cpython"
	printf '#!/bin/sh\n[ "$1" != -c ] || { echo 3.13; exit; }\nexec "%s" "$@"\n' "$engines/$freezer/freezer" >"$1/build-python"
	chmod +x "$1/build-python"
	export SOURCE_DATE_EPOCH=1749600000
	zig="$engines/$zig_stage/bin/python -m ziglang"
	(
		cd "$1/zlib"
		for part in $zlib_parts; do
			zig cc $target $flags -DHAVE_UNISTD_H -c "$part.c"
		done
		zig ar rcs libz.a ./*.o
	)
	(
		mkdir "$1/build"
		cd "$1/build"
		CONFIG_SITE="../cpython/Tools/wasm/config.site-wasm32-wasi $here/config.site" PKG_CONFIG=false READELF=true \
			CC="$zig cc $target" AR="$zig ar" RANLIB="$zig ranlib" ZLIB_CFLAGS=-I../zlib ZLIB_LIBS="-L../zlib -lz" \
			../cpython/configure --host=wasm32-unknown-wasip1 --build="$(../cpython/config.guess)" --disable-test-modules \
			--with-pymalloc --with-build-python="$PWD/../build-python" OPT="$flags" >configure.log 2>&1 &&
			nice -n 5 make -j"$(nproc)" libpython3.13.a >make.log 2>&1
	) || { tail -n 20 "$1"/build/*.log >&2; return 1; }
	mkdir "$1/lib" "$1/include"
	mv "$1/zlib/libz.a" "$1/build/libpython3.13.a" $(find "$1/build/Modules" -name '*.a') "$1/lib/"
	mv "$1"/cpython/Include/* "$1/build/pyconfig.h" "$1/include/"
	rm -rf "$1/cpython" "$1/zlib" "$1/build" "$1/build-python"
}
