# Programs on libibverbs or librdmacm alone that forge connection datagrams (failure/faults_long_test.sh) and requests of
# librdmacm (connect/methods_guest_test.sh).
if HAVE_VERBS_SUITE
check_PROGRAMS += tests/openib/connect/forge_datagrams tests/openib/connect/forge_cm
endif
tests_openib_connect_forge_cm_SOURCES = tests/openib/connect/forge_cm.c
tests_openib_connect_forge_cm_CPPFLAGS = $(btl_openib_CPPFLAGS)
tests_openib_connect_forge_cm_CFLAGS = $(COMMON_CFLAGS)
tests_openib_connect_forge_cm_LDADD = $(btl_openib_LIBS)
tests_openib_connect_forge_datagrams_SOURCES = tests/openib/connect/forge_datagrams.c
tests_openib_connect_forge_datagrams_CFLAGS = $(COMMON_CFLAGS)
tests_openib_connect_forge_datagrams_LDADD = -libverbs
# Preloaded by connect/parameters_test.sh and failover/address_change_guest_test.sh.
if HAVE_VERBS_SUITE
check_LTLIBRARIES += tests/openib/connect/print_path.la
endif
tests_openib_connect_print_path_la_SOURCES = tests/openib/connect/print_path.c
tests_openib_connect_print_path_la_CFLAGS = $(COMMON_CFLAGS)
tests_openib_connect_print_path_la_LDFLAGS = -module -avoid-version -rpath /nowhere
tests_openib_connect_print_path_la_LIBADD = -libverbs -ldl
# Preloaded by connect/forged_rings_test.sh.
if HAVE_VERBS_SUITE
check_LTLIBRARIES += tests/openib/connect/forge_rings.la
endif
tests_openib_connect_forge_rings_la_SOURCES = tests/openib/connect/forge_rings.c
tests_openib_connect_forge_rings_la_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/components/btl_openib $(btl_openib_CPPFLAGS)
tests_openib_connect_forge_rings_la_CFLAGS = $(COMMON_CFLAGS)
tests_openib_connect_forge_rings_la_LDFLAGS = -module -avoid-version -rpath /nowhere
tests_openib_connect_forge_rings_la_LIBADD = -libverbs -ldl
EXTRA_DIST += tests/openib/openib_tests.mk tests/openib/connect/forge_frames.py tests/openib/report.py
