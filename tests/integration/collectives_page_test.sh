#!/bin/bash
# The program of docs/collectives.md: it compiles without a warning, and prints what it should for several numbers of ranks.
. "$STRATA_SOURCE/tests/integration/lib.sh"
awk '/^```c$/ && !n++ { inside = 1; next } /^```$/ { inside = 0 } inside' "$STRATA_SOURCE/docs/collectives.md" >"$work/coll.c"
# shellcheck disable=SC2086
expect_status 0 "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -pedantic ${SANITIZER_FLAGS-} -I"$STRATA_SOURCE/include" -I"$STRATA_BUILD/include" \
    "$work/coll.c" -o "$work/coll" -L"$STRATA_BUILD/.libs" -lstrata -Wl,-rpath,"$STRATA_BUILD/.libs"
for n in 1 4; do
    expect_status 0 strata-run -n "$n" "$work/coll"
    out_has "^last of the ranks: $((n - 1)) and $((n - 1))$"
done
finish
