#!/bin/bash
. "$STRATA_SOURCE/tests/embed/package_lib.sh" || exit 1
package scalapack
exit
