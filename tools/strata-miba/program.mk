# strata-miba: a tool for any verbs device. It links libibverbs, librdmacm where it is there, and jansson: nothing of Strata's libraries.
EXTRA_DIST += tools/strata-miba/program.mk tools/strata-miba/configure.m4
if BUILD_MIBA
bin_PROGRAMS += strata-miba
strata_miba_SOURCES = $(strata_miba_FILES) tools/shared/spare_memory.c tools/shared/spare_memory.h
strata_miba_CPPFLAGS = -I$(srcdir) -I$(srcdir)/tools/strata-miba $(MIBA_VERBS_CFLAGS) $(MIBA_RDMACM_CFLAGS) $(JANSSON_CFLAGS)
strata_miba_CFLAGS = $(COMMON_CFLAGS)
strata_miba_LDADD = $(MIBA_RDMACM_LIBS) $(MIBA_VERBS_LIBS) $(JANSSON_LIBS) -lpthread -lm
else
EXTRA_DIST += $(strata_miba_FILES)
endif
