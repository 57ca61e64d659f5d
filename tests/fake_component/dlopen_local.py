"""Loads libstrata through ctypes, which opens it with RTLD_LOCAL, and sends a message to itself."""
import ctypes
import sys

lib = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
rc = lib.strata_init(None, ctypes.byref(context))
assert rc == 0, rc
lib.strata_world.restype = ctypes.c_void_p
lib.strata_world.argtypes = [ctypes.c_void_p]
world = ctypes.c_void_p(lib.strata_world(context))
assert lib.strata_size(context) == 1

request = ctypes.c_void_p()
inbox = ctypes.create_string_buffer(64)
outbox = b"sent from an interpreter"
rc = lib.strata_irecv(world, inbox, ctypes.c_size_t(64), 0, 7, ctypes.byref(request))
assert rc == 0, rc
rc = lib.strata_send(world, outbox, ctypes.c_size_t(len(outbox)), 0, 7)
assert rc == 0, rc
rc = lib.strata_wait(ctypes.byref(request), None)
assert rc == 0, rc
assert inbox.value == outbox, inbox.value
rc = lib.strata_finalize(context)
assert rc == 0, rc
print("fine")
