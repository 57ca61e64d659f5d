#!/bin/bash
# MPI programs over btl_openib on softhca, briefly. Fragments come in any order there: datatypes.
. "$STRATA_SOURCE/tests/embed/openib_lib.sh" || exit 1
program strata 60 2 datatypes
program strata 60 4 collectives
finish
