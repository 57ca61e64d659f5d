#!/bin/bash
# strata-memscale --launcher: its words, what it leaves in the folder of the results, and mistakes that are named.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-memscale

# --- words ------------------------------------------------------------------------------------------------------------
# A launcher that writes its words to a file, and starts nothing.
printf '#!/bin/bash\nprintf "%%s\\n" "$@" >"%s"\nexit 3\n' "$work/words" >"$work/record"
chmod +x "$work/record"
many=$(printf 'x %.0s' {1..126})
most='most:sm'
for i in {1..16}; do most+=";p$i=$i"; done
expect_status 1 $tool --launcher "$work/record $many%n" -n 7 -p hello -c "$most" -o "$work/most"
check "all words of the launcher" test "$(grep -c '^x$' "$work/words")" = 126
check "the number of ranks" test "$(sed -n 127p "$work/words")" = 7
check "all parameters" test "$(grep -c '^STRATA_MCA_p[0-9]*=[0-9]*$' "$work/words")" = 16
check "the program and its arguments" grep -qx fence "$work/words"
for n in 128 300 500; do
    expect_status 2 $tool --launcher "$(printf 'x %.0s' $(seq $n))%n" -n 2 -p hello -c sm -o "$work/long"
    err_has '--launcher has more than 128 words'
done
expect_status 2 $tool --launcher "%n $(printf '%01100d' 0)" -n 2 -p hello -c sm -o "$work/long"
err_has '--launcher has more than 1023 characters'
check "a launcher that is refused leaves no folder" test ! -e "$work/long"
expect_status 1 $tool --launcher "$work/nosuch -n %n" -n 2 -p hello -c sm -o "$work/nosuch_results"
err_has "sm, hello with 2 ranks: $work/nosuch -n %n was not started: No such file or directory"
check "one that cannot be started leaves nothing" test -z "$(find "$work/nosuch_results" -name 'strata-memscale.*')"
finish
