dnl The twins of strata-perf channel over ZeroMQ and NNG, each where its library is.
PKG_CHECK_MODULES([ZMQ], [libzmq], [have_zmq=yes], [have_zmq=no])
AM_CONDITIONAL([HAVE_ZMQ], [test $have_zmq = yes])
have_nng=no
AC_CHECK_HEADER([nng/nng.h], [AC_CHECK_LIB([nng], [nng_push0_open], [have_nng=yes])])
AM_CONDITIONAL([HAVE_NNG], [test $have_nng = yes])
