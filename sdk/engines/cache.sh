# Where engines are built, and kept: outside the checkout, so that a second clone, or a build machine, need not build them again. The
# builds of engines read this file; whoever does sets TOP to the checkout. $TOOLSRV_ENGINES is another place for it.
engines=${TOOLSRV_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/toolsrv/engines}
zig_version=0.17.1
# The SHA-256 of what PyPI has of it for Linux: for amd64, where the engines in the tree were built, and for arm64.
zig_sha256="ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54 b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e"

# digest prints a digest of files, in the order that they are given, and of standard input.
digest() {
	{ cat; for file in "$@"; do sha256sum <"$file"; done; } | sha256sum | cut -c 1-12
}

# stage KEY COMMAND... makes the folder KEY of the cache, unless it is there: COMMAND is given an empty folder to fill. Where several
# builds want the same, one makes it and the others wait. What nobody has asked for in 60 days goes.
stage() {
	key=$1
	shift
	mkdir -p "$engines"
	(
		set -e
		if command -v flock >/dev/null; then
			exec 9>"$engines/$key.lock"
			flock 9
		fi
		if [ ! -d "$engines/$key" ]; then
			rm -rf "$engines/$key.tmp"
			mkdir "$engines/$key.tmp"
			"$@" "$engines/$key.tmp" # not in a condition, where set -e would let it go on after an error
			mv "$engines/$key.tmp" "$engines/$key"
			find "$engines" -mindepth 1 -maxdepth 1 -mtime +60 -exec rm -rf {} +
		fi
		touch "$engines/$key"
	)
}

# zig is the compiler: it brings clang, the linker and a C library for WASI, and needs no root to be installed.
zig_stage=zig-$zig_version
zig() {
	"$engines/$zig_stage/bin/python" -m ziglang "$@"
}

setup_zig() {
	python3 -m venv "$1"
	{ printf 'ziglang==%s' "$zig_version"; printf ' --hash=sha256:%s' $zig_sha256; } |
		"$1/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps -r /dev/stdin
}

# fetch_crate NAME VERSION SHA256 FOLDER has cargo fetch a crate, and moves what is in it to FOLDER.
fetch_crate() {
	mkdir -p "$4.fetch/src" && : >"$4.fetch/src/lib.rs"
	printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n[workspace]\n' "$1" "$2" >"$4.fetch/Cargo.toml"
	(cd "$4.fetch" && cargo vendor --quiet vendor >/dev/null)
	if ! grep -q "\"package\":\"$3\"" "$4.fetch/vendor/$1/.cargo-checksum.json"; then
		echo "the crate $1 $2 is not the one whose SHA-256 is $3" >&2
		return 1
	fi
	mv "$4.fetch/vendor/$1" "$4"
	rm -rf "$4.fetch"
}

# fetch_debian SUITE PACKAGE... has apt fetch the original sources of Debian's packages in a suite into the current folder, from the mirror that
# this machine installs from. It needs no root, and leaves alone what apt knows of this machine's packages.
fetch_debian() {
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -n 1)
	[ -n "$mirror" ] || { echo "apt knows no mirror of Debian on this machine" >&2; return 1; }
	(
		set -e
		apt=$(mktemp -d)
		trap 'rm -rf "$apt"' EXIT
		mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
		echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$apt/sources.list"
		shift
		apt_get() {
			apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State="$apt/state" \
				-o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@" >&2
		}
		apt_get update
		apt_get source --download-only --tar-only "$@"
	)
}
