dnl Are the headers of libibverbs here, of a version that has all that softhca stands in for?
AC_ARG_ENABLE([softhca],
    [AS_HELP_STRING([--disable-softhca], [do not build libsofthca, verbs devices in user space])],
    [], [enable_softhca=auto])
build_softhca=no
AS_IF([test "x$enable_softhca" != xno],
    [AC_CHECK_DECL([ibv_query_qp_data_in_order], [build_softhca=yes], [], [[#include <infiniband/verbs.h>]])
     AS_IF([test $build_softhca = no],
         [AS_IF([test "x$enable_softhca" = xyes],
              [AC_MSG_ERROR([--enable-softhca: infiniband/verbs.h of rdma-core 41 or later not found; on Debian: apt-get install libibverbs-dev])],
              [AC_MSG_WARN([infiniband/verbs.h of rdma-core 41 or later not found (Debian: libibverbs-dev): libsofthca is not built])])])])
AM_CONDITIONAL([BUILD_SOFTHCA], [test $build_softhca = yes])
