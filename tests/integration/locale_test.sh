#!/bin/bash
# A program may have set a locale whose numbers have a comma: parameters keep their point, and JSON stays JSON.
. "$STRATA_SOURCE/tests/integration/lib.sh" || exit 1
skip() { echo "skipped: $*"; exit 77; }
[ -f "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] || skip "libsofthca was not built (Debian: libibverbs-dev)"
command -v localedef >/dev/null || skip "localedef is not installed (Debian: libc-bin)"
# shellcheck disable=SC2154 # by `make check`
case ${SANITIZER_FLAGS-} in ?*) skip "a library with sanitizers does not load into a program without" ;; esac
printf 'LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n' >"$work/source"
localedef --no-archive -c -i "$work/source" "$work/comma" >"$work/err" 2>&1
[ -f "$work/comma/LC_NUMERIC" ] || skip "localedef makes no locale here: $(cat "$work/err")"

# A program that calls setlocale.
cat >"$work/comma.c" <<'END'
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
static __attribute__((constructor)) void set_locale(void)
{
    char text[16];
    if (!setlocale(LC_NUMERIC, "comma") || snprintf(text, sizeof text, "%.1f", 0.5) != 3 || text[1] != ',')
        exit(98);
}
END
expect_status 0 "${CC:-cc}" -shared -fPIC -o "$work/comma.so" "$work/comma.c"
# shellcheck disable=SC2016 # each rank's variables
expect_status 0 strata-run -n 2 --softhca --mca btl self,openib --mca btl_openib_srq_k 1.5 --report-transports=json -x LOCPATH="$work" \
    sh -c 'LD_PRELOAD=$LD_PRELOAD:$0 exec "$@"' "$work/comma.so" "$STRATA_BUILD/tests/programs/traffic" incast 1000 10 2
check "both ranks report JSON, with a time of connecting" python3 - "$work/err" <<'PY'
import json, sys
ranks = [json.loads(l) for l in open(sys.argv[1]) if l.startswith("{")]
assert sorted(r["rank"] for r in ranks) == [0, 1], ranks
def times(j):
    if isinstance(j, dict):
        return ([j["connect_us"]] if "connect_us" in j else []) + [t for v in j.values() for t in times(v)]
    return [t for v in j for t in times(v)] if isinstance(j, list) else []
assert any(t > 0 for r in ranks for t in times(r)), ranks
PY
finish
