#!/bin/bash
# mca_coll_strata: MPI's collectives by Strata; with gaps in the data, in place, on communicators that come and go; left out where its
# priority or its list of operations says so, and where the pml is another; alltoalls and allgathers alone where machines are several.
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
[ -f "$built/mca_coll_strata.so" ] || skip "mca_coll_strata was not built"
say_form "$(form 16 19) jobs"
program strata 60 3 coll_local off
if full_form; then program strata 60 3 coll_nonblocking off; fi
export OMPI_MCA_coll_strata_priority=40
# Operations that are named go this way, beside the others of the same communicator.
for operations in allreduce,barrier all; do OMPI_MCA_coll_strata_operations=$operations program strata 60 3 coll_nonblocking; done
for operations in '' bcast,reduce,alltoall,allgather barrier,scan; do
    OMPI_MCA_coll_strata_operations=$operations program strata 60 3 coll_nonblocking off
done
OMPI_MCA_coll_strata_operation=all program strata 60 3 coll_nonblocking off
grep -q 'there is no parameter coll_strata_operation (did you mean coll_strata_operations?)' "$work/out" || fail "a misspelt parameter is not named"
OMPI_MCA_coll_strata_operations=allgather,alltoall program strata 60 3 coll_vectors
OMPI_MCA_coll_strata_operations=barrier,allreduce program strata 60 3 coll_vectors off
export OMPI_MCA_coll_strata_operations=all
program strata 60 3 collectives
program strata 60 "$(form 3 4)" coll_local
if full_form; then
    program strata 60 3 coll_local
    program strata 60 3 coll_vectors
fi
OMPI_MCA_coll_strata_between=1 program strata 60 3 coll_vectors
OMPI_MCA_coll_strata_between=1 program strata 60 3 coll_local off
OMPI_MCA_coll_strata_ranks=2 program strata 60 3 coll_vectors off
program ob1 60 3 coll_local off
# Of three generations of jobs the first and the last have not met: all members of a common communicator choose alike.
program strata 60 2 spawn 1
finish
