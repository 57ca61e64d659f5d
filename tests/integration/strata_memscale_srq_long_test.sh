#!/bin/bash
# strata-memscale srq over softhca: Table 2 whole, after a run in which a job fails and one that was cut off.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-memscale
[ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 || exit 77
case ${SANITIZER_FLAGS-} in ?*) exit 77 ;; esac

mkdir "$work/bin"
real=$(command -v strata-run)
printf '#!/bin/bash\nfor word; do [ "$word" != cg ] || exit 9; done\nexec "%s" "$@"\n' "$real" >"$work/bin/strata-run"
chmod +x "$work/bin/strata-run"
PATH=$work/bin:$PATH expect_status 1 $tool srq --table 2 -n 2 -k 16 -r 1 -o "$work/srq"
err_has 'SRQ, cg: strata-run ended with status 9'
check "the others are kept" test "$(grep -c '^2,' "$work/srq/srq.csv")" = 12
sed -i '$d' "$work/srq/srq.jsonl"
expect_status 0 $tool srq --table 2 -n 2 -k 16 -r 1 -o "$work/srq"
check "four jobs are left" test "$(grep -c '^strata-memscale: table 2' "$work/err")" = 4
out_has '^ft .* SRQ, flow control  *16  *[0-9.]*  *[0-9.]*  *1$'
check "fifteen figures, all right" test "$(grep -c '^2,.*,1$' "$work/srq/srq.csv")" = 15
check "no files of ranks are left" test -z "$(find "$work/srq" -name 'rank*')"
finish
