#!/bin/bash
# What the verbs suite leaves out on Soft-RoCE stands in softhca's README, with the text that decides it.
set -u
readme=$STRATA_SOURCE/softhca/README.md
status=0 n=0
for name in $(sed -n 's/^ *{"rxe", "\([a-z_/]*\)",.*/\1/p' "$STRATA_SOURCE/tests/verbs/differences.h"); do
    n=$((n + 1))
    # shellcheck disable=SC2016 # of Markdown
    grep -q '^|.*`'"$name"'`.*| .* | .*\(IBA\|man\) ' "$readme" || { echo "FAILED: $name is not in $readme"; status=1; }
done
echo "$n differences"
[ "$n" -gt 0 ] && exit $status
