#!/bin/bash
# mca_coll_strata: MPI's collectives over Strata's shared memory, by name; with gaps in the data, in place, on communicators that come and
# go; left out where its priority says so, and where the pml is another.
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
[ -f "$built/mca_coll_strata.so" ] || skip "mca_coll_strata was not built"
program strata 60 3 coll_local off
program strata 60 3 coll_nonblocking off
export OMPI_MCA_coll_strata_priority=40
program strata 60 3 collectives
program strata 60 4 coll_local
program strata 60 3 coll_local
program strata 60 3 coll_nonblocking
program ob1 60 3 coll_local off
finish
