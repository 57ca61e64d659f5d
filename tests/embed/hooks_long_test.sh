#!/bin/bash
# Open MPI's own memory hooks at work beside ours, over btl_openib on softhca, which finds out who uses registered pages
# that are gone: nothing stale, both are told, and the import of Open MPI's hooks is refused for what they do not see.
. "$STRATA_SOURCE/tests/embed/openib_lib.sh" || exit 1
[ "$(uname -m)" = x86_64 ] || skip "nothing tells of memory that goes away here"
export OMPI_MCA_pml_strata_rcache=tree
library=()
echo 'char room[384 << 10];' >"$work/room.c"
if ${CC:-cc} -shared -fPIC -o "$work/room.so" "$work/room.c" 2>"$work/out"; then
    library=(library "$work/room.so")
else
    echo "buffers in shared libraries are not tested: $(head -n 1 "$work/out")"
fi

program strata 60 2 churn 500 hooks none patched threads 3 "${library[@]}"
program strata 60 2 churn 500 hooks after patched threads 3 "${library[@]}"
# Open MPI's openib has them started before our pml, though no message goes by it.
theirs=(--mca btl "openib,self" --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0)
if ompi_info 2>/dev/null | grep -q 'MCA btl: openib'; then
    program strata 60 2 "${theirs[@]}" --mca pml_strata_mca_base_verbose 2 churn 500 hooks before patched threads 3 "${library[@]}"
    n_checks=$((n_checks + 1))
    grep -q 'memory_import skipped: its self-test did not see: dlclose$' "$work/out" ||
        fail "nothing says that Open MPI's hooks do not see dlclose"
    OMPI_MCA_pml_strata_rcache=none program strata 60 2 "${theirs[@]}" churn 200 hooks before threads 3 "${library[@]}"
    n_checks=$((n_checks + 1))
    if with strata 60 "${theirs[@]}" --mca pml_strata_memory import -n 2 "$programs/churn" 10 hooks before >"$work/out" 2>&1 ||
        ! grep -q 'its self-test did not see: dlclose' "$work/out"; then
        fail "their hooks were asked for, and no error says what they do not see"
    fi
fi
# The same steps do use memory that is gone when nobody tells.
n_checks=$((n_checks + 1))
if with strata 60 --mca pml_strata_memory ^import,intercept,userfaultfd -n 2 "$programs/churn" 500 hooks none \
    "${library[@]}" >"$work/out" 2>&1 || ! grep -q 'was used after it had been unmapped' "$work/out"; then
    fail "without a source nothing goes wrong: this test finds nothing"
fi
finish
