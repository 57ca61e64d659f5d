#!/usr/bin/env python3
"""Calls every listening socket of a process and its descendants for some seconds as nobody of their job would: `forge_frames.py PID
SECONDS [RANKS]`. Port scans, random bytes, wrong magics and lengths, frames with another key, one byte at a time. Each
call but the scans must be hung up on at once. With RANKS, the job's, it takes the key from the listener's memory, and makes frames that
are right but for one field: hung up on for that field alone, since the same frame with all fields right is listened to.
Prints how many calls were made. Status 1 when nobody listens, one is kept, or a right one is not."""
import os
import random
import re
import socket
import struct
import sys
import time

AT_ONCE = 4.5  # seconds; who has said nothing of use is hung up on after 5, whatever it was


def number(header, regex):
    path = os.path.join(os.path.dirname(__file__), "../../../components/btl_openib", header)
    with open(path, encoding="ascii") as f:
        return int(re.search(regex, f.read()).group(1), 0)


VERSION = number("wire.h", r"define IB_WIRE_VERSION\s+(\w+?)u")
CARD = number("wire.h", r"sizeof\(struct ib_card\) == (\d+)")
CONN = number("wire.h", r"sizeof\(struct ib_conn\) == (\d+)")
MAGIC = number("tcp_line.h", r"define IB_TCP_MAGIC\s+(\w+?)u")
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


def call(port, what, patience):
    """Whether it is hung up on."""
    s = socket.create_connection(("127.0.0.1", port), 5)
    try:
        s.sendall(what)
        s.settimeout(patience)
        return s.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
    except socket.timeout:
        return False
    finally:
        s.close()


def frame(key, sender, receiver, version=VERSION, kind=MOVED, mtu=3):
    head = struct.pack("<II", MAGIC, CONN)
    return head + struct.pack("<IBBBBQiiII", version, kind, mtu, 16, 0, key, sender, receiver, 0, 0).ljust(CONN, b"\0")


def bad_frames(rnd):
    """What has to be sent of each is there and no more: the first bytes are enough to tell."""
    yield "random bytes", bytes([rnd.randrange(1, 0x60)]) + rnd.randbytes(3 + rnd.randrange(300))
    yield "magic", struct.pack("<I", MAGIC ^ 1)
    for length in (0xFFFFFFFF, 0, CONN - 1, CONN + 1):
        yield f"length {length}", struct.pack("<II", MAGIC, length)
    yield "random words", struct.pack("<II", MAGIC, CONN) + rnd.randbytes(CONN)
    yield "key that was guessed", frame(rnd.getrandbits(64), 1, 0, kind=1)
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
    """How many were refused; None: one was not, or a right one was."""
    count = 0
    for port, pid in listening.items():
        rank, key = rank_of(pid), key_of(pid, port)
        if key is None:
            print("no card is found")
            return None
        for what, bad in nearly_right(key, rank, len(listening)):
            if not call(port, bad, AT_ONCE):
                print(f"kept: a call with another {what}")
                return None
            count += 1
        if call(port, frame(key, (rank + 1) % len(listening), rank), 1):
            print("a right frame is hung up on")
            return None
    return count


def main():
    pid, end = int(sys.argv[1]), time.time() + float(sys.argv[2])
    rnd, calls, slow = random.Random(1), 0, []
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    while len(listening := ports(pid)) < max(ranks, 1) and time.time() < end:
        time.sleep(0.05)
    if len(listening) < max(ranks, 1):
        print("nobody listens")
        return 1
    if ranks:
        made = known(listening)
        if made is None:
            return 1
        calls += made
    for port in listening:  # one byte, and then nothing for long; cut in the middle
        s = socket.create_connection(("127.0.0.1", port), 5)
        s.sendall(struct.pack("<II", MAGIC, CONN)[: 1 + len(slow) % 8])
        slow.append(s)
    while time.time() < end:
        for port in listening:
            socket.create_connection(("127.0.0.1", port), 5).close()
            for what, bad in bad_frames(rnd):
                if not call(port, bad, AT_ONCE):
                    print(f"kept: a call with another {what}")
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
