# mca_pml_strata and mca_coll_strata: built against the internal headers of an Open MPI, 4.1 or 5.0 or both, which ask for -mcx16.
# One folder per version of Open MPI: a plugin loaded by another one would crash it. In the build tree they are in
# embed/openmpi/.libs and embed/openmpi-5.0/.libs.
openmpi_4_1dir = $(componentdir)/openmpi-4.1
openmpi_5_0dir = $(componentdir)/openmpi-5.0
EMBED_COLL_SOURCES = embed/openmpi/coll/coll_call.c embed/openmpi/coll/coll_component.c embed/openmpi/coll/coll_data.c \
	embed/openmpi/coll/coll_module.c embed/openmpi/coll/coll_request.c embed/openmpi/coll/coll_strata.h \
	embed/openmpi/coll/coll_vector.c embed/openmpi/coll/coll_vector_module.c
EXTRA_DIST += embed/openmpi/README.md embed/openmpi/embed.mk embed/openmpi/configure.m4
# Never unloaded: Open MPI calls alloc_mem.c for a block that a program gives back after MPI_Finalize.
EMBED_LDFLAGS = -module -avoid-version -no-undefined -Wl,-z,nodelete $(COMMON_LDFLAGS)
if BUILD_EMBED_OPENMPI
openmpi_4_1_LTLIBRARIES = embed/openmpi/mca_pml_strata.la embed/openmpi/mca_coll_strata.la
embed_openmpi_mca_pml_strata_la_SOURCES = $(EMBED_OPENMPI_SOURCES)
embed_openmpi_mca_pml_strata_la_CPPFLAGS = $(COMMON_CPPFLAGS) $(OPENMPI_4_1_CPPFLAGS)
embed_openmpi_mca_pml_strata_la_CFLAGS = $(COMMON_CFLAGS) -mcx16
embed_openmpi_mca_pml_strata_la_LIBADD = libstrata.la -ldl
embed_openmpi_mca_pml_strata_la_LDFLAGS = $(EMBED_LDFLAGS)
embed_openmpi_mca_coll_strata_la_SOURCES = $(EMBED_COLL_SOURCES)
embed_openmpi_mca_coll_strata_la_CPPFLAGS = $(COMMON_CPPFLAGS) $(OPENMPI_4_1_CPPFLAGS) -I$(srcdir)/embed/openmpi/coll
embed_openmpi_mca_coll_strata_la_CFLAGS = $(COMMON_CFLAGS) -mcx16
embed_openmpi_mca_coll_strata_la_LIBADD = libstrata.la
embed_openmpi_mca_coll_strata_la_LDFLAGS = $(EMBED_LDFLAGS)
endif
if BUILD_EMBED_OPENMPI_5_0
noinst_LTLIBRARIES += embed/openmpi/libpml_5_0.la
embed_openmpi_libpml_5_0_la_SOURCES = $(EMBED_OPENMPI_SOURCES)
embed_openmpi_libpml_5_0_la_CPPFLAGS = $(COMMON_CPPFLAGS) $(OPENMPI_5_0_CPPFLAGS)
embed_openmpi_libpml_5_0_la_CFLAGS = $(COMMON_CFLAGS) -mcx16
openmpi_5_0_LTLIBRARIES = embed/openmpi-5.0/mca_pml_strata.la embed/openmpi-5.0/mca_coll_strata.la
embed_openmpi_5_0_mca_pml_strata_la_SOURCES =
embed_openmpi_5_0_mca_pml_strata_la_LIBADD = embed/openmpi/libpml_5_0.la libstrata.la -ldl
embed_openmpi_5_0_mca_pml_strata_la_LDFLAGS = $(EMBED_LDFLAGS)
noinst_LTLIBRARIES += embed/openmpi/libcoll_5_0.la
embed_openmpi_libcoll_5_0_la_SOURCES = $(EMBED_COLL_SOURCES)
embed_openmpi_libcoll_5_0_la_CPPFLAGS = $(COMMON_CPPFLAGS) $(OPENMPI_5_0_CPPFLAGS) -I$(srcdir)/embed/openmpi/coll
embed_openmpi_libcoll_5_0_la_CFLAGS = $(COMMON_CFLAGS) -mcx16
embed_openmpi_5_0_mca_coll_strata_la_SOURCES =
embed_openmpi_5_0_mca_coll_strata_la_LIBADD = embed/openmpi/libcoll_5_0.la libstrata.la
embed_openmpi_5_0_mca_coll_strata_la_LDFLAGS = $(EMBED_LDFLAGS)
endif
EXTRA_DIST += $(EMBED_OPENMPI_SOURCES) $(EMBED_COLL_SOURCES)
