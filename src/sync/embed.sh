#!/bin/sh
# The bytes of files, one behind the other, as a C initializer list on standard output:
# embed.sh FILE...
# (A string literal of this size is beyond what C promises.)
set -eu
od -An -v -t u1 -- "$@" | sed 's/  *\([0-9][0-9]*\)/\1,/g'
