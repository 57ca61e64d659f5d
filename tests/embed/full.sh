#!/bin/bash
# Everything of this folder, the whole of each package: `make check-embed-full`. Prints one line per part and a summary that
# counts as config/ci does; exit status 1 when anything failed.
. "$STRATA_SOURCE/tests/embed/package_lib.sh"
passed=0 failed=0 skipped=0

count() { # STATUS NAME
    case $1 in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) && echo "FAIL: $2" ;;
    esac
}

for script in programs_long_test.sh hostile_long_test.sh; do
    bash "$STRATA_SOURCE/tests/embed/$script"
    count $? "$script"
done
for ranks in 4 8; do
    for name in hpcc lammps mpi4py-bench; do
        package "$name" --full --ranks "$ranks"
        count $? "$name with $ranks ranks"
    done
done
for name in netpipe scalapack mumps mpi4py-suite; do
    package "$name" --full
    count $? "$name"
done
package mpi4py-suite --full --ranks 2
count $? "mpi4py-suite with 2 ranks"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
