#!/bin/bash
# Bad parameters from every source: a clear message that names the source, exit status 2. And what strata-info says about good
# ones.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# refused WORDS COMMAND...: status 2 and these words on stderr
refused() {
    local words=$1
    shift
    timeout "$job_limit" "$@" >"$dir/out" 2>"$dir/err"
    local status=$?
    [ $status -eq 2 ] || fail "status $status: $*"
    grep -qF -- "$words" "$dir/err" || fail "$*: expected \"$words\", got: $(cat "$dir/err")"
    [ "$(grep -vc "profiling" "$dir/err")" -le 2 ] || fail "more than two lines: $(cat "$dir/err")"
}
accepted() { # WORDS COMMAND...
    local words=$1
    shift
    timeout "$job_limit" "$@" >"$dir/out" 2>"$dir/err" || fail "status $?: $*: $(cat "$dir/err")"
    grep -qF -- "$words" "$dir/out" || fail "$*: expected \"$words\", got: $(cat "$dir/out")"
}

# --- the tool's own command line
refused 'there is no option "--componets"; did you mean "--components"?' strata-info --componets
refused 'unexpected argument "sm"' strata-info sm
refused '--level takes a number from 1 to 9, not "0"' strata-info --level 0
refused '--level takes a number from 1 to 9, not "ten"' strata-info --level=ten
refused '--param takes two words' strata-info --param btl
refused '--mca takes two words' strata-info --mca btl
refused "option '--level' requires an argument" strata-info --level
refused 'invalid option' strata-info -z
refused 'there is no framework "btll"; did you mean "btl"?' strata-info --param btll all
refused 'there is no btl component "slef"; did you mean "self"?' strata-info --param btl slef
refused 'there is no mca component "bse"; did you mean "base"?' strata-info --param mca bse
accepted 'Exit status' strata-info --help
version=$(sed -n 's/^AC_INIT(\[strata\], \[\([^]]*\)\].*/\1/p' "$STRATA_SOURCE/configure.ac")
for tool in strata-info strata-run strata-perf softhca-stat; do
    command -v $tool >/dev/null || continue
    accepted "$tool (Strata) $version" $tool --version
done
accepted "version      $version" strata-info --build
accepted "PMIx         $(pkg-config --modversion pmix 2>/dev/null)" strata-info --build
accepted '"compiler":' strata-info --build --json
refused 'there is no option "--all"' strata-info --all
grep -q 'did you mean' "$dir/err" && fail "a far name is suggested: $(cat "$dir/out")"

# --- parameters: unknown, malformed, out of range, from each source
refused 'there is no parameter "mca_base_verbse" (the command line); did you mean "mca_base_verbose"?' \
    strata-info --mca mca_base_verbse 1
refused 'there is no parameter "btl_slef_priority" (environment STRATA_MCA_btl_slef_priority)' \
    env STRATA_MCA_btl_slef_priority=1 strata-info
refused 'parameter mca_base_verbose = "loud" (the command line): not a valid int; allowed: 0 .. 3' \
    strata-info --mca mca_base_verbose loud
refused 'parameter mca_base_verbose = "4" (environment STRATA_MCA_mca_base_verbose): out of range; allowed: 0 .. 3' \
    env STRATA_MCA_mca_base_verbose=4 strata-info
refused 'did you mean "json"?' strata-info --mca mca_base_report_transports jsn
refused 'there is no btl component "slef"; did you mean "self"?' strata-info --mca btl slef
refused 'there is no btl component "slef"; did you mean "self"?' strata-info --mca btl ^slef
refused 'a list either names components' strata-info --mca btl self,^sm
refused 'the list names no component' strata-info --mca btl ^
printf '# mine\nmca_base_verbose = 0\nbtl self\n' >"$dir/bad.conf"
refused "$dir/bad.conf:3: no \"=\" in the line" strata-info --mca mca_param_files "$dir/bad.conf"
printf 'mca_base_verbose = 7\n' >"$dir/range.conf"
refused "parameter mca_base_verbose = \"7\" ($dir/range.conf:1): out of range" \
    strata-info --mca mca_param_files "$dir/range.conf"
