#!/bin/bash
# Plugins that are broken in every way we know: each is skipped with one line that says why, nothing crashes, nobody is
# bothered about a component that was not asked for, and asking for it by name is an error. Then: search path, precedence of
# folders, and the library loaded with RTLD_LOCAL.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
CC=${CC:-gcc}
command -v "${CC%% *}" >/dev/null || { echo "no compiler: skipped"; exit 77; }
fakes=$STRATA_SOURCE/tests/fake_component
dir=$(mktemp -d) || exit 1
trap 'chmod -R u+rwx "$dir"; rm -rf "$dir"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

lib=$STRATA_BUILD/.libs
plugins=$STRATA_BUILD/plugins
build() { # source, plugin
    $CC -std=gnu11 -Wall -Wextra -g -fPIC -shared -fvisibility=hidden -I"$STRATA_SOURCE/include" -o "$2" "$1" \
        -L"$lib" -lstrata -Wl,-rpath,"$lib"
}
mkdir "$dir/fakes"
for source in good open_fails no_modules wrong_magic wrong_size wrong_abi wrong_ops wrong_name missing_symbol undefined_symbol \
    bad_default no_help; do
    build "$fakes/$source.c" "$dir/fakes/strata_btl_$source.so" || fail "$source.c does not compile"
done
good=$dir/fakes/strata_btl_good.so
head -c 1000 "$good" >"$dir/fakes/strata_btl_cut.so"
: >"$dir/fakes/strata_btl_empty.so"
echo "not an object" >"$dir/fakes/strata_btl_text.so"
head -c 100000 /dev/urandom >"$dir/fakes/strata_btl_noise.so"
mkdir "$dir/fakes/strata_btl_folder.so"
mkfifo "$dir/fakes/strata_btl_fifo.so"
ln -s "$dir/nowhere" "$dir/fakes/strata_btl_dangling.so"
cp "$good" "$dir/fakes/strata_btl_other_machine.so"
printf '\xff\x7f' | dd of="$dir/fakes/strata_btl_other_machine.so" bs=1 seek=18 conv=notrunc 2>/dev/null
touch "$dir/fakes/strata_.so" "$dir/fakes/strata_btl_.so" "$dir/fakes/strata_btl.so" "$dir/fakes/libother.so"
export STRATA_MCA_mca_component_path=$dir/fakes:$plugins

# --- each is skipped, with its reason, and the rest works ---------------------------------------------------------
timeout "$job_limit" strata-info --explain >"$dir/out" 2>"$dir/err"
status=$?
cat "$dir/out" "$dir/err"
[ $status -eq 0 ] || fail "strata-info --explain ended with $status"
[ -s "$dir/err" ] && fail "warnings about components that nobody asked for: $(cat "$dir/err")"
says() { # component, fate, words of the reason
    grep -qE "^  btl +$1 +$2 +.*$3" "$dir/out" || fail "btl $1: expected \"$2 ... $3\", got: $(grep -E "btl +$1 " "$dir/out")"
}
says good chosen ""
# It has counters of its own, which nothing but its folder names.
timeout "$job_limit" strata-info --counters >"$dir/counters" 2>&1 || fail "strata-info --counters ended with $?"
grep -q '^  btl_good_greetings = 17 greetings$' "$dir/counters" || fail "no counter btl_good_greetings of 17"
grep -q '^  btl_good_patience = 4 minutes now$' "$dir/counters" || fail "no counter btl_good_patience of 4"
grep -A1 '^  btl_good_bytes_sent = 0 bytes$' "$dir/counters" | grep -q 'has sent or put' ||
    fail "no counter that every transport has"
grep -q '^  btl_open_fails_bytes_sent = - bytes$' "$dir/counters" || fail "a transport that is not used has a value"
says open_fails rejected "the fake device is on fire"
says no_modules rejected "offers no module"
says wrong_magic "not loaded" "wrong magic 0x1122334455667788"
says wrong_size "not loaded" "component struct of [0-9]+ bytes, [0-9]+ expected"
abi=$(sed -n 's/^#define ST_ABI_VERSION *\([0-9]*\)u.*/\1/p' "$STRATA_SOURCE/include/strata/sdk/component.h")
says wrong_abi "not loaded" "ABI version $((abi + 1)), $abi expected"
says wrong_ops rejected "ops struct of [0-9]+ bytes"
says wrong_name "not loaded" "calls itself btl_right_name"
says missing_symbol "not loaded" "has no symbol st_component_btl_missing_symbol"
says undefined_symbol "not loaded" "undefined symbol: a_function_that_nobody_has"
says bad_default "not loaded" "\"depth\", default \"0\": out of range; allowed: 1 .. 9"
says no_help "not loaded" "\"depth\" has no help text"
says cut "not loaded" "truncated"
says empty "not loaded" "truncated: the file is empty"
says text "not loaded" "truncated|no ELF magic"
says noise "not loaded" "no ELF magic"
says folder "not loaded" "not a regular file"
says fifo "not loaded" "not a regular file"
says dangling "not loaded" "No such file"
says other_machine "not loaded" "another processor"
says self chosen ""

