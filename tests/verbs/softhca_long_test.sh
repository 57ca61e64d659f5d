#!/bin/bash
# The verbs suite on softhca: parts of it between devices, on another port, and with faults.
. "$STRATA_SOURCE/tests/support/form.sh"
exec bash "$STRATA_SOURCE/tests/verbs/softhca_test.sh" more
