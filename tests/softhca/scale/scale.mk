# The program of scale_test.sh and scale_long_test.sh: on libibverbs alone, with softhca preloaded by the scripts.
if HAVE_VERBS_SUITE
check_PROGRAMS += tests/softhca/scale/scale
endif
tests_softhca_scale_scale_SOURCES = tests/softhca/scale/scale.c tests/softhca/scale/scale_process.c tests/softhca/scale/scale.h
tests_softhca_scale_scale_CPPFLAGS = $(VERBS_SUITE_CFLAGS)
tests_softhca_scale_scale_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_scale_scale_LDADD = $(VERBS_SUITE_LIBS)
EXTRA_DIST += tests/softhca/scale/scale.mk
