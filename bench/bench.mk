# Benchmarks of the build tree: make bench runs them all, into one text.
EXTRA_PROGRAMS = bench/instructions bench/rcache
bench_instructions_SOURCES = bench/instructions.c
bench_instructions_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tests
bench_instructions_CFLAGS = $(COMMON_CFLAGS)
bench_instructions_LDADD = tests/support/libsupport.la libstrata.la -lpthread
bench_rcache_SOURCES = bench/rcache.c
bench_rcache_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tests
bench_rcache_CFLAGS = $(COMMON_CFLAGS)
bench_rcache_LDADD = tests/support/libsupport.la libstrata.la -lpthread
# Over each library, as the twins of strata-perf are (tools/mpi-twin/twin.mk).
EXTRA_PROGRAMS += bench/turns
bench_turns_SOURCES = bench/turns.c
bench_turns_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tools/strata-perf
bench_turns_CFLAGS = $(COMMON_CFLAGS)
bench_turns_LDADD = libstrata.la
BENCH_TURNS = bench/turns
if HAVE_MPICC_OPENMPI
BENCH_TURNS += bench/turns.openmpi
endif
if HAVE_MPICC_MPICH
BENCH_TURNS += bench/turns.mpich
endif
CLEANFILES += bench/turns.openmpi bench/turns.mpich
bench/turns.openmpi: bench/turns.c tools/mpi-twin/port_mpi.h
	@$(MKDIR_P) bench
	$(AM_V_CCLD)$(MPICC_OPENMPI) $(twin_flags) -DMPI_TWIN -o $@ $(srcdir)/bench/turns.c
bench/turns.mpich: bench/turns.c tools/mpi-twin/port_mpi.h
	@$(MKDIR_P) bench
	$(AM_V_CCLD)$(MPICC_MPICH) $(twin_flags) -DMPI_TWIN -o $@ $(srcdir)/bench/turns.c
EXTRA_PROGRAMS += bench/memory
bench_memory_SOURCES = bench/memory.c
bench_memory_CPPFLAGS = $(COMMON_CPPFLAGS)
bench_memory_CFLAGS = $(COMMON_CFLAGS)
bench_memory_LDADD = libstrata.la -lpthread
if BUILD_btl_sm
BENCH_SM_FRAGMENTS = bench/sm_fragments
EXTRA_PROGRAMS += bench/sm_fragments
endif
bench_sm_fragments_SOURCES = bench/sm_fragments.c
bench_sm_fragments_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tests
bench_sm_fragments_CFLAGS = $(COMMON_CFLAGS)
bench_sm_fragments_LDADD = components/btl_sm/libbtl_sm.la libstrata.la -lpthread
# Preloaded by bench-regret and its test. Modules are only built with an -rpath; nothing is installed.
check_LTLIBRARIES += bench/slow_machine.la
bench_slow_machine_la_SOURCES = bench/slow_machine.c
bench_slow_machine_la_CFLAGS = $(COMMON_CFLAGS) -fno-builtin
bench_slow_machine_la_LDFLAGS = -module -avoid-version -rpath /nowhere
bench_slow_machine_la_LIBADD = -ldl
EXTRA_PROGRAMS += bench/promise_times bench/wake_floor
bench_wake_floor_SOURCES = bench/wake_floor.c
bench_wake_floor_CPPFLAGS = $(COMMON_CPPFLAGS)
bench_wake_floor_CFLAGS = $(COMMON_CFLAGS)
bench_wake_floor_LDADD =
EXTRA_PROGRAMS += bench/exchange
bench_exchange_SOURCES = bench/exchange.c tools/strata-perf/exchange.c tools/strata-perf/exchange.h \
	tools/strata-perf/exchange_ball.h tools/strata-perf/pair.c tools/strata-perf/pair.h
