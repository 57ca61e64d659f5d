dnl btl_openib needs libibverbs of rdma-core.
AC_CHECK_HEADER([infiniband/verbs.h], [], [component_ok=no])
btl_openib_LIBS="-libverbs"
AS_IF([test $component_ok = no],
    [AC_MSG_WARN([infiniband/verbs.h not found (Debian: libibverbs-dev): btl_openib is not built])])
