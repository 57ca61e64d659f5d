# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# Open MPI's programs over Strata's openib and self alone, on softhca. Sourced, after package_lib.sh where that is used.
[ -n "${plugin-}" ] || . "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
library=$STRATA_BUILD/softhca/.libs/libsofthca.so
[ -e "$library" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 ||
    skip "no softhca or no btl_openib in this build (Debian: libibverbs-dev)"
# Open MPI's ranks that wait call sched_yield: on a busy machine they are to sleep instead.
idle=$STRATA_BUILD/tests/softhca/programs/.libs/yield_sleeps.so
[ -e "$idle" ] || skip "not built: $idle"
export OMPI_MCA_pml_strata_btl=openib,self OMPI_MCA_mca_base_env_list="LD_PRELOAD=$library:$idle" SOFTHCA_FABRIC=embed-$$
# Messages from so many bytes on go by RDMA. Without it the length follows from times of the device, which a busy machine changes.
# shellcheck disable=SC2034 # of the tests
by_rdma=(--mca pml_strata_btl_openib_rdma_min 32k)
