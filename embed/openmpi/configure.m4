dnl Which Open MPIs get a plugin, one folder for each version: those of --with-openmpi=PREFIX, and the one that
dnl mpicc.openmpi belongs to. What is needed are internal headers, of a version that embed/openmpi/compat.h knows.
AC_ARG_ENABLE([embed-openmpi],
    [AS_HELP_STRING([--disable-embed-openmpi], [do not build the plugin for Open MPI])],
    [], [enable_embed_openmpi=auto])
AC_ARG_WITH([openmpi],
    [AS_HELP_STRING([--with-openmpi=PREFIX],
        [build the plugin for the Open MPI 4.1 or 5.0 that is installed in PREFIX; may be given once for each version])],
    [], [with_openmpi=])
AC_ARG_WITH([openmpi-source],
    [AS_HELP_STRING([--with-openmpi-source=SOURCE[:BUILD]],
        [source and build trees of an Open MPI of --with-openmpi that was installed without its internal headers])],
    [], [with_openmpi_source=])
AC_PROG_CPP
OPENMPI_4_1_CPPFLAGS= OPENMPI_5_0_CPPFLAGS=
have_openmpi_4_1=no have_openmpi_5_0=no

dnl Sets openmpi_version, openmpi_cppflags, and openmpi_why when $1, a compiler wrapper of Open MPI, cannot be built for.
openmpi_look() {
    openmpi_why='' openmpi_cppflags='' openmpi_version=''
    openmpi_mpicc=$[]1
    test -x "$openmpi_mpicc" || command -v "$openmpi_mpicc" >/dev/null 2>&1 || {
        openmpi_why="there is no $openmpi_mpicc"
        return
    }
    openmpi_version=$($openmpi_mpicc --showme:version 2>/dev/null |
        sed -n 's/.*Open MPI v*\([[0-9]][[0-9]]*\.[[0-9]][[0-9]]*\).*/\1/p')
    case $openmpi_version in
    4.1 | 5.0) ;;
    '') openmpi_why="$openmpi_mpicc is not Open MPI's"; return ;;
    *) openmpi_why="version $openmpi_version is not supported"; return ;;
    esac
    for openmpi_dir in $($openmpi_mpicc --showme:incdirs); do
        openmpi_cppflags="$openmpi_cppflags -isystem $openmpi_dir"
        test ! -d "$openmpi_dir/openmpi/opal" || openmpi_cppflags="$openmpi_cppflags -isystem $openmpi_dir/openmpi"
    done
    openmpi_headers && return
    test -z "$with_openmpi_source" || {
        openmpi_source=${with_openmpi_source%%:*} openmpi_build=${with_openmpi_source#*:}
        openmpi_cppflags=
        for openmpi_dir in "$openmpi_build" "$openmpi_source"; do
            openmpi_cppflags="$openmpi_cppflags -isystem $openmpi_dir -isystem $openmpi_dir/opal/include"
            openmpi_cppflags="$openmpi_cppflags -isystem $openmpi_dir/ompi/include -isystem $openmpi_dir/orte/include"
        done
        openmpi_headers && return
    }
    case $openmpi_version in
    4.1) openmpi_why="its internal headers are not installed (Debian: libopenmpi-dev; else --with-devel-headers of its configure)" ;;
    *) openmpi_why="its internal headers are not all installed, even by --with-devel-headers of its configure; --with-openmpi-source=SOURCE:BUILD names its trees" ;;
    esac
}

dnl Whether the headers are found, of the version that the wrapper has. 5.0 wants those of PMIx besides.
openmpi_headers() {
    openmpi_saved=$CPPFLAGS
    test "$openmpi_version" = 4.1 || openmpi_cppflags="$openmpi_cppflags $(pkg-config --cflags-only-I pmix 2>/dev/null | sed 's/-I */-isystem /g')"
    CPPFLAGS="$CPPFLAGS $openmpi_cppflags"
    openmpi_found=no
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "ompi_config.h"
#include "ompi/mca/pml/pml.h"
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#endif
openmpi is OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION]])], [openmpi_found=yes])
    CPPFLAGS=$openmpi_saved
    test $openmpi_found = yes
}

openmpi_prefixes=
eval "set openmpi $ac_configure_args"
shift
for openmpi_arg; do
    case $openmpi_arg in --with-openmpi=*) openmpi_prefixes="$openmpi_prefixes ${openmpi_arg#*=}" ;; esac
done
case $enable_sanitizers in
no) openmpi_reason= ;;
*) openmpi_reason="mpirun's programs are not built with sanitizers, so their plugins cannot be" ;;
esac
test "x$enable_embed_openmpi" != xno || openmpi_reason=disabled
for openmpi_prefix in $openmpi_prefixes default; do
    AC_MSG_CHECKING([for Open MPI's internal headers ($openmpi_prefix)])
    AS_IF([test -n "$openmpi_reason"], [openmpi_why=$openmpi_reason],
        [test "$openmpi_prefix" != default], [openmpi_look "$openmpi_prefix/bin/mpicc"],
        [test -n "$MPICC_OPENMPI"], [openmpi_look "$MPICC_OPENMPI"],
        [openmpi_why="no mpicc.openmpi"])
    AS_IF([test -z "$openmpi_why"],
        [AC_MSG_RESULT([$openmpi_version])
         AS_CASE([$openmpi_version,$have_openmpi_4_1,$have_openmpi_5_0],
            [4.1,no,*], [have_openmpi_4_1=yes OPENMPI_4_1_CPPFLAGS=$openmpi_cppflags],
            [5.0,*,no], [have_openmpi_5_0=yes OPENMPI_5_0_CPPFLAGS=$openmpi_cppflags],
            [test "$openmpi_prefix" = default ||
                AC_MSG_ERROR([--with-openmpi=$openmpi_prefix: another one has version $openmpi_version already])])],
        [AC_MSG_RESULT([no: $openmpi_why; the plugin for this Open MPI is not built])
         AS_IF([test "$openmpi_prefix" != default && test "$openmpi_reason" != disabled],
            [AC_MSG_ERROR([--with-openmpi=$openmpi_prefix: $openmpi_why])],
            [test "x$enable_embed_openmpi" = xyes && test "$have_openmpi_4_1$have_openmpi_5_0" = nono],
            [AC_MSG_ERROR([--enable-embed-openmpi: $openmpi_why])])])
done
AC_SUBST([OPENMPI_4_1_CPPFLAGS])
AC_SUBST([OPENMPI_5_0_CPPFLAGS])
AM_CONDITIONAL([BUILD_EMBED_OPENMPI], [test $have_openmpi_4_1 = yes])
AM_CONDITIONAL([BUILD_EMBED_OPENMPI_5_0], [test $have_openmpi_5_0 = yes])
