/* The rows behind struct ib_params. */
#include "params.h"

#define ROW(name_, field, kind, dflt_, lo, hi, unit_, level_, help_)                                                   \
    {                                                                                                                  \
        .name = name_, .type = kind, .offset = offsetof(struct ib_params, field), .dflt = dflt_, .min = lo, .max = hi, \
        .unit = unit_, .help = help_, .level = level_                                                                  \
    }

#define CHOICE(name_, field, choices_, dflt_, level_, help_)                                                           \
    {                                                                                                                  \
        .name = name_, .type = ST_PARAM_ENUM, .offset = offsetof(struct ib_params, field), .dflt = dflt_,              \
        .help = help_, .level = level_, .choices = choices_                                                            \
    }
static const char *const eager_choices[] = {"off", "on", "auto", NULL};
static const char *const order_choices[] = {"prioritised", "sequential", "circular", NULL};
static const char *const detect_choices[] = {"auto", "flag", "seal", "imm", NULL};

const struct st_param ib_param_rows[IB_N_PARAMS] = {
    ROW("devices", devices, ST_PARAM_STRING, "", 0, 0, NULL, 2,
        "Devices to use, as name or name:port, with commas; ^ in front excludes those; empty: all with an active port. "
        "One that is named and cannot be opened is an error, else it is left out."),
    ROW("receive_queues", receive_queues, ST_PARAM_STRING, "S,8448,16384,4,64:S,33024,1024,1,6", 0, 0, NULL, 4,
        "Receive queues of high and of low priority, each TYPE,SIZE,COUNT,LOW,CREDITS: S (shared by all peers) or P "
        "(one per peer); bytes of a buffer; most buffers (P: of a peer, CREDITS and 8 more at least, by low priority 1 "
        "more); shared: buffers left at which the queue grows, P: ignored; messages that a peer may send before it "
        "hears from us."),
    ROW("srq_k", srq_k, ST_PARAM_DOUBLE, "1", 0, 65536, "buffers", 5,
        "k of x = log2(n) * k + b, the buffers posted to a shared receive queue for n connected peers."),
    ROW("srq_b", srq_b, ST_PARAM_INT, "32", 1, 65536, "buffers", 5, "b of x = log2(n) * k + b; see srq_k."),
    ROW("eager_limit", eager_limit, ST_PARAM_SIZE, "0", 0, 1 << 24, "bytes", 3,
        "Largest message sent before the receiver has matched it, at most what a buffer of low priority holds; 0: what "
        "one of high priority does."),
    ROW("stream_limit", stream_limit, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 4,
        "Up to this size a message is streamed as fragments without asking the receiver first; 0: by what the device "
        "takes, measured when the first peer connects; with mca_base_tune=off 32k, and 64k where the device is "
        "software on InfiniBand, whose fragments cost copies and no packets."),
    ROW("zcopy_min", zcopy_min, ST_PARAM_SIZE, "12k", 0, 1 << 24, "bytes", 5,
        "Smallest message of a nonblocking send that the device takes from where it is, if it is sent from there again "
        "and again and registrations are kept (rcache); 0: all are copied."),
    ROW("rdma_min", rdma_min, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 3,
        "Smallest message moved by RDMA; 0: by what the device takes, as for stream_limit; with mca_base_tune=off 32k "
        "when registrations are kept (rcache), 512k when they are made each time."),
    ROW("split_min", split_min, ST_PARAM_SIZE, "0", 0, 1ull << 40, "bytes", 4,
        "Smallest message of which the sender puts one half while the receiver gets the other; 0: by what the device "
        "takes, as for stream_limit, where it is software, which works on the processor of whoever asks it; with "
        "mca_base_tune=off 128k, on Ethernet 64k; none where it is hardware."),
    ROW("rdma_pipeline", rdma_pipeline, ST_PARAM_SIZE, "1m", 4096, 1 << 30, "bytes", 5,
        "Size of the pieces in which memory is registered and moved when it must be registered on the fly."),
    ROW("rdma_request", rdma_request, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 5,
        "Longest put or get that is one work request, 4k at least; longer ones are several. 0: 32k on Ethernet, where "
        "packets may be lost, and what the device can on InfiniBand."),
    ROW("rdma_reads", rdma_reads, ST_PARAM_INT, "0", 0, 16, "requests", 5,
        "Gets of one work request each that are under way to a peer at a time; the device may allow less. 0: 4 on "
        "Ethernet, 16 on InfiniBand."),
    ROW("send_depth_high", send_depth[IB_HIGH], ST_PARAM_INT, "31", 8, 16384, "requests", 5,
        "Work requests of a peer's send queue of high priority; devices round up to a power of two, some after adding "
        "1."),
    ROW("send_depth_low", send_depth[IB_LOW], ST_PARAM_INT, "15", 8, 16384, "requests", 5,
        "Work requests of a peer's send queue of low priority."),
    ROW("max_inline", max_inline, ST_PARAM_SIZE, "0", 0, 1024, "bytes", 5,
        "Longest message, headers included, that is copied into the work request; the device may allow less. 0: 192, "
        "and 576 where the device is software on InfiniBand, whose work requests cross no bus; 1: none."),
    ROW("gid_index", gid_index, ST_PARAM_INT, "-1", -1, 255, NULL, 4,
        "Entry of the port's GID table; -1: the first of RoCE v2 with an IPv4 or global IPv6 address, else 0."),
    ROW("pkey_index", pkey_index, ST_PARAM_INT, "0", 0, 65535, NULL, 5, "Entry of the port's partition key table."),
    ROW("service_level", service_level, ST_PARAM_INT, "0", 0, 15, NULL, 5, "Service level of all packets."),
    ROW("mtu", mtu, ST_PARAM_INT, "0", 0, 4096, "bytes", 5,
        "Path MTU: 256, 512, 1024, 2048 or 4096; 0: the port's; of two peers the smaller one counts."),
    ROW("timeout", timeout, ST_PARAM_INT, "14", 1, 31, "4.096 us << n", 5,
        "How long the device waits for an acknowledgement before it sends again."),
    ROW("retry_count", retry_count, ST_PARAM_INT, "6", 0, 7, "times", 5,
        "How often the device sends again before the peer counts as failed; 7 is for ever with some devices."),
    ROW("rnr_timer", rnr_timer, ST_PARAM_INT, "6", 0, 31, "code", 5,
        "Code of the time that a sender waits when we have no buffer posted: InfiniBand specification, table 45; 6 is "
        "80 us."),
    ROW("connect", connect, ST_PARAM_STRING, "ud,tcp", 0, 0, NULL, 3,
        "How connections are made, by preference, with commas: ud (datagrams of the device), tcp (sockets), rdmacm "
        "(librdmacm). What the device or the machine does not have is passed over; it is an error when nothing is "
        "left. Two processes use the first one of the lower rank's that the other offers, too."),
    ROW("connect_fallback", connect_fallback, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Whether a peer that does not answer by the method of connect is asked by sockets, too: its port may have "
        "another address than the one that it published. Takes a socket that listens; 0: none."),
    ROW("keepalive_ms", keepalive_ms, ST_PARAM_INT, "10000", 0, 1 << 30, "ms", 5,
        "A connected peer that nothing was heard of for so long is asked for a sign of its device; 0: never."),
    ROW("connect_timeout_ms", connect_timeout_ms, ST_PARAM_INT, "60000", 10, 1 << 30, "ms", 5,
        "How long to go on asking a peer that does not answer for a connection."),
    ROW("connect_retry_ms", connect_retry_ms, ST_PARAM_INT, "20", 1, 1 << 20, "ms", 6,
        "After which a connection request is sent again for the first time; doubles up to a second."),
    ROW("close_timeout_ms", close_timeout_ms, ST_PARAM_INT, "1000", 0, 1 << 30, "ms", 7,
        "How long closing waits for what is on its way out."),
    ROW("max_connected_peers", max_connected_peers, ST_PARAM_INT, "0", 0, 1 << 24, "peers", 3,
        "Connections that a rank keeps of its own accord: the least recently used one is closed before another is "
        "made, and made again when it is needed. Of those who ask for one it takes half as many and one more. 0: any "
        "number."),
    ROW("coalesce_at", coalesce_at, ST_PARAM_INT, "8", 0, 16384, "messages", 4,
        "So many short messages that a peer is not known to have handled, and further ones of nonblocking sends wait "
        "for the next progress, to go together (pml_ob1_coalesce); 0: only what there is no room for."),
    ROW("near_first", near_first, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Of several devices the one nearest to the processors that this process may run on carries what goes by one "
        "alone; 0: the first one."),
    ROW("fork_support", fork_support, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Where the kernel does not copy registered pages for a child that is forked (before Linux 5.12), have "
        "libibverbs keep them out of it: then a child that touches one dies. 0: then a fork makes what the device does "
        "go wrong."),
    CHOICE("eager_rdma", eager_rdma, eager_choices, "off", 3,
           "Whether short messages of hot peers go by RDMA writes into a ring at the receiver, which finds them by "
           "looking at its memory. auto: where the device's write is found to beat its send, which is measured when a "
           "peer is hot for the first time. A receiver that sleeps long revokes its rings."),
    CHOICE("eager_rdma_detect", eager_rdma_detect, detect_choices, "auto", 5,
           "How a receiver finds what was written to a ring: flag (the last byte, right only where the device writes "
           "it last), seal (a byte of each cache line), imm (immediate data, by the completion queue); auto: flag "
           "where the device promises it, else seal."),
    ROW("eager_rdma_peers", eager_rdma_peers, ST_PARAM_INT, "16", 0, 1024, "peers", 4,
        "Most peers that have a ring here; the one that sends least loses its ring to a hotter one. 0: none."),
    ROW("eager_rdma_slots", eager_rdma_slots, ST_PARAM_INT, "106", 2, 128, "slots", 5,
        "Slots of a ring: so many short messages of a peer may be there that were not handled yet."),
    ROW("eager_rdma_slot", eager_rdma_slot, ST_PARAM_SIZE, "576", 128, 8192, "bytes", 5,
        "Bytes of a slot, rounded up to cache lines. By default an odd number of these, so that the ends of slots do "
        "not "
        "meet in few sets of a cache."),
    ROW("eager_rdma_span", eager_rdma_span, ST_PARAM_INT, "8", 1, 64, "slots", 5,
        "Most slots of a message, 8 KiB in all at most; what is longer goes by send and receive. 4 KiB fit the "
        "default, "
        "and a ring, with what the last message may need beyond it, 64 KiB."),
    ROW("eager_rdma_after", eager_rdma_after, ST_PARAM_INT, "16", 1, 1 << 20, "messages", 5,
        "Messages by send and receive after which a peer is hot."),
    ROW("eager_rdma_hot", eager_rdma_hot, ST_PARAM_STRING, "", 0, 0, NULL, 5,
        "Ranks that get a ring here with their first message, such as 0,4-7, as far as there are places; they are "
        "evicted only for one another. Those that send rarely are better not named: a receiver that sleeps long "
        "revokes all rings, and each grant costs three messages with its end."),
    ROW("eager_rdma_window", eager_rdma_window, ST_PARAM_INT, "4096", 1, 1 << 30, "messages", 6,
        "Arrivals after which the counts that decide which peers are hot are halved."),
    CHOICE("eager_rdma_order", eager_rdma_order, order_choices, "prioritised", 6,
           "In which order rings are looked at: prioritised (the peer that has sent most lately first), sequential (by "
           "place), circular (each time from the next one on)."),
    ROW("eager_rdma_lively", eager_rdma_lively, ST_PARAM_INT, "8", 1, 1024, "rings", 5,
        "Rings that are looked at in every round although nothing comes by them. Further ones that are quiet are "
        "looked at in turn, two a round."),
};
