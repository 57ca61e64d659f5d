#!/usr/bin/env python3
"""Embedding Strata in Python by ctypes: the program of threads.c. Ranks are Python threads, each with a context; the table is a
dict; the storage of a request is a buffer of an object of ours; completion is a Python function.

STRATA_LIBRARY names the library where the loader does not find it."""
import ctypes as ct
import os
import sys
import threading

RANKS, ROUNDS = 4, 200
OK, ERR_NOMEM, ERR_NOT_FOUND = 0, -3, -4

strata = ct.CDLL(os.environ.get("STRATA_LIBRARY", "libstrata.so.0"))
libc = ct.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ct.c_void_p, [ct.c_size_t]

# ---- the structs of <strata/strata.h> and <strata/host.h>, member by member ----


class Status(ct.Structure):
    _fields_ = [("source", ct.c_int), ("tag", ct.c_int), ("error", ct.c_int), ("length", ct.c_size_t), ("sent", ct.c_size_t)]


class Iov(ct.Structure):
    _fields_ = [("v", ct.c_void_p), ("n", ct.c_size_t)]


class Convert(ct.Structure):
    _fields_ = [("pack", ct.c_void_p), ("unpack", ct.c_void_p), ("user", ct.c_void_p)]


class Where(ct.Union):
    _fields_ = [("buffer", ct.c_void_p), ("iov", Iov), ("convert", Convert)]


class Data(ct.Structure):
    _fields_ = [("kind", ct.c_int), ("length", ct.c_size_t), ("u", Where)]


Put = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.c_char_p, ct.c_void_p, ct.c_size_t)
Get = ct.CFUNCTYPE(ct.c_int, ct.c_void_p, ct.c_int, ct.c_char_p, ct.POINTER(ct.c_void_p), ct.POINTER(ct.c_size_t))
Fence = ct.CFUNCTYPE(ct.c_int, ct.c_void_p)
Complete = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_void_p, ct.POINTER(Status))


class Host(ct.Structure):
    # Callbacks that stay NULL are pointers here.
    _fields_ = [("size", ct.c_size_t), ("user", ct.c_void_p), ("rank", ct.c_int), ("n_ranks", ct.c_int), ("job_id", ct.c_char_p),
                ("host_name", ct.c_char_p), ("put", Put), ("get", Get), ("fence", Fence)] + [
        (name, ct.c_void_p) for name in ("is_local", "local_ranks", "host_of", "abort", "log", "peer_failed", "idle", "memory_watch")]


class Config(ct.Structure):
    _fields_ = [("size", ct.c_size_t), ("thread_level", ct.c_int), ("settings", ct.c_void_p), ("n_settings", ct.c_size_t),
                ("command_line", ct.c_void_p), ("n_command_line", ct.c_size_t), ("host", ct.POINTER(Host)),
                ("error_text", ct.c_void_p), ("error_text_size", ct.c_size_t)]


def declare(name, result, *arguments):
    function = getattr(strata, name)
    function.restype, function.argtypes = result, arguments


declare("strata_init", ct.c_int, ct.POINTER(Config), ct.POINTER(ct.c_void_p))
declare("strata_finalize", ct.c_int, ct.c_void_p)
declare("strata_world", ct.c_void_p, ct.c_void_p)
declare("strata_progress", ct.c_int, ct.c_void_p)
declare("strata_strerror", ct.c_char_p, ct.c_int)
declare("strata_request_size", ct.c_size_t, ct.c_void_p)
declare("strata_request_align", ct.c_size_t, ct.c_void_p)
declare("strata_host_pause", None, ct.c_void_p, ct.c_uint)
declare("strata_host_isend", ct.c_int, ct.c_void_p, ct.POINTER(Data), ct.c_int, ct.c_int, ct.c_int, ct.c_void_p, Complete, ct.c_void_p)
declare("strata_host_irecv", ct.c_int, ct.c_void_p, ct.POINTER(Data), ct.c_int, ct.c_int, ct.c_void_p, Complete, ct.c_void_p)

# ---- the table: what ranks publish, and where they meet ----


