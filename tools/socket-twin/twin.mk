# strata-socket-twin: strata-perf's measurements over a bare TCP connection. Not linked with Strata.
EXTRA_DIST += tools/socket-twin/twin.mk tools/socket-twin/README.md
pkglibexec_PROGRAMS += strata-socket-twin
strata_socket_twin_SOURCES = tools/socket-twin/twin.c tools/socket-twin/port_sockets.h tools/strata-perf/options.c \
	tools/strata-perf/report.c tools/strata-perf/private_memory.c tools/strata-perf/coll_options.c \
	tools/strata-perf/coll_arrivals.c tools/strata-perf/report_coll.c
strata_socket_twin_CPPFLAGS = $(COMMON_CPPFLAGS) $(TOOL_CPPFLAGS) -I$(srcdir)/tools/strata-perf -I$(srcdir)/tools/socket-twin
strata_socket_twin_CFLAGS = $(COMMON_CFLAGS)
strata_socket_twin_LDADD = $(TOOL_LIBS) -lm
