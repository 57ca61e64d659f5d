# shellcheck shell=bash
# Tests on a kernel with RDMA devices, in QEMU. batch.sh runs two guests at a time, of which each waits much of its time.
if build_plugins; then harness "guest" "$BUILD" 1 check-guest; fi
