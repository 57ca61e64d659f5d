# A program on libibverbs alone that forges connection datagrams: faults_long_test.sh.
if HAVE_VERBS_SUITE
check_PROGRAMS += tests/openib/forger
endif
tests_openib_forger_SOURCES = tests/openib/forger.c
tests_openib_forger_CFLAGS = $(COMMON_CFLAGS)
tests_openib_forger_LDADD = -libverbs
EXTRA_DIST += tests/openib/openib_tests.mk tests/openib/caller.py
