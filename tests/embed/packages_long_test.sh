#!/bin/bash
# Programs of Debian's packages over Strata and over ob1: the quick set. The whole: make check-embed-full.
exec python3 "$STRATA_SOURCE/tests/embed/packages.py" quick
