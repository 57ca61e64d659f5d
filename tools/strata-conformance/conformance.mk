# strata-conformance shares its cases with the test programs: those of tests/support, and the suites of tests/conformance whose
# file ends in OVER_SUITE. It uses no Check. Its own sources are found by config/discover.sh.
strata_conformance_SOURCES += $(CLIENT_SUITE_SOURCES)
strata_conformance_CPPFLAGS += -I$(srcdir)/tests -DOVER_COLLECTED -DCLIENT_SUITES='$(CLIENT_SUITES)'
strata_conformance_LIBS = tests/support/libsupport.la
EXTRA_DIST += tools/strata-conformance/conformance.mk
