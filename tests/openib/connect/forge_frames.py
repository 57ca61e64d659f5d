#!/usr/bin/env python3
"""Connects to every listening socket of a process and its descendants as no process of their job would: `forge_frames.py PID ROUNDS
[--known RANKS] [--slow]`. Each round makes port scans, random bytes, wrong magics and lengths, frames with another key. Each
call but the scans must be closed for what it says, at once. --known RANKS, of the job: the key is read from the listener's memory, and
frames are made that are right but for one field; they must be closed for that field alone, since the same frame with all fields right
is kept. --slow: calls that send a part of a frame must be closed in the end.
Prints how many calls were made. Status 1 when no process listens, a call is kept, or a right one is closed.

No clock judges "at once". A listener closes every call that has not sent a whole frame after some seconds. So a call made before, of
half a frame, must still be open when the others are closed. When it is closed too, the machine may have been too busy, and all
of them are made again."""
import argparse
import os
import random
import re
import socket
import struct
import sys
import time

NET = 300  # seconds: a safety net
TRIES = 20


def number(header, regex):
    path = os.path.join(os.path.dirname(__file__), "../../../components/btl_openib", header)
    with open(path, encoding="ascii") as f:
        return int(re.search(regex, f.read()).group(1), 0)


VERSION = number("wire.h", r"define IB_WIRE_VERSION\s+(\w+?)u")
CARD = number("wire.h", r"sizeof\(struct ib_card\) == (\d+)")
CONN = number("wire.h", r"sizeof\(struct ib_conn\) == (\d+)")
MAGIC = number("wire.h", r"define IB_TCP_MAGIC\s+(\w+?)u")
MOVED = 6  # a word that changes nothing when it names no attempt and no address


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
    """The listening ports, each with the process that has it."""
    inodes = {}
    for one in descendants(pid):
        try:
            for fd in os.listdir(f"/proc/{one}/fd"):
                name = os.readlink(f"/proc/{one}/fd/{fd}")
                if name.startswith("socket:["):
                    with open(f"/proc/{one}/comm", encoding="ascii", errors="replace") as f:
                        if f.read().strip() in ("reconnect", "hostile"):
                            inodes[name[8:-1]] = one
        except OSError:
            pass
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as f:
            for line in f.readlines()[1:]:
                word = line.split()
                if word[3] == "0A" and word[9] in inodes:
                    found[int(word[1].rsplit(":", 1)[1], 16)] = inodes[word[9]]
    return found


def key_of(pid, port):
    """Of the card that names this port, in the memory of the process that listens there."""
    head = struct.pack("<I", VERSION)
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as f:
        maps = [line.split() for line in f]
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for at in maps:
            if not at[1].startswith("rw") or (len(at) > 5 and at[5] != "[heap]"):
                continue
            begin, end = (int(x, 16) for x in at[0].split("-"))
            try:
                memory.seek(begin)
                bytes_of = memory.read(end - begin)
            except OSError:
                continue
            i = bytes_of.find(head)
            while i >= 0:
                card = bytes_of[i : i + CARD]
                if i % 8 == 0 and len(card) == CARD and card[46:48] == struct.pack("<H", port) and b"soft" in card[140:]:
                    return struct.unpack_from("<Q", card, 8)[0]
                i = bytes_of.find(head, i + 1)
    return None


def rank_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as f:
        return int(re.search(rb"(?:^|\0)PMIX_RANK=(\d+)", f.read()).group(1))


def dial(port, what):
    s = socket.create_connection(("127.0.0.1", port), NET)
    try:
        s.sendall(what)
    except (ConnectionResetError, BrokenPipeError):
        pass  # closed already
    return s


def closed(s, patience):
    """Whether the other end closes a call within so many seconds."""
    s.settimeout(patience)
    try:
        return s.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
    except (socket.timeout, BlockingIOError):
        return False


HALF = struct.pack("<II", MAGIC, CONN)
BAD = struct.pack("<I", MAGIC ^ 1)


