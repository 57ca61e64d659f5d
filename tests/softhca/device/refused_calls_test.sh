#!/bin/bash
# Old kernels, old profiles of containers and valgrind refuse some system calls. Without pidfd_open and pidfd_getfd all goes
# on: events between processes, and noticing that a peer has ended. Without what copies no device can be opened, and the
# message names the call.
# starts first
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
refuse=$STRATA_BUILD/tests/softhca/device/refuse suite=$STRATA_BUILD/tests/verbs/suite
[ -x "$refuse" ] && [ -x "$suite/processes" ] || skip "not built: libibverbs or Check is missing"
"$refuse" ENOSYS pidfd_open true || skip "no filters of system calls"
export VERBS_DEVICE=soft0

refused() { # ERROR CALLS
    VERBS_CASE='*asleep*' single 120 '^TOTAL .*: [1-9][0-9]* passed, 0 failed' "$refuse" "$@" "$suite/processes"
    VERBS_CASE='peer*' single 120 '^TOTAL .*: [1-9][0-9]* passed, 0 failed' "$refuse" "$@" "$suite/retry"
}
# The four run side by side, each with a folder and a fabric of its own: most of each is waiting.
checks=()
for calls in "ENOSYS pidfd_open,pidfd_getfd" "EPERM pidfd_open" "EPERM pidfd_getfd" "ENOSYS pidfd_getfd"; do
    (
        work=$(mktemp -d "$work/XXXXXX")
        SOFTHCA_FABRIC=${work##*/}-$$
        # shellcheck disable=SC2086
        refused $calls
        finish
    ) &
    checks+=($!)
done
for check in "${checks[@]}"; do
    wait "$check" || n_failed=$((n_failed + 1))
done
single 120 '^TOTAL .*: [1-9][0-9]* passed, 0 failed' "$refuse" ENOSYS pidfd_open "$suite/processes"
VERBS_CASE='to_the_owner' single 120 '^TOTAL .*: 1 passed, 0 failed' "$refuse" ENOSYS pidfd_open "$suite/events"

opens() { # EXPRESSION ERROR CALL
    n_checks=$((n_checks + 1))
    soft 20 "$refuse" "$2" "$3" ibv_devinfo >"$work/out" 2>&1
    grep -Eq "$1" "$work/out" || fail "$3 refused with $2: not said" "$work/out"
}
pingpong_under() { # PROGRAM ARGS...
    pair 600 '^[0-9]+ iters in' 1 "$@" ibv_rc_pingpong -p @ -d soft0 -n 20 -e
}
if command -v ibv_rc_pingpong >/dev/null; then
    pingpong_under "$refuse" ENOSYS pidfd_open
    opens 'refuses process_vm_readv \(Operation not permitted\)' EPERM process_vm_readv
    opens 'refuses process_vm_readv \(Function not implemented\)' ENOSYS process_vm_readv
    opens 'refuses process_vm_writev' EPERM process_vm_writev
    opens 'cannot join the fabric: memfd_create: Function not implemented' ENOSYS memfd_create
    if command -v valgrind >/dev/null && [ -z "${SANITIZER_FLAGS-}" ]; then
        # Every tool of valgrind refuses the same calls; this one does nothing else.
        pingpong_under valgrind --tool=none -q
    else
        echo "not run: valgrind is not installed, or this build has sanitizers"
    fi
else
    echo "not run: ibverbs-utils is not installed"
fi
finish
