#!/bin/bash
# Python's binding of libibverbs, unmodified: uses_pyverbs.py.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || skip "no python3-pyverbs"
for link in ib roce; do
    export SOFTHCA_LINK=$link
    single 60 '^passed$' /usr/bin/python3 "$STRATA_SOURCE/tests/softhca/programs/uses_pyverbs.py"
done
finish
