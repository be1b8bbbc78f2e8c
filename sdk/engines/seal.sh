#!/bin/sh
# Makes an engine of the build in the folder $1, and writes it to where toolsrv embeds it. With -check it compares the two instead.
set -eu
cd "$(dirname "$0")/../.."
(cat "$1/about.txt" && echo ${2-} "$1" internal/script/engine/dist) | xargs go run ./internal/script/engine/internal/seal
