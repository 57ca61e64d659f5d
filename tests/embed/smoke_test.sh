#!/bin/bash
# A few MPI programs over the plugin, briefly; the rest is in the long tests of this folder.
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
program strata 60 2 truncate
program strata 60 3 datatypes
program strata 60 2 threads 30
program strata 60 2 tool
program strata 60 2 spawn 1
finish
