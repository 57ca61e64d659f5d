#!/bin/bash
# config/ci/build.sh configures again when packages have come or gone, programs among them, or options have changed; not otherwise. Over a
# tree of its own, whose configure only counts.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tree=$work/tree bin=$work/bin
mkdir -p "$tree/config/ci" "$bin"
cp "$STRATA_SOURCE/config/ci/build.sh" "$tree/config/ci"
cp "$STRATA_SOURCE/config/packages.txt" "$tree/config"
: >"$tree/config/discover.sh"
program() { # NAME SCRIPT
    printf '#!/bin/bash\n%s\n' "$2" >"$bin/$1" && chmod +x "$bin/$1"
}
program make 'echo made "$@"'
program dpkg-query "cat $work/installed"
# shellcheck disable=SC2016 # of the script
printf '#!/bin/bash\necho "$*" >>"$0.runs"; touch config.status\n' >"$tree/configure" && chmod +x "$tree/configure"
configured() { [ "$(wc -l <"$tree/configure.runs")" = "$1" ]; }
build() { expect_status 0 env PATH="$bin:/usr/bin:/bin" bash "$tree/config/ci/build.sh" out "$@"; }

echo "libpmix-dev 4.2.2 installed" >"$work/installed"
build; check "the first build configures" configured 1
out_has "^made -j"
build; check "the second does not" configured 1
echo "libopenmpi-dev 4.1.4 installed" >>"$work/installed"
build; check "a package has come" configured 2
echo "libopenmpi-dev 4.1.5 installed" >"$work/installed"
build; check "one is another version, one has gone" configured 3
echo "libopenmpi-dev 4.1.5 config-files" >"$work/installed"
build; check "one is not installed any more" configured 4
program doxygen true
[ -x /usr/bin/doxygen ] || { build; check "a program has come" configured 5; rm -f "$tree/configure.runs"; : >"$tree/configure.runs"; }
before=$(wc -l <"$tree/configure.runs")
build --enable-werror; check "options have changed" configured $((before + 1))
build --enable-werror; check "and stay" configured $((before + 1))
check "they reach configure" test "$(tail -n 1 "$tree/configure.runs")" = --enable-werror
finish
