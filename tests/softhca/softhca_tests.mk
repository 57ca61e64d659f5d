# The fuzzers of softhca: programs on libibverbs that know its shared memory. tests/softhca/README.md.
EXTRA_DIST += tests/softhca/softhca_tests.mk tests/softhca/corpus/shared.txt tests/softhca/corpus/control.txt
FUZZ_SOURCES = tests/softhca/fuzz/fuzz.h tests/softhca/fuzz/ends.c tests/softhca/fuzz/scribble.c \
	tests/softhca/fuzz/requests.c tests/softhca/fuzz/hostile.c tests/softhca/fuzz/fake.c tests/softhca/fuzz/victim.c \
	softhca/names.c
if HAVE_VERBS_SUITE
check_PROGRAMS += tests/softhca/fuzz/shared_fuzz tests/softhca/fuzz/control_fuzz tests/softhca/faults tests/softhca/counted \
	tests/softhca/parcels tests/softhca/pid_reuse tests/softhca/held_up tests/softhca/mapped_anew \
	tests/softhca/two_devices tests/softhca/manager tests/softhca/fuzz/manager_fuzz
endif
tests_softhca_fuzz_shared_fuzz_SOURCES = tests/softhca/fuzz/shared_fuzz.c $(FUZZ_SOURCES)
tests_softhca_fuzz_shared_fuzz_CPPFLAGS = -I$(srcdir)
tests_softhca_fuzz_shared_fuzz_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_fuzz_shared_fuzz_LDADD = $(VERBS_SUITE_LIBS) -lpthread
tests_softhca_fuzz_control_fuzz_SOURCES = tests/softhca/fuzz/control_fuzz.c tests/softhca/fuzz/fuzz.h \
	tests/softhca/fuzz/ends.c tests/softhca/fuzz/requests.c softhca/names.c
tests_softhca_fuzz_control_fuzz_CPPFLAGS = -I$(srcdir)
tests_softhca_fuzz_control_fuzz_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_fuzz_control_fuzz_LDADD = $(VERBS_SUITE_LIBS) -lpthread

# Programs of the verbs suite, for softhca alone.
tests_softhca_parcels_SOURCES = tests/softhca/parcels.c
tests_softhca_parcels_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_parcels_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_parcels_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_counted_SOURCES = tests/softhca/counted.c tests/softhca/control.h softhca/names.c
tests_softhca_counted_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_counted_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_counted_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_SOURCES = tests/softhca/faults.c tests/softhca/control.h softhca/names.c
tests_softhca_faults_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_LDADD = $(VERBS_SUITE_LDADD)

tests_softhca_pid_reuse_SOURCES = tests/softhca/pid_reuse.c tests/softhca/side.h
tests_softhca_pid_reuse_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_pid_reuse_LDADD = $(VERBS_SUITE_LIBS)
tests_softhca_held_up_SOURCES = tests/softhca/held_up.c tests/softhca/side.h
tests_softhca_held_up_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_held_up_LDADD = $(VERBS_SUITE_LIBS)
tests_softhca_mapped_anew_SOURCES = tests/softhca/mapped_anew.c tests/softhca/side.h
tests_softhca_mapped_anew_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_mapped_anew_LDADD = $(VERBS_SUITE_LIBS) -lpthread
tests_softhca_two_devices_SOURCES = tests/softhca/two_devices.c
tests_softhca_two_devices_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_two_devices_LDADD = $(VERBS_SUITE_LIBS)
tests_softhca_manager_SOURCES = tests/softhca/manager.c
tests_softhca_manager_CPPFLAGS = $(btl_openib_CPPFLAGS)
tests_softhca_manager_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_manager_LDADD = $(btl_openib_LIBS) -lpthread
tests_softhca_fuzz_manager_fuzz_SOURCES = tests/softhca/fuzz/manager_fuzz.c softhca/names.c
tests_softhca_fuzz_manager_fuzz_CPPFLAGS = -I$(srcdir)
tests_softhca_fuzz_manager_fuzz_CFLAGS = $(COMMON_CFLAGS)

# Preloaded by tests of Open MPI. Modules are only built with an -rpath; nothing is installed.
check_LTLIBRARIES += tests/softhca/yield_sleeps.la
tests_softhca_yield_sleeps_la_SOURCES = tests/softhca/yield_sleeps.c
tests_softhca_yield_sleeps_la_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_yield_sleeps_la_LDFLAGS = -module -avoid-version -rpath /nowhere
