dnl Is there an Open MPI whose internal headers are installed, of a version that embed/openmpi/compat.h knows?
AC_ARG_ENABLE([embed-openmpi],
    [AS_HELP_STRING([--disable-embed-openmpi], [do not build the plugin for Open MPI])],
    [], [enable_embed_openmpi=auto])
OPENMPI_CPPFLAGS=
OPENMPI_VERSION=none
embed_openmpi=no
AC_MSG_CHECKING([for Open MPI's internal headers])
AS_IF([test "x$enable_embed_openmpi" = xno], [embed_openmpi_why="disabled"],
    [test -z "$MPICC_OPENMPI"], [embed_openmpi_why="no mpicc.openmpi"],
    [case $enable_sanitizers in
     no) for dir in $($MPICC_OPENMPI --showme:incdirs); do
             OPENMPI_CPPFLAGS="$OPENMPI_CPPFLAGS -isystem $dir"
         done
         OPENMPI_VERSION=$($MPICC_OPENMPI --showme:version |
             sed -n 's/.*Open MPI \([[0-9]][[0-9]]*\.[[0-9]][[0-9]]*\).*/\1/p')
         AS_CASE([$OPENMPI_VERSION],
             [4.1], [saved_CPPFLAGS=$CPPFLAGS
                 CPPFLAGS="$CPPFLAGS $OPENMPI_CPPFLAGS"
                 AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include "ompi_config.h"
#include "ompi/mca/pml/pml.h"]])], [embed_openmpi=yes], [embed_openmpi_why="they are not installed"])
                 CPPFLAGS=$saved_CPPFLAGS],
             [embed_openmpi_why="version $OPENMPI_VERSION is not supported"]) ;;
     *) embed_openmpi_why="mpirun's programs are not built with sanitizers, so their plugins cannot be" ;;
     esac])
AS_IF([test $embed_openmpi = yes], [AC_MSG_RESULT([$OPENMPI_VERSION])],
    [AC_MSG_RESULT([no: $embed_openmpi_why; the plugin for Open MPI is not built])])
AS_IF([test "x$enable_embed_openmpi" = xyes && test $embed_openmpi = no],
    [AC_MSG_ERROR([--enable-embed-openmpi: $embed_openmpi_why])])
AC_SUBST([OPENMPI_CPPFLAGS])
AC_SUBST([OPENMPI_VERSION])
AM_CONDITIONAL([BUILD_EMBED_OPENMPI], [test $embed_openmpi = yes])
