#!/usr/bin/env bash
# strata-perf channel: every library that is here passes the messages of every table, over every wire.
set -u
# shellcheck disable=SC1091
. "$STRATA_SOURCE/tests/support/form.sh"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

options=(--rounds 1 --json --timeout 100)
say_form "$(form 'shared memory, messages' 'every table and wire')"
full_form || options+=(--tables pair --wires sm)
strata-perf channel "${options[@]}" >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/err")"
grep -v ' round ' "$dir/err"
python3 - "$dir/out" <<'END' || fail "$(cat "$dir/out")"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
sm = {r["bytes"]: r for r in rows if (r["table"], r["wire"]) == ("stream", "sm")}
assert sorted(sm) == [10, 100, 1024, 5000, 10000, 25000, 50000, 65536, 200000, 400000], sorted(sm)
assert len([r for r in rows if (r["table"], r["wire"]) == ("ping-pong", "sm")]) == 7
anys = [r for r in rows if (r["table"], r["wire"]) == ("from-any", "sm")]
assert [r["channels"] for r in anys] == [1, 256] and "met" in anys[1] and "met" not in anys[0], anys
for r in rows:
    assert r["ways"], r
    assert all(w["median"] > 0 for w in r["ways"].values()), r
    # a row is judged wherever there is something to be judged by
    assert r["table"] not in ("stream", "ping-pong") or len(r["ways"]) == 1 or "met" in r or "channel" not in r["ways"], r
    assert r.get("met", True) == (r.get("missed", "") == ""), r
END
# It stops when another round would end too late.
if full_form; then
    strata-perf channel --rounds 1000 --minutes 1 --json --wires sm --ways channel --tables tasks >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/err")"
    python3 -c 'import json, sys; assert 1 <= json.load(open(sys.argv[1]))["rounds"] < 1000' "$dir/out" || fail "--minutes: $(cat "$dir/out")"
fi
echo "strata-perf channel: every row has its figures"
