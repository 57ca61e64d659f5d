#!/bin/bash
# NetPIPE and HPC Challenge over btl_openib on softhca. netpipe_long_test.sh and hpcc_long_test.sh compare with Open MPI's own pml.
. "$STRATA_SOURCE/tests/embed/package_lib.sh" || exit 1
. "$STRATA_SOURCE/tests/embed/openib_lib.sh"
status=0
for name in netpipe hpcc; do
    package "$name" --alone || status=$?
done
exit $status
