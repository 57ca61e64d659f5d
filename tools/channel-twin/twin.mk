# What strata-perf channel starts: the same loops over Strata, each MPI library, ZeroMQ and NNG.
channel_twin_h = tools/channel-twin/farm.h tools/channel-twin/farm_compute.h tools/channel-twin/fork.h tools/channel-twin/pair.h \
	tools/channel-twin/port_mpi.h tools/channel-twin/port_nng.h tools/channel-twin/port_strata.h tools/channel-twin/port_zmq.h \
	tools/channel-twin/support.h
channel_twin_flags = -I$(srcdir)/tools/channel-twin -std=gnu11 -O2 -g -Wall -Wextra -Wno-stringop-overflow
EXTRA_DIST += tools/channel-twin/twin.mk tools/channel-twin/configure.m4
pkglibexec_PROGRAMS += strata-channel-twin.strata
strata_channel_twin_strata_SOURCES = tools/channel-twin/twin.c $(channel_twin_h)
strata_channel_twin_strata_CPPFLAGS = $(COMMON_CPPFLAGS) -I$(srcdir)/tools/channel-twin -DPORT='"port_strata.h"'
strata_channel_twin_strata_CFLAGS = $(COMMON_CFLAGS)
strata_channel_twin_strata_LDADD = libstrata.la -lm
if HAVE_ZMQ
pkglibexec_PROGRAMS += strata-channel-twin.zmq
strata_channel_twin_zmq_SOURCES = $(strata_channel_twin_strata_SOURCES)
strata_channel_twin_zmq_CPPFLAGS = $(ZMQ_CFLAGS) -I$(srcdir)/tools/channel-twin -DPORT='"port_zmq.h"'
strata_channel_twin_zmq_CFLAGS = $(COMMON_CFLAGS)
strata_channel_twin_zmq_LDADD = $(ZMQ_LIBS) -lm
endif
if HAVE_NNG
pkglibexec_PROGRAMS += strata-channel-twin.nng
strata_channel_twin_nng_SOURCES = $(strata_channel_twin_strata_SOURCES)
strata_channel_twin_nng_CPPFLAGS = -I$(srcdir)/tools/channel-twin -DPORT='"port_nng.h"'
strata_channel_twin_nng_CFLAGS = $(COMMON_CFLAGS)
strata_channel_twin_nng_LDADD = -lnng -lm
endif
CLEANFILES += strata-channel-twin.openmpi strata-channel-twin.mpich
if HAVE_MPICC_OPENMPI
pkglibexec_SCRIPTS += strata-channel-twin.openmpi
endif
if HAVE_MPICC_MPICH
pkglibexec_SCRIPTS += strata-channel-twin.mpich
endif
strata-channel-twin.openmpi: tools/channel-twin/twin.c $(channel_twin_h)
	$(AM_V_CCLD)$(MPICC_OPENMPI) $(channel_twin_flags) -DPORT='"port_mpi.h"' -o $@ $(srcdir)/tools/channel-twin/twin.c -lm
strata-channel-twin.mpich: tools/channel-twin/twin.c $(channel_twin_h)
	$(AM_V_CCLD)$(MPICC_MPICH) $(channel_twin_flags) -DPORT='"port_mpi.h"' -o $@ $(srcdir)/tools/channel-twin/twin.c -lm
