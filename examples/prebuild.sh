#!/usr/bin/env bash
# Builds the examples in Rust into the .wasm beside each, which git keeps so that make run needs no Rust; with --check
# compares instead. The same source, Cargo.lock and compiler make the same bytes on every machine and in every folder,
# because toolsrv build replaces paths, and Cargo names packages relative to the workspace. Another compiler makes
# other bytes; then --check has the tests run on what was built, so that at least the behaviour is compared.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

kept=1.95.0 # what made the files that git keeps
if [[ $(rustc --version) != "rustc $kept "* ]] && RUSTUP_TOOLCHAIN=$kept rustc --version >/dev/null 2>&1; then
	export RUSTUP_TOOLCHAIN=$kept
fi
export CARGO_TARGET_DIR=$root/build/cargo
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS # those of toolsrv build replace paths

check=${1:-}
[[ $# -le 1 && ($check == "" || $check == --check) ]] || { echo "usage: examples/prebuild.sh [--check]" >&2; exit 2; }

version=$(rustc --version)
if [[ $version != "rustc $kept "* ]]; then
	echo "$version is not $kept, so its bytes will differ: rustup toolchain install $kept" >&2
	[[ $check ]] || exit 1
fi

built=$root/build/prebuilt
rm -rf "$built"
mkdir -p "$built"
cp Cargo.lock "$built"
for manifest in examples/*/Cargo.toml; do
	name=$(basename "$(dirname "$manifest")")
	bin/toolsrv build "examples/$name" -o "$built/$name.wasm"
done
cmp -s Cargo.lock "$built/Cargo.lock" || { echo "Cargo.lock was not up to date: run again, and commit it" >&2; exit 1; }

if [[ ! $check ]]; then
	for file in "$built"/*.wasm; do
		name=$(basename "$file" .wasm)
		mv "$file" "examples/$name/$name.wasm"
	done
elif [[ $version == "rustc $kept "* ]]; then
	for file in "$built"/*.wasm; do
		name=$(basename "$file" .wasm)
		cmp "$file" "examples/$name/$name.wasm" || { echo "run make examples-rust, and commit examples/$name/$name.wasm" >&2; exit 1; }
	done
	echo "all files are what their source makes"
else
	EXAMPLES_RUST=$built go test -count=1 -run Rust ./test/examples
fi
