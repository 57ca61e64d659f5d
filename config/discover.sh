#!/bin/sh
# Finds what the tree holds and writes config/discovered.am and config/discovered.m4, so that adding a component, a tool,
# a test or an example touches no central line:
#   framework/*/*.c, channel/*.c         the library's core
#   components/NAME/{,*/}*.c             component NAME; components/{mpool,rcache}/X/*.c: component mpool_X, rcache_X
#   components/NAME/plugin/*.c           optional: what every job loads of it; the rest is loaded when there is a use for it
#   tests/components/NAME/*.c            a component for tests: never installed
#   components/NAME/configure.m4         optional: sets component_ok, NAME_CPPFLAGS, NAME_LIBS
#   tools/strata-X/*.c, tools/strata-X   program strata-X: a folder of C files, or a script
#   tools/strata-X/program.mk            optional: builds strata-X from strata_X_FILES by itself, without libstrata
#   tools/shared/*.c                     what these programs share
#   softhca/*.c, softhca/stat/*.c       libsofthca.so and softhca-stat; how they are built: softhca/softhca.mk
#   embed/openmpi/*.c                    the plugin for Open MPI; how it is built: embed/openmpi/embed.mk
#   {framework,components}/*/tests/*_test.c, channel/tests/*_test.c, tests/{*,*/*}/*_test.{c,sh}   tests; *_long_test.* only in `make check-full`
#   tests/{*,*/*}/*_guest_test.sh        tests that need a kernel with RDMA devices: only in `make check-guest`
#   tests/support/*.c                    what tests share
#   tests/conformance/*_test.c           those that end in OVER_SUITE are part of tools/strata-conformance as well
#   tests/verbs/suite/*.c                programs of the verbs suite, with tests/verbs/support/*.c; rules: tests/verbs/verbs.mk
#   tests/embed/programs/*.c             MPI programs, built by mpicc.openmpi
#   docs/examples/*.c, docs/man/*.1      examples and manual pages
#   docs/*.md, docs/examples/            installed beside the headers, in docdir: a plugin writer needs no source tree
set -eu
cd "$(dirname "$0")/.."
am=config/discovered.am
m4=config/discovered.m4
new_am=$(mktemp) new_m4=$(mktemp)
trap 'rm -f "$new_am" "$new_m4"' EXIT

files() { for f in "$@"; do [ -f "$f" ] && printf '%s ' "$f"; done; return 0; }
sources() { find "$1" -mindepth 1 -maxdepth 2 -name tests -prune -o -name '*.[ch]' -type f -print | LC_ALL=C sort | tr '\n' ' '; }
var() { printf '%s' "$1" | sed 's/[^A-Za-z0-9_]/_/g'; }
put() { printf '%s\n' "$*" >>"$new_am"; }
# Linked to run where it is built: no script of libtool in front, which costs ten milliseconds of each start.
not_installed="-no-install \$(AM_LDFLAGS)"

put "# Written by config/discover.sh; not kept in git."
printf 'dnl Written by config/discover.sh; not kept in git.\n' >"$new_m4"

put "libstrata_core_la_SOURCES += $(files framework/*/*.c framework/*/*.h channel/*.c channel/*.h)"
put "EXTRA_DIST += $(files channel/README.md framework/*/README.md)"
put "strata_HEADERS += $(files include/strata/*.h include/strata/*.hpp)"
put "sdk_HEADERS += $(files include/strata/sdk/*.h)"

marked() { # WORDS: tests of which one of the first lines is a comment with these words
    find framework channel components tests '(' -name '*_test.sh' -o -name '*_test.c' ')' -type f -print | LC_ALL=C sort |
        xargs awk -v words="^(#| [*]|/[*]) $1" 'FNR <= 20 && $0 ~ words { print FILENAME }' | tr '\n' ' '
}
# Long ones: the others should not have ended when they begin.
first=" $(marked '[Ss]tarts first')"
# Those whose processes have a single thread, so that the thread sanitizer finds nothing in them.
single=$(marked 'one thread [*]/')
for t in $single; do
    ! grep -HnE 'pthread_create|thrd_create|tw_run' "$t" >&2 || { echo "discover.sh: $t says \"one thread\"" >&2 && exit 1; }
done
put "ONE_THREAD_TESTS = $(printf '%s' "$single" | sed 's/[.]c / /g')"
put "FIRST_TESTS ="
put "FIRST_LONG_TESTS ="
# Prints the list that a test's file belongs to.
list_of() {
    case $first in *" $1 "*) printf FIRST_ ;; esac
    case $1 in
    *_long_test.*) printf LONG_TESTS ;;
    *_guest_test.sh) printf GUEST_TESTS ;;
    *) printf TESTS ;;
    esac
}