class Table:
    def __init__(self):
        self.changed = threading.Condition()
        self.entries, self.up = {}, set()
        self.arrived = self.generation = 0

    def put(self, rank, key, blob, length):
        with self.changed:
            self.entries[rank, key] = ct.string_at(blob, length)
            self.changed.notify_all()
        return OK

    def get(self, rank, key, blob, length):
        """Waits for the peer: "not found" would mean that it never publishes this."""
        with self.changed:
            self.changed.wait_for(lambda: (rank, key) in self.entries or rank in self.up)
            value = self.entries.get((rank, key))
        if value is None:
            return ERR_NOT_FOUND
        copy = libc.malloc(max(len(value), 1))  # Strata frees it
        if not copy:
            return ERR_NOMEM
        ct.memmove(copy, value, len(value))
        blob[0], length[0] = copy, len(value)
        return OK

    def fence(self):
        with self.changed:
            mine = self.generation
            self.arrived += 1
            if self.arrived == RANKS:
                self.arrived = 0
                self.generation += 1
                self.changed.notify_all()
            self.changed.wait_for(lambda: self.generation != mine)
        return OK

    def is_up(self, rank):
        with self.changed:
            self.up.add(rank)
            self.changed.notify_all()


class Op:
    """An operation of ours, with Strata's request inside. It must live until it is complete, and so must its callback."""

    def __init__(self, context, done):
        align, size = strata.strata_request_align(context), strata.strata_request_size(context)
        self.room = ct.create_string_buffer(size + align)
        self.storage = (ct.addressof(self.room) + align - 1) // align * align
        self.value = ct.c_long()
        self.data = Data(0, ct.sizeof(self.value), Where(buffer=ct.addressof(self.value)))
        self.busy = False
        self.callback = Complete(lambda arg, request, status: done(self, status.contents.error))


class Rank:
    def __init__(self, table, rank):
        self.table, self.rank = table, rank
        self.received = self.sum = 0
        self.failed, self.good = OK, False
        # Kept, since Strata calls them until strata_finalize.
        self.host = Host(ct.sizeof(Host), None, rank, RANKS, b"python-%d" % os.getpid(), None,
                         Put(lambda user, key, blob, length: table.put(rank, key, blob, length)),
                         Get(lambda user, of, key, blob, length: table.get(of, key, blob, length)),
                         Fence(lambda user: table.fence()))

    def note(self, rc):
        if rc < 0 and self.failed == OK:
            self.failed = rc

    def sent(self, op, error):
        op.busy = False
        self.note(error)

    def has_received(self, op, error):
        self.note(error)
        self.sum += op.value.value
        self.received += 1
        if self.received < ROUNDS and self.failed == OK:
            self.receive(op)  # from inside the callback, in the same storage

    def receive(self, op):
        self.note(strata.strata_host_irecv(self.world, op.data, (self.rank - 1) % RANKS, 1, op.storage, op.callback, None))

    def send(self, op, value):
        op.value.value, op.busy = value, True
        rc = strata.strata_host_isend(self.world, op.data, (self.rank + 1) % RANKS, 1, 0, op.storage, op.callback, None)
        if rc != OK:  # 1: complete already, the callback is not called
            op.busy = False
        self.note(rc)

    def ring(self, context):
        sending, receiving = Op(context, self.sent), Op(context, self.has_received)
        following = empty = 0
        self.receive(receiving)
        while self.failed == OK and (self.received < ROUNDS or following < ROUNDS or sending.busy):
            if following < ROUNDS and not sending.busy:
                self.send(sending, self.rank * ROUNDS + following)
                following += 1
            empty = 0 if strata.strata_progress(context) else empty + 1
            if empty:
                strata.strata_host_pause(context, empty)
        if self.failed != OK:
            print(f"rank {self.rank}: {strata.strata_strerror(self.failed).decode()}", file=sys.stderr)
        left = (self.rank - 1) % RANKS
        return self.failed == OK and self.sum == left * ROUNDS * ROUNDS + ROUNDS * (ROUNDS - 1) // 2

    def run(self):
        context, why = ct.c_void_p(), ct.create_string_buffer(512)
        config = Config(size=ct.sizeof(Config), host=ct.pointer(self.host), error_text=ct.addressof(why), error_text_size=512)
        rc = strata.strata_init(config, context)
        self.table.is_up(self.rank)
        if rc != OK:
            print(f"rank {self.rank}: {why.value.decode()}", file=sys.stderr)
            os._exit(1)  # the others would wait for it
        self.world = strata.strata_world(context)
        self.good = self.ring(context)
        self.good = strata.strata_finalize(context) == OK and self.good


table = Table()
ranks = [Rank(table, r) for r in range(RANKS)]
threads = [threading.Thread(target=r.run) for r in ranks]
for t in threads:
    t.start()
for t in threads:
    t.join()
good = all(r.good for r in ranks)
print(f"{RANKS} ranks, {ROUNDS} numbers around the ring: {'ok' if good else 'wrong'}")
sys.exit(0 if good else 1)
