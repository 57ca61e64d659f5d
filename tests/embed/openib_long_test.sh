#!/bin/bash
# Our MPI programs over btl_openib on softhca. The short form leaves out those of the quick tests and runs fewer steps.
. "$STRATA_SOURCE/tests/embed/openib_lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form 12 19) of 19 programs"
net=600 # seconds for a program: a safety net
steps=$(form 20 200)
program strata $net 2 modes
program strata $net "$(form 3 5)" matching
program strata $net 3 probe
program strata $net 2 truncate
! full_form || program strata $net 3 datatypes
program strata $net 3 --mca pml_strata_btl_openib_receive_queues P,8k,40,1,32:P,32k,17,1,16 datatypes
program strata $net 2 bsend
program strata $net "$(form 3 4)" requests
if full_form; then
    program strata $net 5 collectives
    program strata $net 5 intercomm
    program strata $net 4 comms
fi
program strata $net 2 threads $((steps / 2))
program strata $net 2 "${one_sided[@]}" onesided
! full_form || program strata $net 2 tool
TOOL_REGISTERED=1 program strata $net 2 "${by_rdma[@]}" --mca pml_strata_rcache tree tool
! full_form || program strata $net 4 "${by_rdma[@]}" --mca pml_strata_rcache tree --mca pml_strata_mca_base_mem_spare 0 alloc_mem registered threads $steps
program strata $net "$(form 2 4)" "${by_rdma[@]}" --mca pml_strata_rcache tree alloc_mem again threads $steps
! full_form || program strata $net 2 --mca pml_strata_mpool hugepage alloc_mem hugepage threads 100
program strata $net 2 spawn 1
finish
