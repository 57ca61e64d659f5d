#!/bin/bash
# Every installed header stands alone in C; the public ones also in C++, where a program links and runs.
set -eu

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$STRATA_SOURCE/include"
for header in strata/*.h strata/sdk/*.h; do
    echo "#include <$header>" >"$work/one.c"
    ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -I. -fsyntax-only "$work/one.c" || fail "$header does not stand alone"
    echo "$header: C"
done
command -v g++ >/dev/null || { echo "SKIP: no g++"; exit 77; }
for header in strata/*.h; do
    echo "#include <$header>" >"$work/one.cc"
    g++ -std=c++11 -Wall -Wextra -Werror -pedantic -I. -fsyntax-only "$work/one.cc" || fail "$header in C++"
    echo "$header: C++"
done

cat >"$work/program.cc" <<'END'
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
END
libs=$STRATA_BUILD/.libs
# shellcheck disable=SC2086 # flags are meant to be split
g++ -std=c++11 -I. "$work/program.cc" -o "$work/program" -L"$libs" -lstrata -Wl,-rpath,"$libs" ${SANITIZER_FLAGS-} ||
    fail "the C++ program does not link"
"$work/program" || fail "the C++ program: status $?"
echo "C++ program: ok"