component_names=
component() { # folder name kind: component or check
    dir=$1 name=$2 kind=$3
    sources=$(sources "$dir")
    case $sources in *.c*) ;; *) return 0 ;; esac
    component_names="$component_names $name"
    rules=config/component.mk plugin=
    if [ -d "$dir/plugin" ]; then
        rules=config/component_split.mk plugin=$(files "$dir"/plugin/*.[ch])
        for file in $plugin; do sources=$(printf '%s' "$sources" | sed "s|$file ||"); done
    fi
    sed -e "s|@NAME@|$name|g" -e "s|@DIR@|$dir|g" -e "s|@VAR@|$(var "$dir")|g" -e "s|@SOURCES@|$sources|g" \
        -e "s|@PLUGIN_SOURCES@|$plugin|g" -e "s|@KIND@|$kind|g" "$rules" | grep -v '^#' >>"$new_am"
    # shellcheck disable=SC2016 # the variables are configure's
    {
        printf 'component_ok=yes\n'
        if [ -f "$dir/configure.m4" ]; then printf 'm4_include([%s/configure.m4])\n' "$dir"; fi
        printf 'AC_SUBST([%s_CPPFLAGS])\nAC_SUBST([%s_LIBS])\n' "$name" "$name"
        printf 'AM_CONDITIONAL([BUILD_%s], [test "x$component_ok" = xyes])\n' "$name"
        if [ "$kind" = component ]; then
            printf 'AM_COND_IF([BUILD_%s], [STATIC_COMPONENT_LIST="$STATIC_COMPONENT_LIST %s"])\n' "$name" "$name"
        fi
    } >>"$new_m4"
    put "EXTRA_DIST += $(files "$dir"/README.md "$dir"/configure.m4 "$dir"/tests/*.h)"
    for t in "$dir"/tests/*_test.c; do
        [ -f "$t" ] || continue
        put "if BUILD_$name"
        test_program "$t" "$dir/lib$name.la libstrata.la" "-I\$(srcdir)/$dir \$(${name}_CPPFLAGS)"
        put "endif"
    done
}

test_program() { # source libs cppflags
    p=${1%.c} v=$(var "${1%.c}")
    put "if HAVE_CHECK"
    put "check_PROGRAMS += $p"
    put "$(list_of "$1") += $p"
    case $p in
    *_long_test)
        # Automake writes this rule for what is in TESTS only.
        put "$p.log: $p\$(EXEEXT)"
        put "	@p='$p\$(EXEEXT)'; b='$p'; \$(am__check_pre) \$(LOG_DRIVER) --test-name \"\$\$f\" --log-file \$\$b.log" \
            "--trs-file \$\$b.trs \$(am__common_driver_flags) \$(AM_LOG_DRIVER_FLAGS) \$(LOG_DRIVER_FLAGS) --" \
            "\$(LOG_COMPILE) \"\$\$tst\" \$(AM_TESTS_FD_REDIRECT)" ;;
    esac
    put "${v}_SOURCES = $1"
    put "${v}_CPPFLAGS = \$(COMMON_CPPFLAGS) -I\$(srcdir)/tests \$(CHECK_CFLAGS) $3"
    put "${v}_CFLAGS = \$(COMMON_CFLAGS)"
    put "${v}_LDFLAGS = $not_installed"
    put "${v}_LDADD = tests/support/libsupport.la $2 \$(CHECK_LIBS) \$(TOOL_LIBS)"
    put "endif"
}

for dir in components/*/; do
    dir=${dir%/}
    [ -d "$dir" ] || continue
    case $dir in
    components/mpool | components/rcache)
        fw=$(basename "$dir")
        for sub in "$dir"/*/; do sub=${sub%/}; component "$sub" "${fw}_$(basename "$sub")" component; done ;;
    *) component "$dir" "$(basename "$dir")" component ;;
    esac
done
for dir in tests/components/*/; do
    dir=${dir%/}
    if [ -d "$dir" ]; then component "$dir" "$(basename "$dir")" check; fi
done
printf 'AC_SUBST([STATIC_COMPONENT_LIST])\n' >>"$new_m4"

