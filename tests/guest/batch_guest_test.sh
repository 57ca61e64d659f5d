#!/bin/bash
# Batches of guest tests: each test finds the guest as if it had just booted, its result is its own, and one that hangs or panics
# the kernel costs the rest one more boot.
# short form: not run
. "$STRATA_SOURCE/tests/guest/host_lib.sh"
export STRATA_GUEST_CACHE=${STRATA_GUEST_CACHE:-$STRATA_BUILD/guest}
mkdir "$work/build" "$work/t"
make_test() { # NAME, its script on stdin
    { printf '#!/bin/bash\n# guest: --two-devices\n. "$STRATA_SOURCE/tests/guest/lib.sh"\n' && cat; } >"$work/t/$1.sh"
}
make_test leaves <<'END'
sleep 7777 &
touch /dev/shm/left
set_netem "loss 50%"
ip addr add 10.77.0.99/24 dev v0
echo "said by leaves"
exit 0
END
make_test finds <<'END'
check "a process is left" test -z "$(pgrep -x sleep)"
check "a file is left" test ! -e /dev/shm/left
check "packets are lost" test -z "$(tc qdisc show dev v0 | grep netem)"
check "an address is left" test -z "$(ip addr show dev v0 | grep 10.77.0.99)"
expect_status 0 busybox ping -c 1 -W 60 10.77.0.11
finish
END
make_test hangs <<<'sleep 1000'
make_test fails <<<'exit 3'
make_test panics <<<'echo "before the panic"; echo c >/proc/sysrq-trigger; sleep 1000'
make_test skips <<<'echo "SKIP: nothing to do"; exit 77'
tests=()
for name in leaves finds hangs fails panics skips; do tests+=("$work/t/$name.sh"); done
expect_status 1 env STRATA_BUILD="$work/build" GUEST_TEST_LIMIT=60 bash "$STRATA_SOURCE/tests/guest/batch.sh" "${tests[@]}"
out_has '^RESULT: 3 boots'
results() { cd "$work/build$work/t" && grep -H '^:test-result' ./*.trs | sed 's/.trs:.*: /=/' | tr '\n' ' '; }
cat "$work/build$work/t/finds.log"
check "results: $(results)" test "$(results)" = "./fails=FAIL ./finds=PASS ./hangs=FAIL ./leaves=PASS ./panics=FAIL ./skips=SKIP "
log() { check "the log of $1 has \"$2\"" grep -q "$2" "$work/build$work/t/$1.log"; }
log leaves "^said by leaves"; log hangs "hung for 60 s"; log panics "^before the panic"; log panics "sysrq triggered crash"
log skips "SKIP: nothing to do"
finish
