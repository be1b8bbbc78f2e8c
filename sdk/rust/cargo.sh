#!/bin/sh
# Runs cargo with its arguments: rustup's, or where there is none Debian's, which for a WebAssembly target has to build
# the standard library, too, and link with Debian's linker.
set -eu

if command -v rustup >/dev/null || [ ! -x /usr/bin/wasm-ld-19 ]; then
	exec cargo "$@"
fi
PATH=/usr/bin:$PATH
case " $* " in
*" --target wasm32-"*)
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="-C linker=wasm-ld-19 ${RUSTFLAGS-}" exec cargo "$@" -Zbuild-std=std,panic_abort
	;;
*) exec cargo "$@" ;;
esac