refused "$dir/none.conf: cannot be opened" strata-info --mca mca_param_files "$dir/none.conf"
# Noise whose first line is no comment and not empty, as one random file in a hundred begins.
{ printf 'x\001' && head -c 5000 /dev/urandom; } >"$dir/noise.conf"
refused "$dir/noise.conf:1: " strata-info --mca mca_param_files "$dir/noise.conf"
mkdir -p "$dir/home/.strata"
cp "$dir/bad.conf" "$dir/home/.strata/mca-params.conf"
refused "$dir/home/.strata/mca-params.conf:3: " env -u STRATA_MCA_mca_param_files HOME="$dir/home" strata-info
printf 'mca_base_verbose = 2\n' >"$dir/home/.strata/mca-params.conf"
accepted "(set by $dir/home/.strata/mca-params.conf:1; default 1)" \
    env -u STRATA_MCA_mca_param_files HOME="$dir/home" strata-info --param mca base

# --- what is shown
accepted 'mca_base_verbose = 3  (set by the command line; default 1)' \
    env STRATA_MCA_mca_base_verbose=2 strata-info --param mca base --mca mca_base_verbose 3
accepted 'mca_base_verbose = 2  (set by environment STRATA_MCA_mca_base_verbose; default 1)' \
    env STRATA_MCA_mca_base_verbose=2 strata-info --param mca base
accepted 'mca_base_verbose = 2  (set by the command line of the launcher; default 1)' \
    env STRATA_MCA_mca_base_verbose=2 STRATA_COMMAND_LINE=mca_base_verbose strata-info --param mca base
accepted 'btl_self_priority' strata-info --param btl self
accepted 'rte_singleton_priority' strata-info --param all all
grep -q '^  mca_base_verbose' "$dir/out" || fail "--param all all does not show the core's"
accepted 'mca_base_verbose' strata-info --param mca base --level 1
grep -q sleep_max "$dir/out" && fail "--level does not filter"
accepted 'sleep_max' strata-info --param mca base --level 9
accepted '"fate": "chosen"' strata-info --explain --json
if command -v python3 >/dev/null; then
    strata-info --components --param all all --explain --counters --json | python3 -c '
import json, re, sys
d = json.load(sys.stdin)
assert d["usable"] and d["error"] == "", d["error"]
assert any(c["name"] == "self" and c["fate"] == "chosen" for c in d["components"])
assert all(p["help"] and p["type"] and "value" in p for p in d["parameters"])
assert any(p["name"] == "btl" for p in d["parameters"])
assert all(c["help"] and c["unit"] and c["kind"] in ("count", "level", "peak") for c in d["counters"])
assert all(c["name"] == c["framework"] + "_" + c["component"] + "_" + c["name"].split("_", 2)[2] for c in d["counters"])
verb = re.compile(r"\b(has|have|had|was|were|is|are|went|came|needed|copied|slept|woke|took|asked|answered|fetched|exist|wait|holds|ran)\b")
for c in d["counters"]:
    assert c["help"][0].isupper() and c["help"].endswith(".") and verb.search(c["help"]), "no sentence: " + c["help"]
values = {c["name"]: c["value"] for c in d["counters"]}
assert len(values) == len(d["counters"]) and values["btl_self_bytes_sent"] == 0
assert all(v is None for n, v in values.items() if n.startswith("rcache_"))' || fail "the JSON is not what it should be"
fi
# --explain shows its table also when no context can be made.
strata-info --explain --mca rte host >"$dir/out" 2>"$dir/err"
[ $? -ne 0 ] || fail "no context, and status 0"
grep -q 'rte *host *rejected' "$dir/out" || fail "no table: $(cat "$dir/out")"
grep -q 'no context could be made: ' "$dir/err" || fail "no reason: $(cat "$dir/err")"
strata-info --counters --mca rte host >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || fail "no context, and not status 1"
grep -q 'btl_self_bytes_sent = - bytes' "$dir/out" || fail "no counters: $(cat "$dir/out")"
strata-info >/dev/full 2>"$dir/err" && fail "a full disk goes unnoticed"

[ $failures -eq 0 ] && echo "all fine"
exit $((failures > 0))
