#!/bin/bash
# Open MPI's own memory hooks beside ours, over btl_openib on softhca, which detects a use of registered pages that are gone: no
# registration is stale, both hooks get the events, and the import of Open MPI's hooks is refused for the events that they miss.
. "$STRATA_SOURCE/tests/embed/openib_lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
[ "$(uname -m)" = x86_64 ] || skip "nothing tells of memory that goes away here"
export OMPI_MCA_pml_strata_rcache=tree
steps=$(form 100 500)
say_form "$steps of 500 steps"
library=()
echo 'char room[384 << 10];' >"$work/room.c"
if ${CC:-cc} -shared -fPIC -o "$work/room.so" "$work/room.c" 2>"$work/out"; then
    library=(library "$work/room.so")
else
    echo "buffers in shared libraries are not tested: $(head -n 1 "$work/out")"
fi

program strata 300 2 churn "$steps" hooks none patched threads 3 "${library[@]}"
program strata 300 2 churn "$steps" hooks after patched threads 3 "${library[@]}"
# Open MPI's openib has them started before our pml, though no message goes by it.
theirs=(--mca btl "openib,self" --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0)
if ompi_info 2>/dev/null | grep -q 'MCA btl: openib'; then
    program strata 300 2 "${theirs[@]}" --mca pml_strata_mca_base_verbose 2 churn "$steps" hooks before patched threads 3 "${library[@]}"
    n_checks=$((n_checks + 1))
    grep -q 'memory_import skipped: its self-test did not see: dlclose$' "$work/out" ||
        fail "nothing says that Open MPI's hooks do not see dlclose"
    OMPI_MCA_pml_strata_rcache=none program strata 300 2 "${theirs[@]}" churn "$(form 50 200)" hooks before threads 3 "${library[@]}"
    n_checks=$((n_checks + 1))
    if with strata 300 "${theirs[@]}" --mca pml_strata_memory import -n 2 "$programs/churn" 10 hooks before >"$work/out" 2>&1 ||
        ! grep -q 'its self-test did not see: dlclose' "$work/out"; then
        fail "their hooks were asked for, and no error says what they do not see"
    fi
fi
# Without a source of memory events the same steps use memory that is gone.
n_checks=$((n_checks + 1))
if with strata 300 --mca pml_strata_memory ^import,intercept,userfaultfd -n 2 "$programs/churn" "$steps" hooks none \
    "${library[@]}" >"$work/out" 2>&1 || ! grep -q 'was used after it had been unmapped' "$work/out"; then
    fail "without a source no stale registration is used: the test proves nothing"
fi
finish
