#!/bin/bash
# Our MPI programs over btl_openib on softhca.
. "$STRATA_SOURCE/tests/embed/openib_lib.sh" || exit 1
program strata 60 2 modes
program strata 60 5 matching
program strata 60 3 probe
program strata 60 2 truncate
program strata 60 3 datatypes
program strata 60 3 --mca pml_strata_btl_openib_receive_queues P,8k,40,1,32:P,32k,17,1,16 datatypes
program strata 60 2 bsend
program strata 60 4 requests
program strata 60 5 collectives
program strata 60 5 intercomm
program strata 60 4 comms
program strata 60 2 threads 100
program strata 60 2 --mca osc pt2pt onesided
program strata 60 2 tool
TOOL_REGISTERED=1 program strata 60 2 --mca pml_strata_rcache tree tool
program strata 60 4 --mca pml_strata_rcache tree --mca pml_strata_mca_base_mem_spare 0 alloc_mem registered threads 200
program strata 60 4 --mca pml_strata_rcache tree alloc_mem again threads 200
program strata 60 2 --mca pml_strata_mpool hugepage alloc_mem hugepage threads 100
program strata 60 2 spawn 1
finish
