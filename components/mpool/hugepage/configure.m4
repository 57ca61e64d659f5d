dnl mpool_hugepage finds NUMA nodes by hwloc, which strata-run needs anyway.
mpool_hugepage_CPPFLAGS='$(HWLOC_CFLAGS)'
mpool_hugepage_LIBS='$(HWLOC_LIBS)'