# --- in a job: silence, for nobody has asked for them; one line each and rank for those who ask why ---------------------
program=$STRATA_BUILD/tests/programs/hostile
timeout "$job_limit" strata-run -n 2 "$program" short >"$dir/out" 2>"$dir/err" || fail "a job among broken plugins: status $?"
[ -s "$dir/err" ] && fail "warnings about components that nobody asked for: $(cat "$dir/err")"
timeout "$job_limit" strata-run -n 2 --mca mca_base_verbose 2 "$program" short >"$dir/out" 2>"$dir/err" ||
    fail "a job among broken plugins that says more: status $?"
for word in "cut skipped: .*truncated" "missing_symbol skipped: .*has no symbol" "wrong_abi skipped: .*ABI version $((abi + 1))" \
    "open_fails skipped: the fake device is on fire" "wrong_ops skipped: ops struct"; do
    [ "$(grep -cE "component btl_$word" "$dir/err")" -eq 2 ] || fail "not one line of each rank with \"$word\": $(cat "$dir/err")"
done
grep -q 'warning' "$dir/err" && fail "a warning about a component that nobody asked for: $(cat "$dir/err")"
timeout "$job_limit" strata-run -n 2 --mca btl self,sm "$program" short >"$dir/out" 2>"$dir/err" || fail "a job of self and sm: status $?"
[ -s "$dir/err" ] && fail "warnings about components that were excluded: $(cat "$dir/err")"

# --- asked for by name where it has nothing to do: no error; "self,sm" may stand in anybody's environment ------------
STRATA_MCA_btl=self,sm,no_modules timeout "$job_limit" strata-info --explain >"$dir/out" 2>"$dir/err" ||
    fail "a job of one rank that names sm: $(cat "$dir/err")"
says sm rejected "no other rank of the job is on this machine"

# --- asked for by name: an error with the reason; status 2 when it cannot be loaded, 1 when it does not open -----------
by_name() { # status, component, words
    timeout "$job_limit" strata-info --explain --mca btl "$2,self" >"$dir/out" 2>"$dir/err"
    status=$?
    [ $status -eq "$1" ] || fail "btl $2 by name: status $status"
    grep -qE "$3" "$dir/err" || fail "btl $2 by name: $(cat "$dir/err")"
}
by_name 2 wrong_magic "cannot be used: .*wrong magic"
by_name 2 wrong_abi "cannot be used: .*ABI version"
by_name 2 cut "cannot be used: .*truncated"
by_name 2 undefined_symbol "cannot be used: .*undefined symbol"
by_name 1 open_fails "the fake device is on fire"
by_name 1 wrong_ops "ops struct"
strata-info --components --mca btl god,self >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] || fail "unknown component: wrong status"
grep -q 'did you mean "good"?' "$dir/err" || fail "unknown component: no suggestion: $(cat "$dir/err")"
# A parameter of a plugin that could not be loaded is nobody's mistake; one that does not exist is.
STRATA_MCA_btl_wrong_abi_depth=3 strata-info >/dev/null || fail "a parameter of a component that is not loaded"
STRATA_MCA_btl_good_eager_limt=3k strata-info >/dev/null 2>"$dir/err"
[ $? -eq 2 ] || fail "unknown parameter: wrong status"
grep -q 'did you mean "btl_good_eager_limit"?' "$dir/err" || fail "unknown parameter: $(cat "$dir/err")"
strata-info --explain --mca btl_good_greeting bye | grep -q 'good *rejected *the greeting is "bye"' ||
    fail "a parameter does not reach its component"

# --- a plugin cut at any length never crashes the process -------------------------------------------------------------
mkdir "$dir/cut"
size=$(stat -c %s "$good")
export STRATA_MCA_mca_component_path=$dir/cut
for n in $(seq 1 $((size / 40)) $((size - 1))) $((size - 1)); do
    head -c "$n" "$good" >"$dir/cut/strata_btl_good.so"
    timeout "$job_limit" strata-info >"$dir/out" 2>&1 || fail "status $? with $n of $size bytes: $(cat "$dir/out")"
    grep -q "good *cannot be used: truncated" "$dir/out" || fail "not found out with $n of $size bytes: $(cat "$dir/out")"
done
# ... nor does one whose end is zeros, as an interrupted copy into reserved space leaves it.
for n in $(seq 1 $((size / 40)) $((size - 1200))); do
    head -c "$n" "$good" >"$dir/cut/strata_btl_good.so"
    truncate -s "$size" "$dir/cut/strata_btl_good.so"
    timeout "$job_limit" strata-info >"$dir/out" 2>&1 || fail "status $? with zeros after byte $n of $size: $(cat "$dir/out")"
    grep -q "good *cannot be used: " "$dir/out" || fail "not found out with zeros after byte $n: $(cat "$dir/out")"
done

