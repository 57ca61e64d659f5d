#!/bin/bash
# NetPIPE and HPC Challenge over btl_openib on softhca. Others compare them with Open MPI's own pml.
. "$STRATA_SOURCE/tests/embed/package_lib.sh" || exit 1
. "$STRATA_SOURCE/tests/embed/openib_lib.sh"
status=0
for name in netpipe hpcc; do
    package --alone "$name" || status=$?
done
exit $status
