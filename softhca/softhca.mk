# libsofthca.so: devices in user space for programs written to libibverbs, by LD_PRELOAD. It knows nothing of Strata and links
# libc only. In the build tree it is softhca/.libs/libsofthca.so. And softhca-stat, which looks at its processes.
EXTRA_DIST += softhca/README.md softhca/softhca.mk softhca/configure.m4 softhca/softhca.map
if BUILD_SOFTHCA
lib_LTLIBRARIES += softhca/libsofthca.la
softhca_libsofthca_la_SOURCES = $(SOFTHCA_SOURCES)
softhca_libsofthca_la_CPPFLAGS = -I$(srcdir)/softhca
softhca_libsofthca_la_CFLAGS = $(COMMON_CFLAGS)
softhca_libsofthca_la_LIBADD = -lpthread -ldl
softhca_libsofthca_la_LDFLAGS = -module -avoid-version -shared -no-undefined \
	-Wl,--version-script=$(srcdir)/softhca/softhca.map $(COMMON_LDFLAGS)
EXTRA_softhca_libsofthca_la_DEPENDENCIES = softhca/softhca.map

bin_PROGRAMS += softhca-stat
softhca_stat_SOURCES = $(SOFTHCA_STAT_SOURCES) softhca/names.c softhca/cost_keys.c
softhca_stat_CPPFLAGS = -I$(srcdir) $(JANSSON_CFLAGS)
softhca_stat_CFLAGS = $(COMMON_CFLAGS)
softhca_stat_LDADD = $(JANSSON_LIBS)
else
EXTRA_DIST += $(SOFTHCA_SOURCES) $(SOFTHCA_STAT_SOURCES)
endif
