#!/bin/sh
# Checks a Cargo workspace, the folder that it is given: format, lints, tests and documentation.
set -eu
cargo=$(cd "$(dirname "$0")" && pwd)/cargo.sh
cd "$1"
for part in fmt clippy; do
	command -v "cargo-$part" >/dev/null || echo "cargo-$part is not installed (make setup-rust, with rustup): not checked"
done
! command -v cargo-fmt >/dev/null || "$cargo" fmt --all --check
! command -v cargo-clippy >/dev/null || "$cargo" clippy --locked --workspace --all-targets --quiet -- -D warnings
"$cargo" test --locked --workspace --quiet
RUSTDOCFLAGS=-Dwarnings "$cargo" doc --locked --workspace --no-deps --quiet
