#!/bin/bash
# usage: config/ci/test.sh [full] [--resume] [STAGE]...: the stages of `./quickstart test`, which has installed the packages. Each
# stage is a file in stages/. Ends with a line `N passed, N failed, N skipped`. Exit status 0 when nothing failed, 2: wrong usage.
set -u
cd "$(dirname "$0")/../.." || exit 2
. config/ci/lib.sh
. config/ci/tally.sh

all=(check long guest sanitizers static lint dist)
form=short resume='' chosen=()
for word in "$@"; do
    case $word in
    full) form=full ;;
    --resume) resume=yes ;;
    *)
        case " ${all[*]} " in
        *" $word "*) chosen+=("$word") ;;
        *) echo "quickstart: there is no stage $word; there are: ${all[*]}" >&2 && exit 2 ;;
        esac ;;
    esac
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${all[@]}")
export STRATA_TEST_FORM=$form

# What is tested: a commit, and the changes to it that are not committed. --resume goes on with the same only.
tested() {
    local git=(git -c safe.directory='*')
    echo "form $form"
    "${git[@]}" rev-parse HEAD 2>/dev/null
    { "${git[@]}" diff HEAD && "${git[@]}" ls-files -o --exclude-standard -z | xargs -0 -r sha256sum; } 2>/dev/null | sha256sum
}
now=$(tested)
if [ -z "$resume" ] || [ "$now" != "$(cat "$STATE/tested" 2>/dev/null)" ]; then
    [ -z "$resume" ] || echo "Nothing to go on from: the last run tested something else. All stages are run."
    rm -rf "$STATE"
    mkdir -p "$STATE"
    echo "$now" >"$STATE/tested"
fi
mkdir -p "$LOGS"

for name in "${chosen[@]}"; do
    if [ -n "$resume" ] && [ -e "$STATE/$name" ]; then
        echo "$name: finished before"
        continue
    fi
    stage_begin "$name"
    # shellcheck source=/dev/null
    . "config/ci/stages/$name.sh"
    stage_end
done
summary "${chosen[@]}"