# --- a component in two objects whose body is there, missing, cut, or another object --------------------------------------
mkdir "$dir/split"
build "$fakes/split.c" "$dir/split/strata_btl_split.so" || fail "split.c does not compile"
build "$fakes/split_body.c" "$dir/split_body.so" || fail "split_body.c does not compile"
export STRATA_MCA_mca_component_path=$dir/split:$plugins
body() { # words of the reason
    timeout "$job_limit" strata-info --explain >"$dir/out" 2>"$dir/err" || fail "split: status $?"
    says split rejected "$1"
}
body "btl_split.so: cannot be opened: No such file"
cp "$dir/split_body.so" "$dir/split/btl_split.so"
body "the body was asked"
head -c 3000 "$dir/split_body.so" >"$dir/split/btl_split.so"
body "btl_split.so: truncated"
cp "$good" "$dir/split/btl_split.so"
body "btl_split.so has no symbol st_body_btl_split"

# --- folders: the first wins, but a broken one does not hide a good one ----------------------------------------------
mkdir "$dir/a" "$dir/b"
cp "$good" "$dir/a/"
cp "$good" "$dir/b/"
where() { STRATA_MCA_mca_component_path=$1 strata-info --json | grep -o '"path": ".*strata_btl_good.so"'; }
[ "$(where "$dir/a:$dir/b")" = "\"path\": \"$dir/a/strata_btl_good.so\"" ] || fail "the first folder does not win"
[ "$(where "$dir/b:$dir/a")" = "\"path\": \"$dir/b/strata_btl_good.so\"" ] || fail "the order of folders does not count"
[ "$(where "$dir/absent::$dir/b")" = "\"path\": \"$dir/b/strata_btl_good.so\"" ] || fail "an absent folder"
: >"$dir/a/strata_btl_good.so"
[ "$(where "$dir/a:$dir/b")" = "\"path\": \"$dir/b/strata_btl_good.so\"" ] || fail "a broken file hides a good one"
# ~/.strata/components, without any path given
mkdir -p "$dir/home/.strata/components"
cp "$good" "$dir/home/.strata/components/"
env -u STRATA_MCA_mca_component_path HOME="$dir/home" strata-info --json |
    grep -q "\"path\": \"$dir/home/.strata/components/strata_btl_good.so\"" || fail "the home folder is not searched"

# --- ranks whose job cannot be joined because that plugin is damaged: nobody goes on alone while others wait for it ---
if [ -e "$plugins/.libs/strata_rte_pmix.so" ]; then
    mkdir "$dir/lost"
    cp "$plugins"/.libs/strata_*.so "$dir/lost"
    : >"$dir/lost/strata_rte_pmix.so"
    pair=(env STRATA_MCA_mca_component_path="$dir/lost" timeout "$job_limit" strata-run)
    "${pair[@]}" -n 2 strata-perf latency --sizes 8 --iters 2 >"$dir/out" 2>&1
    status=$?
    [ $status -ne 0 ] && [ $status -ne 124 ] || fail "ranks without rte_pmix ended with $status: $(cat "$dir/out")"
    grep -q 'and rte_pmix, which may be what joins its job, cannot be loaded: truncated: the file is empty' "$dir/out" ||
        fail "ranks without rte_pmix do not say so: $(cat "$dir/out")"
    "${pair[@]}" -n 1 --mca rte singleton strata-perf latency --sizes 8 --iters 2 >"$dir/out" 2>&1 ||
        fail "alone, as asked for: $(cat "$dir/out")"
fi

# --- all plugins damaged: the first framework that is needed says so, and names one of its own -----------------------------
if [ -e "$plugins/.libs/strata_pml_ob1.so" ]; then
    mkdir "$dir/ruined"
    for plugin in "$plugins"/.libs/strata_*.so; do : >"$dir/ruined/${plugin##*/}"; done
    STRATA_MCA_mca_component_path="$dir/ruined" timeout "$job_limit" "$program" short >"$dir/out" 2>&1
    status=$?
    [ $status -ne 0 ] && [ $status -ne 124 ] || fail "without any plugin: status $status: $(cat "$dir/out")"
    grep -qE 'no [a-z]+ component can be used: .*[a-z0-9_]+ cannot be loaded: truncated: the file is empty' "$dir/out" ||
        fail "damaged plugins are not named: $(cat "$dir/out")"
fi

# --- the library loaded with RTLD_LOCAL ----------------------------------------------------------------------------------
export STRATA_MCA_mca_component_path=$plugins
$CC -std=gnu11 -Wall -Wextra -I"$STRATA_SOURCE/include" -o "$dir/dlopen_local" "$fakes/dlopen_local.c" -ldl ||
    fail "dlopen_local.c does not compile"
if [ -n "${SANITIZER_FLAGS-}" ]; then
    echo "the library is instrumented: not loaded into foreign programs"
else
    timeout "$job_limit" "$dir/dlopen_local" "$lib/libstrata.so" || fail "RTLD_LOCAL from a program"
    if command -v python3 >/dev/null; then
        timeout "$job_limit" python3 "$fakes/dlopen_local.py" "$lib/libstrata.so" || fail "RTLD_LOCAL from an interpreter"
    fi
fi

[ $failures -eq 0 ] && echo "all fine"
exit $((failures > 0))