def kept(port, frames):
    """Of pairs of a name and bytes the name of one that is not closed at once; None: all are. The last call is made so that the early
    one would be closed by then, too, if its time were over."""
    for _ in range(TRIES):
        slowest = (-1.0, "")
        with dial(port, HALF) as early:
            for what, bad in frames + [("magic", BAD)]:
                begun = time.time()
                with dial(port, bad) as s:
                    if not closed(s, NET):
                        return what
                slowest = max(slowest, (time.time() - begun, what))
            if not closed(early, 0):
                return None
    return slowest[1]


def right_is_kept(port, right):
    """Whether a right frame's call is still open when wrong ones made after it are closed."""
    with dial(port, right) as s:
        return kept(port, [("magic", BAD)]) is None and not closed(s, 0)


def frame(key, sender, receiver, version=VERSION, kind=MOVED, mtu=3):
    head = struct.pack("<II", MAGIC, CONN)
    return head + struct.pack("<IBBBBQiiII", version, kind, mtu, 16, 0, key, sender, receiver, 0, 0).ljust(CONN, b"\0")


def bad_frames(rnd):
    """Each holds as many bytes as the listener needs to refuse it, and no more."""
    yield "random bytes", bytes([rnd.randrange(1, 0x60)]) + rnd.randbytes(3 + rnd.randrange(300))
    yield "magic", BAD
    for length in (0xFFFFFFFF, 0, CONN - 1, CONN + 1):
        yield f"length {length}", struct.pack("<II", MAGIC, length)
    yield "random words", struct.pack("<II", MAGIC, CONN) + rnd.randbytes(CONN)
    yield "guessed key", frame(rnd.getrandbits(64), 1, 0, kind=1)
    yield "another protocol", b"GET / HTTP/1.0\r\n\r\n"


def nearly_right(key, rank, ranks):
    other = (rank + 1) % ranks
    for bit in (0, 31, 32, 63):
        yield f"key, bit {bit}", frame(key ^ 1 << bit, other, rank)
    for version in (VERSION - 1, VERSION + 1):
        yield f"version {version}", frame(key, other, rank, version=version)
    for mtu in (0, 6):
        yield f"mtu {mtu}", frame(key, other, rank, mtu=mtu)
    for sender in (-1, rank, ranks):
        yield f"from rank {sender}", frame(key, sender, rank)
    for receiver in (-1, other, ranks):
        yield f"to rank {receiver}", frame(key, other, receiver)


def known(listening):
    """How many calls were refused; None: one was kept, or a right one was closed."""
    count = 0
    for port, pid in listening.items():
        rank, key = rank_of(pid), key_of(pid, port)
        if key is None:
            print("no card is found")
            return None
        frames = list(nearly_right(key, rank, len(listening)))
        what = kept(port, frames)
        if what:
            print(f"kept: a call with another {what}")
            return None
        count += len(frames)
        if not right_is_kept(port, frame(key, (rank + 1) % len(listening), rank)):
            print("a right frame's call is closed")
            return None
    return count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pid", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--known", type=int, default=0, metavar="RANKS")
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    end, rnd, calls, slow = time.time() + NET, random.Random(1), 0, []
    while len(listening := ports(options.pid)) < max(options.known, 1) and time.time() < end:
        time.sleep(0.05)
    if len(listening) < max(options.known, 1):
        print("no process listens")
        return 1
    if options.known:
        made = known(listening)
        if made is None:
            return 1
        calls += made
    for port in listening:  # part of a frame, and then nothing
        slow.append(dial(port, HALF[: 1 + len(slow) % 8]))
    for _ in range(options.rounds):
        for port in listening:
            socket.create_connection(("127.0.0.1", port), NET).close()
            frames = list(bad_frames(rnd))
            what = kept(port, frames)
            if what:
                print(f"kept: a call with another {what}")
                return 1
            calls += len(frames)
    if options.slow and not all(closed(s, NET) for s in slow):
        print("kept: a call with a part of a frame")
        return 1
    print(f"{calls} calls at {len(listening)} ports")
    return 0


sys.exit(main())
