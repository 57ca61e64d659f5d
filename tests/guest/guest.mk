# The tests that need a kernel with RDMA devices: every tests/**/*_guest_test.sh, by batches (tests/guest/README.md). A few of them:
# make check-guest GUEST_TESTS='tests/...'.
check-guest: all
	$(MAKE) check TESTS=
	@$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/guest/batch.sh $(GUEST_TESTS)
.PHONY: check-guest
EXTRA_DIST += tests/guest/guest.mk tests/guest/run tests/guest/on-node

# The image is kept by `make clean`: it does not depend on anything that is built.
distclean-local:
	-rm -rf guest
.PHONY: distclean-local
