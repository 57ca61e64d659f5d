# Tests of the embedding in Open MPI: MPI programs, built by its own compiler wrapper and linked with nothing of ours, and
# the whole set of runs of programs from Debian's packages.
EMBED_COMPILE = $(AM_V_CCLD)$(MKDIR_P) tests/embed/programs && $(MPICC_OPENMPI) -std=gnu11 -O2 -g -Wall -Wextra -Wshadow \
	-pthread -o $@ $(srcdir)/$@.c
if BUILD_EMBED_OPENMPI
check_SCRIPTS = $(EMBED_MPI)
endif
EXTRA_DIST += tests/embed/embed.mk
CLEANFILES += $(EMBED_MPI)

# Hours are not needed: about half an hour on four cores.
check-embed-full: all
	$(MAKE) check TESTS=
	@$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/embed/full.sh
.PHONY: check-embed-full
