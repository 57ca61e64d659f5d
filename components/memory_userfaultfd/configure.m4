AC_CHECK_DECL([UFFD_FEATURE_EVENT_UNMAP], [], [component_ok=no], [[#include <linux/userfaultfd.h>]])
AC_CHECK_DECL([UFFDIO_WRITEPROTECT], [], [component_ok=no], [[#include <linux/userfaultfd.h>]])
memory_userfaultfd_LIBS="-lpthread"
