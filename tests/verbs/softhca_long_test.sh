#!/bin/bash
# The verbs suite on softhca: parts of it between devices, on another port, and with faults.
exec bash "$STRATA_SOURCE/tests/verbs/softhca_test.sh" more
