# The verbs conformance suite: one program for each file of tests/verbs/suite, named in config/discovered.am. It uses nothing of
# Strata's library. `make check` builds it and runs it on softhca; `make check-guest` on Soft-RoCE in a guest.
if HAVE_VERBS_SUITE
check_LTLIBRARIES += tests/verbs/libverbs_support.la
endif
tests_verbs_libverbs_support_la_SOURCES = $(VERBS_SUPPORT)
tests_verbs_libverbs_support_la_CPPFLAGS = $(VERBS_SUITE_CPPFLAGS)
tests_verbs_libverbs_support_la_CFLAGS = $(COMMON_CFLAGS)
VERBS_SUITE_CPPFLAGS = -I$(srcdir)/tests/verbs $(CHECK_CFLAGS) $(VERBS_SUITE_CFLAGS)
VERBS_SUITE_LDADD = tests/verbs/libverbs_support.la $(VERBS_SUITE_LIBS) $(CHECK_LIBS) -lpthread
EXTRA_DIST += tests/verbs/verbs.mk tests/verbs/configure.m4
