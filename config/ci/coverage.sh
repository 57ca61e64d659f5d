#!/bin/bash
# usage: config/ci/coverage.sh BUILD MINIMUM: lines of framework/, channel/ and components/ that the tests of BUILD (configured
# with --enable-coverage, tests run) have executed, by lcov; fails below MINIMUM per cent.
set -eu
cd "$(dirname "$0")/../.."
build=$1 minimum=$2
info=$build/coverage.info
quiet=(--quiet --rc lcov_branch_coverage=0)

lcov "${quiet[@]}" --capture --directory "$build" --base-directory "$build" --output-file "$info.all"
lcov "${quiet[@]}" --extract "$info.all" '*/framework/*' '*/channel/*' '*/components/*' --output-file "$info.code"
lcov "${quiet[@]}" --remove "$info.code" "$PWD/framework/*/tests/*" "$PWD/components/*/tests/*" "$PWD/channel/tests/*" "$PWD/tests/*" --output-file "$info"
lcov --list "$info" | sed -n "s|^$PWD/||;p"
genhtml --quiet --output-directory "$build/coverage" "$info"

# Totals per folder and over all, from the records SF (file), LF (lines), LH (lines hit).
awk -F'[:,]' -v top="$PWD/" -v minimum="$minimum" '
    /^SF:/ { file = substr($0, 4); sub(top, "", file); split(file, part, "/"); folder = part[1] "/" part[2] }
    /^LF:/ { lines[folder] += $2; all += $2 }
    /^LH:/ { hit[folder] += $2; all_hit += $2 }
    END {
        for (f in lines) printf "RESULT: %-28s %5.1f %%  of %d lines\n", f, 100 * hit[f] / lines[f], lines[f] | "sort"
        close("sort")
        rate = all ? 100 * all_hit / all : 0
        printf "RESULT: line coverage %.1f %% (%d of %d), minimum %d %%\n", rate, all_hit, all, minimum
        exit rate < minimum
    }' "$info"
