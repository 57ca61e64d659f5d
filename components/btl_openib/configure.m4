dnl btl_openib needs libibverbs of rdma-core; it connects by librdmacm, too, where that is there.
AC_CHECK_HEADER([infiniband/verbs.h], [], [component_ok=no])
btl_openib_LIBS="-libverbs"
AS_IF([test $component_ok = no],
    [AC_MSG_WARN([infiniband/verbs.h not found (Debian: libibverbs-dev): btl_openib is not built])],
    [AC_CHECK_HEADER([rdma/rdma_cma.h],
        [AC_CHECK_LIB([rdmacm], [rdma_establish],
            [btl_openib_CPPFLAGS="-DHAVE_RDMACM"
             btl_openib_LIBS="-lrdmacm -libverbs"], [], [-libverbs])])
     AS_IF([test -z "$btl_openib_CPPFLAGS"],
        [AC_MSG_NOTICE([librdmacm not found (Debian: librdmacm-dev): btl_openib connects by ud and tcp only])])])
dnl How far devices are; configure has found hwloc.
btl_openib_CPPFLAGS="$btl_openib_CPPFLAGS $HWLOC_CFLAGS"
btl_openib_LIBS="$btl_openib_LIBS $HWLOC_LIBS"
