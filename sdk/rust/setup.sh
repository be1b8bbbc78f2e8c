#!/bin/sh
# Installs what is missing to build tools in Rust, and says what it does. With rustup that is a target for each kind of
# module and what checks the code; without it Debian's packages, whose compiler brings no library for WebAssembly:
# cargo.sh then builds that, too.
set -eu

run() {
	echo "+ $*"
	"$@"
}

if command -v rustup >/dev/null; then
	cd "$(dirname "$0")" # the toolchain that is used here
	targets=$(rustup target list --installed)
	for target in wasm32-unknown-unknown wasm32-wasip1; do
		case $targets in
		*"$target"*) echo "the target $target is installed" ;;
		*) run rustup target add "$target" ;;
		esac
	done
	components=$(rustup component list --installed)
	for component in clippy rustfmt; do
		case $components in
		*"$component"*) echo "$component is installed" ;;
		*) run rustup component add "$component" ;;
		esac
	done
elif command -v apt-get >/dev/null; then
	packages="rustc-web cargo-web rust-web-src lld-19"
	if dpkg -s $packages >/dev/null 2>&1; then
		echo "Debian's packages are installed: $packages"
	elif [ "$(id -u)" = 0 ]; then
		run apt-get install --yes --no-install-recommends $packages
	elif command -v sudo >/dev/null; then
		run sudo apt-get install --yes --no-install-recommends $packages
	else
		echo "install these packages as root: $packages" >&2
		exit 1
	fi
else
	echo "neither rustup nor apt-get is here: install rustup from https://rustup.rs/, and run this again" >&2
	exit 1
fi
