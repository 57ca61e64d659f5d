# shellcheck shell=bash
# Tests on a kernel with RDMA devices, in QEMU: one at a time, since the guest is a machine of two processors by itself.
if build_plugins; then harness "guest" "$BUILD" 1 check-guest; fi
