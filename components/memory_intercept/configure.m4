dnl dladdr1, LIBC_SO and the calls that are watched are the GNU C library's.
AC_CHECK_HEADER([gnu/lib-names.h], [], [component_ok=no])
memory_intercept_LIBS="-ldl -lpthread"