bench_exchange_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tools/strata-perf
bench_exchange_CFLAGS = $(COMMON_CFLAGS)
bench_exchange_LDADD = -lpthread
EXTRA_PROGRAMS += bench/warm_up
bench_warm_up_SOURCES = bench/warm_up.c
bench_warm_up_CPPFLAGS = $(COMMON_CPPFLAGS)
bench_warm_up_CFLAGS = $(COMMON_CFLAGS)
bench_warm_up_LDADD = libstrata.la
EXTRA_PROGRAMS += bench/late
bench_late_SOURCES = bench/late.c
bench_late_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tests
bench_late_CFLAGS = $(COMMON_CFLAGS)
bench_late_LDADD = tests/support/libsupport.la libstrata.la -lpthread
bench_promise_times_SOURCES = bench/promise_times.c
bench_promise_times_CPPFLAGS = $(COMMON_CPPFLAGS)
bench_promise_times_CFLAGS = $(COMMON_CFLAGS)
bench_promise_times_LDADD = libstrata.la
EXTRA_PROGRAMS += bench/eager_rdma bench/eager_polling
bench_eager_rdma_SOURCES = bench/eager_rdma.c
bench_eager_rdma_CPPFLAGS = $(COMMON_CPPFLAGS)
bench_eager_rdma_CFLAGS = $(COMMON_CFLAGS)
bench_eager_rdma_LDADD = libstrata.la
bench_eager_polling_SOURCES = bench/eager_polling.c
bench_eager_polling_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tests
bench_eager_polling_CFLAGS = $(COMMON_CFLAGS)
bench_eager_polling_LDADD = tests/support/libsupport.la libstrata.la -lpthread
EXTRA_PROGRAMS += bench/channel_threads
bench_channel_threads_SOURCES = bench/channel_threads.c
bench_channel_threads_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tests
bench_channel_threads_CFLAGS = $(COMMON_CFLAGS)
bench_channel_threads_LDADD = tests/support/libsupport.la libstrata.la -lpthread
# On libibverbs alone; softhca is preloaded.
if HAVE_VERBS_SUITE
BENCH_SOFTHCA = bench/softhca
BENCH_EAGER_DEVICE = bench/eager_device
EXTRA_PROGRAMS += bench/softhca bench/eager_device
endif
bench_eager_device_SOURCES = bench/eager_device.c
bench_eager_device_CPPFLAGS = $(VERBS_SUITE_CFLAGS)
bench_eager_device_CFLAGS = $(COMMON_CFLAGS)
bench_eager_device_LDADD = $(VERBS_SUITE_LIBS)
bench_softhca_SOURCES = bench/softhca.c
bench_softhca_CPPFLAGS = $(VERBS_SUITE_CFLAGS)
bench_softhca_CFLAGS = $(COMMON_CFLAGS)
bench_softhca_LDADD = $(VERBS_SUITE_LIBS)
EXTRA_DIST += bench/README.md bench/bench.mk bench/channel.sh bench/channel_threads.sh bench/coll.py bench/coll.sh bench/coll_apps.sh bench/coll_fft.c \
	bench/coll_page.py bench/coll_report.py bench/collectives.c bench/eager_rdma.sh bench/eager_rdma_applications.sh \
	bench/eager_rdma_page.py bench/embed.sh bench/exchange_states.py bench/gauge.py bench/instructions.sh bench/machine.py bench/median.h bench/memory.sh \
	bench/memscale.sh bench/memscale_report.py bench/miba.sh bench/miba_compare.py bench/miba_proof.py bench/npb.sh \
	bench/npb_eager.sh bench/openib.sh bench/openib_connect.sh bench/openib_cost.sh bench/promise_connect.sh bench/promises.sh bench/readme.py \
	bench/registered.sh bench/regret.py bench/regret_judge.py bench/regret_page.py bench/regret_ways.py bench/run.sh \
	bench/rxe_as_ib.c bench/softhca.sh bench/srq.sh bench/start.sh bench/steps.c bench/tcp_links.sh bench/threads.c \
	bench/threads.sh bench/warm_up.py
CLEANFILES += $(EXTRA_PROGRAMS) bench/rxe_as_ib.so bench/steps bench/results.txt

BENCH_ENVIRONMENT = $(AM_TESTS_ENVIRONMENT) BENCH_BUDGET='$(srcdir)/docs/design/instruction-budget.md'; \
	export BENCH_BUDGET;

bench-instructions: all bench/instructions
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/instructions.sh
bench-memory: all
	@$(BENCH_ENVIRONMENT) strata-perf compare --only start,memory --rounds 3
