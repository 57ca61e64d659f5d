# The tests that need a kernel with RDMA devices: every tests/*/*_guest_test.sh. A test program to be run there takes a script of
# two lines that calls tests/guest/run.
check-guest: all
	$(MAKE) check TESTS='$(GUEST_TESTS)'
.PHONY: check-guest
EXTRA_DIST += tests/guest/guest.mk tests/guest/run tests/guest/on-node

# The image is kept by `make clean`: it does not depend on anything that is built.
distclean-local:
	-rm -rf guest
.PHONY: distclean-local
