dnl strata-miba needs libibverbs, and takes librdmacm where it is there.
PKG_CHECK_MODULES([MIBA_VERBS], [libibverbs], [build_miba=yes],
    [build_miba=no
     AC_MSG_WARN([libibverbs not found (Debian: libibverbs-dev): strata-miba is not built])])
PKG_CHECK_MODULES([MIBA_RDMACM], [librdmacm],
    [AC_DEFINE([HAVE_MIBA_RDMACM], [1], [Whether strata-miba has librdmacm])], [MIBA_RDMACM_LIBS=])
AM_CONDITIONAL([BUILD_MIBA], [test $build_miba = yes])
