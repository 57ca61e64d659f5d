#!/bin/bash
# MPI_Alloc_mem is strata_mem_alloc: what it gives has been registered when it is sent by RDMA, on softhca.
. "$STRATA_SOURCE/tests/embed/openib_lib.sh" || exit 1
program strata 60 2 "${by_rdma[@]}" --mca pml_strata_rcache tree --mca pml_strata_mca_base_mem_spare 0 "${one_sided[@]}" alloc_mem registered
program strata 60 2 "${by_rdma[@]}" --mca pml_strata_rcache none --mca pml_strata_mpool hugepage alloc_mem again hugepage threads 5
finish
