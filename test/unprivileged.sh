#!/bin/sh
# Runs a test binary of go test -exec as the user nobody, in a copy of the checkout that this user can read, with a home and
# a directory for temporary files of its own.
set -eu
binary=$1
shift
root=$(git rev-parse --show-toplevel)
inside=${PWD#"$root"}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/checkout" "$place/home" "$place/tmp"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read --create --files-from=- 2>/dev/null) |
	tar --extract --no-same-owner --directory "$place/checkout"
cp "$binary" "$place/test"
chmod 755 "$place" "$place/test"
chown -R nobody "$place/home" "$place/tmp" "$place/checkout"
cd "$place/checkout$inside"
setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
	env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$place/home" TMPDIR="$place/tmp" LANG="${LANG:-C.UTF-8}" "$place/test" "$@"