for dir in tools/strata-*/; do
    dir=${dir%/} tool=$(basename "${dir%/}")
    sources=$(files "$dir"/*.c "$dir"/*.h)
    case $sources in *.c*) ;; *) continue ;; esac
    v=$(var "$tool")
    if [ -f "$dir/program.mk" ]; then
        put "${v}_FILES = $sources"
        put "include $dir/program.mk"
        put "EXTRA_DIST += $(files "$dir"/README.md)"
        continue
    fi
    put "bin_PROGRAMS += $tool"
    put "${v}_SOURCES = $sources"
    put "${v}_CPPFLAGS = \$(COMMON_CPPFLAGS) \$(TOOL_CPPFLAGS) -I\$(srcdir)/$dir"
    put "${v}_CFLAGS = \$(COMMON_CFLAGS)"
    put "${v}_LDADD = \$(${v}_LIBS) tools/shared/libshared.la libstrata.la \$(TOOL_LIBS)"
    put "EXTRA_DIST += $(files "$dir"/README.md)"
done
put "tools_shared_libshared_la_SOURCES += $(files tools/shared/*.c tools/shared/*.h)"

# How it is built: softhca/softhca.mk.
put "SOFTHCA_SOURCES = $(files softhca/*.c softhca/*.h)"
put "SOFTHCA_STAT_SOURCES = $(files softhca/stat/*.c softhca/stat/*.h)"

for t in framework/*/tests/*_test.c channel/tests/*_test.c; do
    [ -f "$t" ] || continue
    test_program "$t" "libstrata_whole.la" "-I\$(srcdir)/$(dirname "$(dirname "$t")")"
done
for t in tests/*/*_test.c; do
    [ -f "$t" ] || continue
    test_program "$t" "libstrata.la" "-I\$(srcdir)/$(dirname "$t")"
done
for t in tests/*/*_test.sh tests/*/*/*_test.sh; do
    [ -f "$t" ] || continue
    put "$(list_of "$t") += $t"
    put "EXTRA_DIST += $t"
done
# Suites of worker clients: OVER_SUITE(NAME, ...) in NAME_test.c.
suites=$(grep -l '^OVER_SUITE(' tests/conformance/*_test.c | tr '\n' ' ')
put "CLIENT_SUITE_SOURCES = $suites"
put "CLIENT_SUITES = $(for t in $suites; do t=${t##*/} && printf 'SUITE(%s) ' "${t%_test.c}"; done)"
put "tests_support_libsupport_la_SOURCES += $(files tests/support/*.c tests/support/*.h)"
# Programs that test scripts start: plain programs on the public API (those in tests/programs may use tests/support).
for t in tests/programs/*.c docs/examples/*.c; do
    [ -f "$t" ] || continue
    p=${t%.c} v=$(var "${t%.c}")
    put "check_PROGRAMS += $p"
    put "${v}_SOURCES = $t"
    put "${v}_CFLAGS = \$(COMMON_CFLAGS)"
    put "${v}_LDFLAGS = $not_installed"
    case $t in
    tests/*)
        put "${v}_CPPFLAGS = \$(COMMON_CPPFLAGS) -I\$(srcdir)/tests"
        put "${v}_LDADD = tests/support/libsupport.la libstrata.la -lpthread" ;;
    *)
        put "${v}_CPPFLAGS = \$(COMMON_CPPFLAGS)"
        put "${v}_LDADD = libstrata.la" ;;
    esac
done
# The verbs suite: programs on libibverbs alone.
put "VERBS_SUPPORT = $(files tests/verbs/support/*.c tests/verbs/support/*.h tests/verbs/differences.h)"
put "if HAVE_VERBS_SUITE"
for t in tests/verbs/suite/*.c; do
    [ -f "$t" ] || continue
    p=${t%.c} v=$(var "${t%.c}")
    put "check_PROGRAMS += $p"
    put "${v}_SOURCES = $t"
    put "${v}_CPPFLAGS = \$(VERBS_SUITE_CPPFLAGS)"
    put "${v}_CFLAGS = \$(COMMON_CFLAGS)"
    put "${v}_LDADD = \$(VERBS_SUITE_LDADD)"
done
put "endif"
put "EMBED_OPENMPI_SOURCES = $(files embed/openmpi/*.c embed/openmpi/*.h)"
# Tools that are scripts.
for t in tools/strata-*; do
    if [ -f "$t" ]; then put "dist_bin_SCRIPTS += $t"; fi
done
# MPI programs, for the compiler of the Open MPI that is installed (rules: tests/embed/embed.mk).
put "EMBED_MPI = $(files tests/embed/programs/*.c | sed 's/\.c\b//g')"
for t in tests/embed/programs/*.c; do
    [ -f "$t" ] || continue
    put "${t%.c}: $t tests/embed/programs/support.h tests/embed/programs/sent_messages.h"
    put "	\$(EMBED_COMPILE)"
done
put "dist_doc_DATA = $(files docs/*.md)"
put "docexamplesdir = \$(docdir)/examples"
put "dist_docexamples_DATA = $(files docs/examples/*)"
for dir in docs/examples/*/; do
    dir=${dir%/} name=$(var "$(basename "${dir%/}")")
    put "docexample_${name}dir = \$(docdir)/examples/$(basename "$dir")"
    put "dist_docexample_${name}_DATA = $(files "$dir"/*.[ch] "$dir"/*.cc "$dir"/*.py "$dir"/*.md "$dir"/Makefile)"
done
put "dist_man_MANS += $(files docs/man/*.1 docs/man/*.5 docs/man/*.7)"
put "EXTRA_DIST += $(find docs tests tools -type f ! -name '*_test.c' ! -name '*.o' ! -path 'docs/man/*' \
    \( -name '*.md' -o -name '*.svg' -o -name '*.sh' -o -name '*.in' -o -name '*.py' -o -name 'Makefile*' -o -path 'docs/examples/*/*' \
    -o -path 'tests/fake_component/*' -o -path 'tests/embed/programs/*' -o -path 'tests/*/data/*' -o -path 'tests/embed/programs/*' -o -path 'tools/*/twin/*' \) 2>/dev/null |
    sort -u | tr '\n' ' ')"

for pair in "$new_am:$am" "$new_m4:$m4"; do
    cmp -s "${pair%%:*}" "${pair##*:}" 2>/dev/null || cp "${pair%%:*}" "${pair##*:}"
done
