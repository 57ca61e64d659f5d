# mca_pml_strata: built against the internal headers of the Open MPI that mpicc.openmpi belongs to, which ask for -mcx16.
# One folder per version of Open MPI: a plugin loaded by another one would crash it. In the build tree it is in
# embed/openmpi/.libs.
openmpidir = $(componentdir)/openmpi-$(OPENMPI_VERSION)
EXTRA_DIST += embed/openmpi/README.md embed/openmpi/embed.mk embed/openmpi/configure.m4
if BUILD_EMBED_OPENMPI
openmpi_LTLIBRARIES = embed/openmpi/mca_pml_strata.la
embed_openmpi_mca_pml_strata_la_SOURCES = $(EMBED_OPENMPI_SOURCES)
embed_openmpi_mca_pml_strata_la_CPPFLAGS = $(COMMON_CPPFLAGS) $(OPENMPI_CPPFLAGS)
embed_openmpi_mca_pml_strata_la_CFLAGS = $(COMMON_CFLAGS) -mcx16
embed_openmpi_mca_pml_strata_la_LIBADD = libstrata.la -ldl
# Never unloaded: Open MPI calls alloc_mem.c for a block that a program gives back after MPI_Finalize.
embed_openmpi_mca_pml_strata_la_LDFLAGS = -module -avoid-version -no-undefined -Wl,-z,nodelete $(COMMON_LDFLAGS)
else
EXTRA_DIST += $(EMBED_OPENMPI_SOURCES)
endif
