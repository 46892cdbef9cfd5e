#!/bin/sh
# SPDX-License-Identifier: ISC
#
# abx-http(7) on standard output: man/abx-http.in with the tables that
# build/mantables prints in the places of the lines @OPS@ and @CODES@.
set -eu
cd "$(dirname "$0")/.."

while IFS= read -r line; do
	case $line in
	@OPS@) build/mantables ops ;;
	@CODES@) build/mantables codes ;;
	*) printf '%s\n' "$line" ;;
	esac
done <man/abx-http.in
