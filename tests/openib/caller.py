#!/usr/bin/env python3
"""Calls every listening socket of a process and its descendants for some seconds as nobody of their job would: `caller.py PID
SECONDS`. Port scans, random bytes, wrong magics and lengths, a well-formed frame with another key, one byte at a time. Each
call but the scans must be hung up on within seconds; prints how many were made. Status 1 when nobody listens or one is kept."""
import os
import random
import socket
import struct
import sys
import time

MAGIC = 0x54436269
CONN = 80  # bytes of a message: struct ib_conn of components/btl_openib/wire.h


def descendants(pid):
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as f:
                    parents.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
            except (OSError, IndexError):
                pass
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += parents.get(one, [])
    return found


def ports(pid):
    inodes = set()
    for one in descendants(pid):
        try:
            for fd in os.listdir(f"/proc/{one}/fd"):
                name = os.readlink(f"/proc/{one}/fd/{fd}")
                if name.startswith("socket:["):
                    with open(f"/proc/{one}/comm", encoding="ascii", errors="replace") as f:
                        if f.read().strip() in ("cycles", "hostile"):
                            inodes.add(name[8:-1])
        except OSError:
            pass
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as f:
            for line in f.readlines()[1:]:
                word = line.split()
                if word[3] == "0A" and word[9] in inodes:
                    found.add(int(word[1].rsplit(":", 1)[1], 16))
    return sorted(found)


def call(port, what):
    s = socket.create_connection(("127.0.0.1", port), 5)
    try:
        s.sendall(what)
        s.settimeout(20)
        return s.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
    finally:
        s.close()


def bad_frames(rnd):
    head = struct.pack("<II", MAGIC, CONN)
    yield rnd.randbytes(4 + rnd.randrange(300))
    yield struct.pack("<II", MAGIC, 0xFFFFFFFF) + b"x" * rnd.randrange(200)
    yield struct.pack("<II", MAGIC, 0)
    yield struct.pack("<II", MAGIC ^ 1, CONN) + bytes(CONN)
    yield head + rnd.randbytes(CONN)
    # version 2, a request; rail 0; a key that is not theirs; from rank 1 to rank 0
    yield head + struct.pack("<IBBBBQiiII", 3, 1, 3, 16, 0, rnd.getrandbits(64), 1, 0, 5, 0).ljust(CONN, b"\0")
    yield b"GET / HTTP/1.0\r\n\r\n"


def main():
    pid, end = int(sys.argv[1]), time.time() + float(sys.argv[2])
    rnd, calls, slow = random.Random(1), 0, []
    while not (listening := ports(pid)) and time.time() < end:
        time.sleep(0.05)
    if not listening:
        print("nobody listens")
        return 1
    for port in listening:  # one byte, and then nothing for long; cut in the middle
        s = socket.create_connection(("127.0.0.1", port), 5)
        s.sendall(struct.pack("<II", MAGIC, CONN)[: 1 + len(slow) % 8])
        slow.append(s)
    while time.time() < end:
        for port in listening:
            socket.create_connection(("127.0.0.1", port), 5).close()
            for what in bad_frames(rnd):
                if not call(port, what):
                    print("a call was kept")
                    return 1
                calls += 1
    if float(sys.argv[2]) > 6:  # longer than anybody may take to say who is calling
        for s in slow:
            s.settimeout(10)
            try:
                if s.recv(1) != b"":
                    return 1
            except ConnectionResetError:
                pass
    print(f"{calls} calls at {len(listening)} ports")
    return 0


sys.exit(main())
