#!/bin/sh
# Installs toolsrv: downloads the archive for this system, checks its sum, and puts the program into place.
#
#   sh install.sh [--version VERSION] [--to FOLDER] [--base-url URL]
#
# Without --version it installs the newest release. Without --to the program goes to /usr/local/bin if you may write there, else to ~/.local/bin;
# nothing is ever done with sudo. --base-url is where the archive and checksums.txt are, in place of the project's releases. Where the script is read
# from a pipe, TOOLSRV_VERSION, TOOLSRV_TO and TOOLSRV_BASE_URL do the same.
set -eu

releases=https://github.com/toolsrv/toolsrv/releases

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# system prints the name of this system in the names of archives.
system() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "there is no archive for $(uname -s): see $releases" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no archive for processors of the kind $(uname -m): see $releases" ;;
	esac
	[ "$os $arch" != "darwin amd64" ] || fail "there is no archive for Macs with a processor of Intel: with Go 1.26, go install github.com/toolsrv/toolsrv/cmd/toolsrv@latest builds the program"
	echo "${os}_$arch"
}

# download gets a file. If the address is https, redirects to other protocols are not followed.
download() {
	if has curl; then
		case $1 in
		https://*) protocols='=https' ;;
		*) protocols='=http,https' ;;
		esac
		curl --fail --silent --show-error --location --proto "$protocols" --max-filesize 209715200 --output "$2" "$1"
	elif has wget; then
		wget -q -O "$2" "$1"
	else
		fail "neither curl nor wget is installed"
	fi || fail "could not download the whole of $1"
}

# sum prints the SHA-256 of a file.
sum() {
	if has sha256sum; then
		sha256sum <"$1"
	elif has shasum; then
		shasum -a 256 <"$1"
	elif has openssl; then
		openssl dgst -sha256 -r <"$1"
	else
		fail "neither sha256sum nor shasum nor openssl is installed, so the download can't be checked"
	fi | cut -d ' ' -f 1
}

# folder prints where the program goes.
folder() {
	if [ -n "$to" ]; then
		echo "$to"
	elif [ -d /usr/local/bin ] && [ -w /usr/local/bin ]; then
		echo /usr/local/bin
	elif [ -n "${HOME:-}" ]; then
		echo "$HOME/.local/bin"
	else
		fail "HOME is not set, and /usr/local/bin can't be written to: say where with --to"
	fi
}

clean() {
	[ -z "${temporary:-}" ] || rm -rf "$temporary"
	[ -z "${beside:-}" ] || rm -f "$beside"
}

main() {
	version=${TOOLSRV_VERSION:-} to=${TOOLSRV_TO:-} base=${TOOLSRV_BASE_URL:-}
	while [ $# -gt 0 ]; do
		[ $# -ge 2 ] || fail "$1 needs a value; usage: install.sh [--version VERSION] [--to FOLDER] [--base-url URL]"
		case $1 in
		--version) version=$2 ;;
		--to) to=$2 ;;
		--base-url) base=$2 ;;
		*) fail "$1 is not known; usage: install.sh [--version VERSION] [--to FOLDER] [--base-url URL]" ;;
		esac
		shift 2
	done
	case $version in
	*[!0-9A-Za-z.+-]*) fail "\"$version\" is not a version, such as 1.2.0" ;;
	esac
	if [ -z "$base" ]; then
		base=$releases/latest/download
		[ -z "$version" ] || base=$releases/download/v${version#v}
	elif [ -n "$version" ]; then
		fail "--base-url is of one version: leave out --version"
	fi
	base=${base%/}

	name=toolsrv_$(system)
	archive=$name.tar.gz
	folder=$(folder)
	temporary=$(mktemp -d)
	trap clean EXIT
	trap 'exit 1' HUP INT TERM

	echo "Downloading $base/$archive"
	download "$base/checksums.txt" "$temporary/checksums.txt"
	download "$base/$archive" "$temporary/$archive"
	want=$(awk -v name="$archive" '$2 == name { print $1; exit }' "$temporary/checksums.txt")
	case $want in
	*[!0-9a-f]* | '') want='' ;;
	esac
	[ ${#want} -eq 64 ] || fail "$base/checksums.txt has no sum of $archive: nothing is installed"
	got=$(sum "$temporary/$archive")
	[ "$got" = "$want" ] || fail "$archive is not what checksums.txt says: its SHA-256 is $got, and should be $want. The download was cut short or is not the original: nothing is installed"
	tar -xzf "$temporary/$archive" -C "$temporary" "$name/toolsrv" || fail "$archive does not have the program in it: nothing is installed"
	says=$("$temporary/$name/toolsrv" version) || fail "the program does not run on this machine: nothing is installed"

	mkdir -p "$folder" || fail "could not make the folder $folder: say where with --to"
	# The program is written beside its place and then renamed: an older one may be running, and nobody must find half a program.
	beside=$folder/.toolsrv.$$
	{ cp "$temporary/$name/toolsrv" "$beside" && chmod 755 "$beside" && mv -f "$beside" "$folder/toolsrv"; } || fail "could not write to $folder: say where with --to"
	echo "Installed $folder/toolsrv: $(echo "$says" | head -n 1)"
	case :$PATH: in
	*":$folder:"*) ;;
	*) echo "$folder is not in PATH: add it, or type the whole path" ;;
	esac
}

# Only the last line does something, so that half of this script does nothing.
main "$@"
