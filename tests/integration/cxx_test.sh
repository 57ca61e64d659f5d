#!/bin/bash
# The public headers, the embedding header and the sdk are usable from C++, and a C++ program links and runs.
set -eu
: "${CXX:=g++}"
command -v "$CXX" >/dev/null || { echo "no C++ compiler: skipped"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
flags=(-std=c++17 -Wall -Wextra -Wshadow -Werror -I"$STRATA_SOURCE/include")
sanitizers=$(sed -n 's/^SANITIZER_FLAGS = //p' "$STRATA_BUILD/Makefile")

# Each header on its own. Those of the sdk that need C11's atomics are for plugins, which are written in C.
for header in "$STRATA_SOURCE"/include/strata/*.h; do
    printf '#include <strata/%s>\n' "${header##*/}" >"$dir/one.cc"
    "$CXX" "${flags[@]}" -fsyntax-only "$dir/one.cc"
done

cat >"$dir/program.cc" <<'CXX'
#include <cstdio>
#include <cstring>
#include <strata/host.h>
#include <strata/strata.h>

int main()
{
    strata_setting_t alone[] = {{"rte", "singleton"}};
    strata_config_t config = STRATA_CONFIG_INIT;
    config.settings = alone;
    config.n_settings = 1;
    strata_t *s = nullptr;
    if (strata_init(&config, &s) != STRATA_OK)
        return 1;
    strata_comm_t *world = strata_world(s);
    char out[32] = "from C++", in[32] = "";
    strata_request_t *req = nullptr;
    strata_status_t status;
    int rc = strata_irecv(world, in, sizeof(in), STRATA_ANY_SOURCE, 5, &req);
    if (rc == STRATA_OK)
        rc = strata_send(world, out, sizeof(out), strata_rank(s), 5);
    if (rc == STRATA_OK)
        rc = strata_wait(&req, &status);
    bool good = rc == STRATA_OK && status.length == sizeof(out) && std::strcmp(in, out) == 0;
    std::printf("%s: %s\n", in, strata_strerror(rc));
    return strata_finalize(s) == STRATA_OK && good ? 0 : 1;
}
CXX
# shellcheck disable=SC2086
"$CXX" "${flags[@]}" $sanitizers "$dir/program.cc" -o "$dir/program" -L"$STRATA_BUILD/.libs" -lstrata
LD_LIBRARY_PATH=$STRATA_BUILD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$dir/program"
