#!/bin/bash
# The two programs of docs/channels.md: in a job, and between processes that are started apart.
. "$STRATA_SOURCE/tests/integration/lib.sh"
awk -v to="$work" '/^```c$/ { out = to "/" (n++ ? "link" : "job") ".c"; next } /^```$/ { out = "" } out { print >out }' "$STRATA_SOURCE/docs/channels.md"
for program in job link; do
    # shellcheck disable=SC2086
    expect_status 0 "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -pedantic ${SANITIZER_FLAGS-} -I"$STRATA_SOURCE/include" -I"$STRATA_BUILD/include" \
        "$work/$program.c" -o "$work/$program" -L"$STRATA_BUILD/.libs" -lstrata -Wl,-rpath,"$STRATA_BUILD/.libs"
done
expect_status 0 strata-run -n 2 "$work/job"
out_has '^the sum is 5050: all$'

unset STRATA_CHANNEL_SECRET STRATA_CHANNEL_SECRET_FILE
expect_status 1 "$work/link" "$work/socket"
err_has 'secret'
export STRATA_CHANNEL_SECRET='sixteen bytes or more'
timeout "$job_limit" "$work/link" "$work/socket" >"$work/listens" 2>&1 &
listens=$!
expect_status 0 "$work/link" "$work/socket" hello
check "it has listened: $(cat "$work/listens")" wait "$listens"
check "it has heard: $(cat "$work/listens")" grep -qx '1 says: hello' "$work/listens"
expect_status 2 "$work/link"
finish
