# Programs on libibverbs or librdmacm alone that forge connection datagrams (faults_long_test.sh) and requests of
# librdmacm (connect_guest_test.sh).
if HAVE_VERBS_SUITE
check_PROGRAMS += tests/openib/forger tests/openib/cm_forger
endif
tests_openib_cm_forger_SOURCES = tests/openib/cm_forger.c
tests_openib_cm_forger_CPPFLAGS = $(btl_openib_CPPFLAGS)
tests_openib_cm_forger_CFLAGS = $(COMMON_CFLAGS)
tests_openib_cm_forger_LDADD = $(btl_openib_LIBS)
tests_openib_forger_SOURCES = tests/openib/forger.c
tests_openib_forger_CFLAGS = $(COMMON_CFLAGS)
tests_openib_forger_LDADD = -libverbs
# Preloaded by settings_test.sh and address_guest_test.sh.
if HAVE_VERBS_SUITE
check_LTLIBRARIES += tests/openib/path_teller.la
endif
tests_openib_path_teller_la_SOURCES = tests/openib/path_teller.c
tests_openib_path_teller_la_CFLAGS = $(COMMON_CFLAGS)
tests_openib_path_teller_la_LDFLAGS = -module -avoid-version -rpath /nowhere
tests_openib_path_teller_la_LIBADD = -libverbs -ldl
EXTRA_DIST += tests/openib/openib_tests.mk tests/openib/caller.py tests/openib/report.py
