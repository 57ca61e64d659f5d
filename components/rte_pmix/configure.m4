dnl rte_pmix speaks PMIx to the launcher. PMIX_CFLAGS and PMIX_LIBS come from configure.ac's pkg-config check.
rte_pmix_CPPFLAGS="$PMIX_CFLAGS"
rte_pmix_LIBS="$PMIX_LIBS -lpthread -ldl"
