#!/bin/bash
# usage: config/ci/lint.sh format|tidy|cppcheck|shell [file]...: one checker over the tree, or over the files given.
# clang-tidy and cppcheck take minutes over the whole tree. Files whose content, headers, options and checker are as they were when
# they last passed are left out: the cache folder ($STRATA_CACHE, ~/.cache/strata) remembers them. STRATA_TEST_FORM=full looks at
# every file.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
what=$1
shift
JOBS=${JOBS:-$(nproc)}
CACHE=${STRATA_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/strata}/lint
[ "${STRATA_TEST_FORM-}" != full ] || CACHE=
[ -z "$CACHE" ] || { mkdir -p "$CACHE" && [ -w "$CACHE" ]; } 2>/dev/null || CACHE= # a home that cannot be written
export CACHE

# Files of the tree, of git's when this is a clone.
tree() { # glob...
    if [ -d .git ] || [ -f .git ]; then
        git -c safe.directory='*' ls-files -co --exclude-standard -- "$@"
    else
        local g
        for g in "$@"; do find . -path ./build -prune -o -name "$g" -print; done
    fi | sort -u
}

# Warnings and include folders as the build gives them: the file's own component, and tests/ for tests.
WARNINGS=$(sed -n 's/^WARNING_FLAGS="\(-Wall .*\)"$/\1/p' configure.ac)
[ -n "$WARNINGS" ] || { echo "lint.sh: configure.ac has no line WARNING_FLAGS=\"-Wall ...\"" >&2 && exit 1; }
export WARNINGS
flags() { # file
    local dir=${1%/*}
    case $dir in components/*/tests | components/mpool/* | components/rcache/*) ;; components/*/*) dir=${dir%/*} ;; esac
    echo "-std=gnu11 -DHAVE_CONFIG_H -Iinclude -I. -Ibuild -I$dir $WARNINGS"
    case $dir in
    embed/*)
        local i
        for i in $(mpicc.openmpi --showme:incdirs); do echo "-isystem $i"; done
        echo "-mcx16" ;;
    esac
    case $dir in tests/verbs/* | tests/softhca/*) echo "-Itests/verbs" ;; esac
    case $dir in */tests) echo "-I$(dirname "$dir") -Itests" ;; tests/* | bench | tools/strata-conformance) echo "-Itests" ;; esac
    case $dir in bench | tools/socket-twin) echo "-Itools/strata-perf" ;; tools/channel-twin) echo '-DPORT="port_strata.h"' ;; tests/openib/*) echo "-Icomponents/btl_openib" ;; esac
    case $dir in tools/strata-conformance) echo "-DOVER_COLLECTED -DCLIENT_SUITES=SUITE(clients)" ;; esac
    echo "$PACKAGE_FLAGS"
    echo '-DST_BINDIR="/b" -DST_LIBDIR="/i" -DST_LIBEXECDIR="/l" -DST_COMPONENT_DIR="/c" -DST_SYSCONF_DIR="/e" -DST_EMBED_DIR="/o" -DST_PLUGIN_DIR="/p"'
}

some() { [ "$#" -gt 0 ] || { echo "lint.sh: no files were found" >&2 && exit 1; }; }

# How deeply clang-tidy looks. In the short form its analyzer, which is nine tenths of the time, looks into tests less deeply, and into all files
# with an empty cache, so that a new machine takes two minutes and not five.
tidy_mode() { # file
    case ${STRATA_TEST_FORM-},${COLD-},$1 in short,yes,* | short,,tests/* | short,,*/tests/*) echo "-Xclang -analyzer-config -Xclang mode=shallow,max-nodes=10000" ;; esac
}

# A name for what clang-tidy's verdict on a file rests on: the checker, its settings and options, the file and the headers of the tree
# and of the machine that it includes. Not for how deeply it looked: what has passed once is looked at again in the full form only.
tidy_key() { # file flags
    local files
    # shellcheck disable=SC2086 # flags are meant to be split
    files=$({ clang -M $2 "$1" 2>/dev/null || echo "$1"; } | tr -d '\\' | tr ' ' '\n' | grep -E '^[^:]+$' | sort -u)
    {
        echo "$CHECKER $2 $files"
        grep '^[^/]' <<<"$files" | xargs sha256sum
    } | sha256sum | cut -d ' ' -f 1
}
tidy_one() { # file
    local out key='' f
    f=$(flags "$1")
    if [ -n "$CACHE" ]; then
        key=$CACHE/tidy/$(tidy_key "$1" "$f")
        [ ! -e "$key" ] || { touch "$key" && echo "passed before: $1" && return; }
    fi
    # A brief analysis does not look into the functions that are called: what it finds is a finding if the deep one finds it, too.
    # shellcheck disable=SC2046,SC2086 # flags are meant to be split
    out=$(clang-tidy --quiet --warnings-as-errors='*' "$1" -- $f $(tidy_mode "$1") 2>&1) ||
        out=$(clang-tidy --quiet --warnings-as-errors='*' "$1" -- $f 2>&1) || {
        printf '%s\n' "$out" | grep -v 'warnings generated'
        return 1
    }
    [ -z "$key" ] || : >"$key"
    echo "tidy $1"
}
tidy_some() { # file...
    local status=0
    while [ $# -gt 0 ]; do
        tidy_one "$1" || status=1
        shift
    done
    return $status
}

# MPI programs, built with another compiler, are not looked at by clang-tidy.
sources() { grep -LE '#include <(fftw3-)?mpi\.h>' "$@" | grep -v '^tests/embed/' || true; }

case $what in
format)
    [ $# -gt 0 ] || mapfile -t files < <(tree '*.c' '*.h')
    [ $# -eq 0 ] || files=("$@")
    some "${files[@]}"
    clang-format --dry-run -Werror "${files[@]}"
    echo "RESULT: ${#files[@]} files" ;;
tidy)
    [ $# -gt 0 ] || mapfile -t files < <(tree '*.c')
    [ $# -eq 0 ] || files=("$@")
    some "${files[@]}"
    mapfile -t files < <(sources "${files[@]}")
    export -f tidy_some tidy_one tidy_key tidy_mode flags
    PACKAGE_FLAGS=$(pkg-config --cflags pmix hwloc jansson check)
    CHECKER=$(clang-tidy --version && cat .clang-tidy)
    export PACKAGE_FLAGS CHECKER
    [ -z "$CACHE" ] || mkdir -p "$CACHE/tidy"
    COLD=
    [ -z "$CACHE" ] || [ -n "$(ls "$CACHE/tidy")" ] || COLD=yes
    export COLD
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    printf '%s\n' "${files[@]}" | xargs -P "$JOBS" -n 4 bash -c 'tidy_some "$@"' tidy_some | tee "$log"
    [ -z "$CACHE" ] || find "$CACHE/tidy" -type f -mtime +60 -delete
    echo "RESULT: ${#files[@]} files, of which $(grep -c '^passed before' "$log") had passed before" ;;
cppcheck)
    # One translation unit at a time; unused or missing things are the compiler's and the linker's business. The short form with an
    # empty cache looks at one configuration of the preprocessor a file, which takes half the time; what passed so is looked at again
    # when it changes, and in the full form.
    few=()
    if [ -n "$CACHE" ]; then
        mkdir -p "$CACHE/cppcheck"
        [ "${STRATA_TEST_FORM-}" != short ] || [ -n "$(ls "$CACHE/cppcheck")" ] || few=(--max-configs=1)
    fi
    cppcheck --quiet -j "$JOBS" "${few[@]}" ${CACHE:+--cppcheck-build-dir="$CACHE/cppcheck"} --std=c11 --enable=warning,performance,portability --inline-suppr \
        --suppressions-list=config/ci/cppcheck.txt --error-exitcode=1 -Iinclude -I. -Itests \
        --template='{file}:{line}: {severity}: {message} [{id}]' framework components tools softhca docs/examples ;;
shell)
    mapfile -t files < <(tree '*.sh')
    files+=(quickstart .ci/run tests/guest/run tests/guest/on-node)
    printf '%s\n' "${files[@]}" | xargs -P "$JOBS" -n 20 shellcheck -x -S warning
    echo "RESULT: ${#files[@]} files" ;;
*)
    echo "lint.sh: what?" >&2
    exit 2 ;;
esac
