# The MPI twin of strata-perf, once per MPI compiler that configure found. Compiled in one step, since the compiler is not
# automake's; not linked with Strata.
twin_c = tools/mpi-twin/twin.c tools/strata-perf/options.c tools/strata-perf/report.c \
	tools/strata-perf/private_memory.c tools/strata-perf/coll_options.c tools/strata-perf/coll_arrivals.c \
	tools/strata-perf/report_coll.c
twin_h = tools/mpi-twin/port_mpi.h tools/strata-perf/options.h tools/strata-perf/report.h \
	tools/strata-perf/private_memory.h tools/strata-perf/loops.h tools/strata-perf/loops_support.h \
	tools/strata-perf/coll_options.h tools/strata-perf/coll_arrivals.h tools/strata-perf/loops_coll.h \
	tools/strata-perf/loops_pair.h tools/strata-perf/loops_match.h tools/strata-perf/loops_all.h \
	tools/strata-perf/loops_exchange.h tools/strata-perf/exchange.h tools/strata-perf/exchange_ball.h tools/strata-perf/pair.h
# MPICH's MPI_STATUSES_IGNORE looks to gcc like an array that is too short.
twin_flags = -I. -I$(srcdir)/tools/strata-perf -I$(srcdir)/tools/mpi-twin $(JANSSON_CFLAGS) -std=gnu11 -O2 -g \
	-Wall -Wextra -Wno-stringop-overflow
EXTRA_DIST += tools/mpi-twin/twin.mk tools/mpi-twin/twin.c tools/mpi-twin/port_mpi.h tools/mpi-twin/README.md
CLEANFILES += strata-mpi-twin.openmpi strata-mpi-twin.mpich
if HAVE_MPICC_OPENMPI
pkglibexec_SCRIPTS += strata-mpi-twin.openmpi
endif
if HAVE_MPICC_MPICH
pkglibexec_SCRIPTS += strata-mpi-twin.mpich
endif

strata-mpi-twin.openmpi: $(twin_c) $(twin_h)
	$(AM_V_CCLD)$(MPICC_OPENMPI) $(twin_flags) -o $@ $(twin_c:%=$(srcdir)/%) $(JANSSON_LIBS) -lm
strata-mpi-twin.mpich: $(twin_c) $(twin_h)
	$(AM_V_CCLD)$(MPICC_MPICH) $(twin_flags) -o $@ $(twin_c:%=$(srcdir)/%) $(JANSSON_LIBS) -lm

# The ranks of strata-memscale.
memscale_rank_c = tools/strata-memscale/rank.c tools/strata-memscale/meeting.c framework/base/process_memory.c
memscale_rank_h = tools/mpi-twin/port_mpi.h tools/strata-memscale/rank_mpi.h tools/strata-memscale/play.h \
	tools/strata-memscale/meeting.h tools/strata-memscale/memscale.h
memscale_rank_flags = $(twin_flags) -I$(srcdir)/include -I$(srcdir) -I$(srcdir)/tools/strata-memscale -DMPI_TWIN
CLEANFILES += strata-memscale-rank.openmpi strata-memscale-rank.mpich
if HAVE_MPICC_OPENMPI
pkglibexec_SCRIPTS += strata-memscale-rank.openmpi
endif
if HAVE_MPICC_MPICH
pkglibexec_SCRIPTS += strata-memscale-rank.mpich
endif
strata-memscale-rank.openmpi: $(memscale_rank_c) $(memscale_rank_h)
	$(AM_V_CCLD)$(MPICC_OPENMPI) $(memscale_rank_flags) -o $@ $(memscale_rank_c:%=$(srcdir)/%) $(JANSSON_LIBS)
strata-memscale-rank.mpich: $(memscale_rank_c) $(memscale_rank_h)
	$(AM_V_CCLD)$(MPICC_MPICH) $(memscale_rank_flags) -o $@ $(memscale_rank_c:%=$(srcdir)/%) $(JANSSON_LIBS)