# Whole jobs of 64 ranks by strata-run, mpirun and srun.
bench-start: all docs/examples/hello
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/start.sh
# Strata under Open MPI against ob1: everything but the times of compare --embed is in bench/embed.sh.
bench-embed: all
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/embed.sh
# OPENIB: its arguments, such as `guest memory`.
bench-openib: all bench/instructions $(BENCH_TURNS) tests/programs/openib_memory
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/openib.sh $(OPENIB)
# Times that Strata promises, which no test judges.
bench-promises: all bench/promise_times bench/wake_floor $(check_PROGRAMS)
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/promises.sh
# What registering user memory costs.
bench-registered: all
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/registered.sh
bench-softhca: all $(BENCH_SOFTHCA)
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/softhca.sh
# What fragments and single copy of btl_sm take. SM: its arguments, such as `0 1 only=get`.
bench-sm-fragments: all $(BENCH_SM_FRAGMENTS)
	@$(BENCH_ENVIRONMENT) bench/sm_fragments $(SM)
# Known costs of softhca, perftest and qperf beside strata-miba, its report. MIBA: proof reg byte, compare guest, report guest.
bench-miba: all bench/exchange
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/miba.sh $(MIBA)
# The default protocols beside every way that parameters can force. REGRET: options of bench/regret.py.
bench-regret: all bench/slow_machine.la bench/exchange
	@$(BENCH_ENVIRONMENT) STRATA_SOURCE=$(abs_top_srcdir) python3 -B $(srcdir)/bench/regret.py $(REGRET)
# The first messages of a size beside later ones. WARM_UP: options of bench/warm_up.py.
bench-warm-up: all bench/warm_up
	@$(BENCH_ENVIRONMENT) STRATA_SOURCE=$(abs_top_srcdir) python3 -B $(srcdir)/bench/warm_up.py $(WARM_UP)
# Windows whose receives are posted late. LATE: lengths of messages.
bench-late: all bench/late
	@$(BENCH_ENVIRONMENT) bench/late $(LATE)
# Channels beside strata_send, MPI libraries, ZeroMQ and NNG, into docs/measured/channel.md.
bench-channel: all
	@$(BENCH_ENVIRONMENT) STRATA_SOURCE=$(abs_top_srcdir) bash $(srcdir)/bench/channel.sh
# Eager RDMA beside send and receive. EAGER: options of bench/eager_rdma.sh, such as `--quick` or `guest`.
bench-eager-rdma: all bench/eager_rdma bench/eager_polling $(BENCH_EAGER_DEVICE) tests/softhca/programs/yield_sleeps.la
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/eager_rdma.sh $(EAGER)
# Collectives whose members arrive at different times. COLL: options of bench/coll.sh and bench/coll.py, such as `--quick`.
bench-coll: all
	@$(BENCH_ENVIRONMENT) STRATA_SOURCE=$(abs_top_srcdir) bash $(srcdir)/bench/coll.sh $(COLL)
# Both tables of README.md, in the source folder. README: options of bench/readme.py.
bench-readme: all
	@$(BENCH_ENVIRONMENT) python3 -B $(srcdir)/bench/readme.py $(README) $(top_srcdir)/README.md
bench-tcp-links: all
	@$(BENCH_ENVIRONMENT) STRATA_SOURCE=$(abs_top_srcdir) bash $(srcdir)/bench/tcp_links.sh

bench-srq: all tests/programs/traffic
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/srq.sh
bench-rcache: all bench/rcache
	@$(BENCH_ENVIRONMENT) bench/rcache
# What the memory hooks cost malloc and free.
bench-hooks: all bench/memory
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/memory.sh
# Two threads of a rank that send at once, beside other MPI libraries.
bench-threads: all
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/threads.sh
# Threads that send by channels of their own.
bench-channel-threads: all bench/channel_threads
	@$(BENCH_ENVIRONMENT) STRATA_SOURCE=$(abs_top_srcdir) bash $(srcdir)/bench/channel_threads.sh
bench: all bench/instructions $(BENCH_SOFTHCA)
	@$(BENCH_ENVIRONMENT) bash $(srcdir)/bench/run.sh bench/results.txt
.PHONY: bench bench-channel bench-channel-threads bench-coll bench-eager-rdma bench-embed bench-hooks bench-instructions bench-late bench-memory bench-miba bench-openib bench-promises bench-rcache bench-readme bench-registered \
	bench-regret bench-sm-fragments bench-softhca bench-srq bench-start bench-tcp-links bench-threads bench-warm-up
