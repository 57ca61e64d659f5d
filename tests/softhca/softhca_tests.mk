# The fuzzers of softhca: programs on libibverbs that know its shared memory. tests/softhca/README.md.
EXTRA_DIST += tests/softhca/softhca_tests.mk tests/softhca/fuzz/corpus/shared.txt tests/softhca/fuzz/corpus/control.txt
FUZZ_SOURCES = tests/softhca/fuzz/fuzz.h tests/softhca/fuzz/ends.c tests/softhca/fuzz/scribble.c \
	tests/softhca/fuzz/requests.c tests/softhca/fuzz/hostile.c tests/softhca/fuzz/fake.c tests/softhca/fuzz/victim.c \
	softhca/names.c
if HAVE_VERBS_SUITE
check_PROGRAMS += tests/softhca/fuzz/shared_fuzz tests/softhca/fuzz/control_fuzz tests/softhca/faults/faults tests/softhca/faults/limits tests/softhca/faults/ports tests/softhca/faults/pages tests/softhca/faults/counted_faults \
	tests/softhca/device/short_messages tests/softhca/device/short_writes tests/softhca/faults/pid_reuse tests/softhca/faults/stopped_writer tests/softhca/faults/slow_owner tests/softhca/faults/stuck_watcher tests/softhca/faults/remap_race \
	tests/softhca/costs/calls tests/softhca/costs/data tests/softhca/costs/engine \
	tests/softhca/device/two_devices tests/softhca/device/refuse tests/softhca/manager/manager tests/softhca/fuzz/manager_fuzz
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
tests_softhca_device_short_messages_SOURCES = tests/softhca/device/short_messages.c tests/softhca/device/own_segment.h
tests_softhca_device_short_messages_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_device_short_messages_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_device_short_messages_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_device_short_writes_SOURCES = tests/softhca/device/short_writes.c tests/softhca/device/own_segment.h
tests_softhca_device_short_writes_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_device_short_writes_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_device_short_writes_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_costs_calls_SOURCES = tests/softhca/costs/calls.c tests/softhca/costs/counts.h tests/softhca/device/own_segment.h softhca/cost_keys.c
tests_softhca_costs_calls_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_costs_calls_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_costs_calls_LDADD = $(VERBS_SUITE_LDADD) -lpthread
tests_softhca_costs_data_SOURCES = tests/softhca/costs/data.c tests/softhca/costs/counts.h tests/softhca/device/own_segment.h softhca/cost_keys.c
tests_softhca_costs_data_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_costs_data_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_costs_data_LDADD = $(VERBS_SUITE_LDADD) -lpthread
tests_softhca_costs_engine_SOURCES = tests/softhca/costs/engine.c tests/softhca/costs/counts.h tests/softhca/device/own_segment.h softhca/cost_keys.c
tests_softhca_costs_engine_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_costs_engine_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_costs_engine_LDADD = $(VERBS_SUITE_LDADD) -lpthread
tests_softhca_faults_counted_faults_SOURCES = tests/softhca/faults/counted_faults.c tests/softhca/faults/control.h softhca/names.c
tests_softhca_faults_counted_faults_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_counted_faults_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_counted_faults_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_faults_SOURCES = tests/softhca/faults/faults.c tests/softhca/faults/control.h tests/softhca/faults/steps.h softhca/names.c
tests_softhca_faults_faults_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_faults_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_faults_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_limits_SOURCES = tests/softhca/faults/limits.c tests/softhca/faults/control.h tests/softhca/faults/steps.h softhca/names.c
tests_softhca_faults_limits_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_limits_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_limits_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_ports_SOURCES = tests/softhca/faults/ports.c tests/softhca/faults/control.h tests/softhca/faults/steps.h softhca/names.c
tests_softhca_faults_ports_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_ports_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_ports_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_pages_SOURCES = tests/softhca/faults/pages.c tests/softhca/faults/control.h softhca/names.c
tests_softhca_faults_pages_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_pages_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_pages_LDADD = $(VERBS_SUITE_LDADD)

tests_softhca_faults_pid_reuse_SOURCES = tests/softhca/faults/pid_reuse.c tests/softhca/faults/side.h
tests_softhca_faults_pid_reuse_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_pid_reuse_LDADD = $(VERBS_SUITE_LIBS)
tests_softhca_faults_stopped_writer_SOURCES = tests/softhca/faults/stopped_writer.c tests/softhca/faults/side.h
tests_softhca_faults_stopped_writer_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_stopped_writer_LDADD = $(VERBS_SUITE_LIBS)
tests_softhca_faults_slow_owner_SOURCES = tests/softhca/faults/slow_owner.c tests/softhca/faults/side.h tests/softhca/device/own_segment.h
tests_softhca_faults_slow_owner_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_slow_owner_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_slow_owner_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_stuck_watcher_SOURCES = tests/softhca/faults/stuck_watcher.c tests/softhca/faults/side.h \
	tests/softhca/device/own_segment.h
tests_softhca_faults_stuck_watcher_CPPFLAGS = -I$(srcdir) $(VERBS_SUITE_CPPFLAGS)
tests_softhca_faults_stuck_watcher_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_stuck_watcher_LDADD = $(VERBS_SUITE_LDADD)
tests_softhca_faults_stuck_watcher_LDFLAGS = $(COMMON_LDFLAGS) -export-dynamic
tests_softhca_faults_remap_race_SOURCES = tests/softhca/faults/remap_race.c tests/softhca/faults/side.h
tests_softhca_faults_remap_race_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_faults_remap_race_LDADD = $(VERBS_SUITE_LIBS) -lpthread
tests_softhca_device_two_devices_SOURCES = tests/softhca/device/two_devices.c
tests_softhca_device_two_devices_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_device_two_devices_LDADD = $(VERBS_SUITE_LIBS)
tests_softhca_device_refuse_SOURCES = tests/softhca/device/refuse.c
tests_softhca_device_refuse_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_manager_manager_SOURCES = tests/softhca/manager/manager.c tests/softhca/manager/cases.h \
	tests/softhca/manager/ports.c
tests_softhca_manager_manager_CPPFLAGS = -I$(srcdir) $(btl_openib_CPPFLAGS)
tests_softhca_manager_manager_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_manager_manager_LDADD = $(btl_openib_LIBS) -lpthread
tests_softhca_fuzz_manager_fuzz_SOURCES = tests/softhca/fuzz/manager_fuzz.c softhca/names.c
tests_softhca_fuzz_manager_fuzz_CPPFLAGS = -I$(srcdir)
tests_softhca_fuzz_manager_fuzz_CFLAGS = $(COMMON_CFLAGS)

# Preloaded by tests of Open MPI. Modules are only built with an -rpath; nothing is installed.
check_LTLIBRARIES += tests/softhca/programs/yield_sleeps.la
tests_softhca_programs_yield_sleeps_la_SOURCES = tests/softhca/programs/yield_sleeps.c
tests_softhca_programs_yield_sleeps_la_CFLAGS = $(COMMON_CFLAGS)
tests_softhca_programs_yield_sleeps_la_LDFLAGS = -module -avoid-version -rpath /nowhere
