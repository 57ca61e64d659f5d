#!/bin/bash
# Every installed header compiles alone, as C11, gnu11 and C++17, with each compiler that is there and no warning; every function of
# the library links from C++; a C++ program runs. STRATA_PREFIX=DIR: of what is installed there, else of a staging folder. The short
# form compiles each header as C11 by one compiler, as gnu11 and C++17 by the other.
set -eu
. "$STRATA_SOURCE/tests/support/form.sh"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${STRATA_PREFIX-}" ]; then
    include=$STRATA_PREFIX/include libs=$STRATA_PREFIX/lib
else
    # Headers only: an installation of the whole links the plugins of Open MPI anew, under the other tests.
    make -s -C "$STRATA_BUILD" install-strataHEADERS install-sdkHEADERS DESTDIR="$work/stage" >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "make install of the headers"; }
    header=$(find "$work/stage" -path '*/strata/strata.h')
    include=${header%/strata/strata.h} libs=$STRATA_BUILD/.libs
fi
cd "$include"
mapfile -t headers < <(find strata -name '*.h' | sort)
diff <(printf '%s\n' "${headers[@]}") <(cd "$STRATA_SOURCE/include" && find strata -name '*.h' | sort) || fail "not the headers of the tree are installed"
[ "${#headers[@]}" -gt 20 ] || fail "only ${#headers[@]} headers"

n=0
# Headers with pragmas and those that include them, one per line: clang's compiler proper heeds pragmas in its first unit only.
pragmas=$(grep -rl '^ *# *pragma' strata || true)
while [ -n "$pragmas" ]; do
    more=$({ echo "$pragmas"; grep -rlF -f <(awk '{ print "<" $0 ">" }' <<<"$pragmas") strata; } | sort -u)
    [ "$more" != "$pragmas" ] || break
    pragmas=$more
done
# Prints clang's call of its compiler proper for COMMAND UNIT, without the unit; fails with another compiler. One call compiles many units,
# none of which sees another's declarations: most of a start is the compiler's own.
proper() { # UNIT COMMAND...
    local call
    call=$("${@:2}" "$1" '-###' 2>&1 | grep -m 1 '"-cc1"') || return 1
    call=${call/\"-main-file-name\" \"${1##*/}\"/}
    printf '%s\n' "${call% \""$1"\"}"
}
alone() { # SUFFIX COMPILER STANDARD
    command -v "$2" >/dev/null || { echo "left out: no $2"; return 0; }
    local command=("$2" -std="$3" -Wall -Wextra -pedantic -Werror -I"$include" -fsyntax-only) together=() call unit
    echo 'void use(strata_t *s);' >"$work/broken.$1"
    call=$(proper "$work/broken.$1" "${command[@]}") || true
    mkdir -p "$work/$1"
    for header in "${headers[@]}"; do
        # A unit, with the header's name, needs a declaration, and headers of macros have none.
        unit=$work/$1/${header//\//_}.$1
        printf '#include <%s>\nextern int declared;\n' "$header" >"$unit"
        if [ -n "$call" ] && ! grep -qxF "$header" <<<"$pragmas"; then
            together+=("$unit")
        else
            "${command[@]}" "$unit" || fail "$header does not compile alone: $2 -std=$3"
        fi
        n=$((n + 1))
    done
    if [ ${#together[@]} -gt 0 ]; then
        eval "$call" '"${together[@]}"' || fail "headers do not compile alone: $2 -std=$3"
        # The last of several units is compiled as well, and alone.
        ! eval "$call" '"$work/$1/strata_strata.h.$1" "$work/broken.$1"' 2>"$work/log" || fail "$2 compiles one of several units"
        grep -q "broken.$1:1.*strata_t" "$work/log" || fail "$2 with several units: $(cat "$work/log")"
    fi
    echo "${#headers[@]} headers alone: $2 -std=$3"
}
alone c gcc c11
alone c clang gnu11
alone cc clang++ c++17
# One compiler is not there: the other has to do.
if full_form || ! command -v clang++ >/dev/null; then
    alone c gcc gnu11
    alone c clang c11
    alone cc g++ c++17
fi
[ "$n" -gt 0 ] || { echo "SKIP: no compiler"; exit 77; }
command -v g++ >/dev/null || { echo "SKIP: no g++"; exit 77; }
# The headers of programs ask for C++11 only.
for header in strata/*.h; do
    printf '#include <%s>\n' "$header" >"$work/one.cc"
    g++ -std=c++11 -Wall -Wextra -Werror -pedantic -I"$include" -fsyntax-only "$work/one.cc" || fail "$header in C++11"
done

# A header that lacks extern "C" compiles, but what it declares does not link.
{
    printf '#include <%s>\n' "${headers[@]}"
    echo 'const void *const volatile used[] = {'
    comm -12 <(nm -D --defined-only "$libs/libstrata.so" | awk '$3 ~ /^(strata|st)_/ { print $3 }' | sort -u) \
        <(grep -rhowE '(strata|st)_[A-Za-z0-9_]+' strata | sort -u) | sed 's/.*/(const void *)\&::&,/'
    echo '}; int main() { return used[0] == nullptr; }'
} >"$work/all.cc"
[ "$(grep -c '&::' "$work/all.cc")" -gt 100 ] || fail "too few functions: $(grep -c '&::' "$work/all.cc")"
g++ -std=gnu++17 -I"$include" "$work/all.cc" -o "$work/all" -L"$libs" -lstrata -Wl,-rpath,"$libs" ${SANITIZER_FLAGS:+"$SANITIZER_FLAGS"} ||
    fail "not every function links from C++"
"$work/all" || fail "the program of all functions: status $?"
echo "$(grep -c '&::' "$work/all.cc") functions and variables link from C++"

cat >"$work/program.cc" <<'EOF'
#include <strata/host.h>

#include <cstring>
#include <vector>

int main()
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_t *s = nullptr;
    if (strata_init(&config, &s) != STRATA_OK)
        return 1;
    std::vector<char> out(1000, 'x'), in(1000);
    int me = strata_rank(s);
    strata_status_t status;
    int rc = strata_sendrecv(strata_world(s), out.data(), out.size(), me, 3, in.data(), in.size(), me, 3, &status);
    bool good = rc == STRATA_OK && status.length == out.size() && std::memcmp(in.data(), out.data(), in.size()) == 0;
    return strata_finalize(s) == STRATA_OK && good ? 0 : 2;
}
EOF
# Strict C11 hides clock_gettime; the clock is there all the same.
cat >"$work/clock.c" <<'EOF'
#include <strata/sdk/clock.h>
int main(void) { uint64_t t = st_now_ns(); return !(t > 0 && st_now_ns() >= t && st_now_ms() > 0); }
EOF
g++ -std=c++11 -I"$include" "$work/program.cc" -o "$work/program" -L"$libs" -lstrata -Wl,-rpath,"$libs" ${SANITIZER_FLAGS:+"$SANITIZER_FLAGS"} ||
    fail "the C++ program does not link"
"$work/program" || fail "the C++ program: status $?"
echo "C++ program: ok"
gcc -std=c11 -pedantic -Wall -Werror -I"$include" "$work/clock.c" -o "$work/clock" -L"$libs" -lstrata -Wl,-rpath,"$libs" ${SANITIZER_FLAGS:+"$SANITIZER_FLAGS"} ||
    fail "the clock in C11"
"$work/clock" || fail "the clock in C11: status $?"
echo "clock in C11: ok"
