dnl The suite needs libibverbs; without it nothing of this folder is built.
PKG_CHECK_MODULES([VERBS_SUITE], [libibverbs], [have_verbs_suite=yes], [have_verbs_suite=no])
AM_CONDITIONAL([HAVE_VERBS_SUITE], [test "x$have_verbs_suite" = xyes && test "x$have_check" = xyes])
