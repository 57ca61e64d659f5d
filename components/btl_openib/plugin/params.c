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
        "Receive queues of high and of low priority, each TYPE,SIZE,COUNT,LOW,CREDITS. TYPE: S (shared by all peers) "
        "or P (one per peer). SIZE: bytes of a buffer. COUNT: maximum number of buffers (P: of a peer, at least "
        "CREDITS and 8 more, with low priority 1 more). LOW: remaining buffers at which a shared queue grows (P: "
        "ignored). CREDITS: messages that a peer may send before it gets more credit."),
    ROW("srq_k", srq_k, ST_PARAM_DOUBLE, "1", 0, 65536, "buffers", 5,
        "k of x = log2(n) * k + b, the buffers posted to a shared receive queue for n connected peers."),
    ROW("srq_b", srq_b, ST_PARAM_INT, "32", 1, 65536, "buffers", 5, "b of x = log2(n) * k + b; see srq_k."),
    ROW("eager_limit", eager_limit, ST_PARAM_SIZE, "0", 0, 1 << 24, "bytes", 3,
        "Largest message sent before the receiver has matched it, at most the size of a buffer of low priority; 0: the "
        "size of a buffer of high priority."),
    ROW("stream_limit", stream_limit, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 4,
        "Up to this size a message is streamed as fragments without asking the receiver first; 0: by what the device "
        "takes, measured when the first peer connects; with mca_base_tune=off 32k, and 64k where the device is "
        "software on InfiniBand, whose fragments cost copies and no packets."),
    ROW("zcopy_min", zcopy_min, ST_PARAM_SIZE, "12k", 0, 1 << 24, "bytes", 5,
        "Smallest message of a nonblocking send that the device reads from the program's memory, if the same memory is "
        "sent repeatedly and registrations are kept (rcache); 0: all messages are copied."),
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
        "Gets of one work request each that are in flight to a peer at a time; the device may allow less. 0: 4 on "
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
        "Retransmissions by the device before the peer counts as failed; 7 means unlimited on some devices."),
    ROW("rnr_timer", rnr_timer, ST_PARAM_INT, "6", 0, 31, "code", 5,
        "Code of the time that a sender waits when the receiver has no buffer posted (RNR): InfiniBand specification, "
        "table 45; 6 is 80 us."),
    ROW("connect", connect, ST_PARAM_STRING, "ud,tcp", 0, 0, NULL, 3,
        "Methods of connecting in order of preference, with commas: ud (datagrams of the device), tcp (sockets), "
        "rdmacm (librdmacm). A method that the device or the machine lacks is skipped; if none is left, this is an "
        "error. Two processes use the first method in the lower rank's list that the other one offers, too."),
    ROW("connect_fallback", connect_fallback, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Whether connection requests are also sent by sockets to a peer that does not answer by the method of connect: "
        "its port may have another address than it published. Requires a listening socket; 0: no."),
    ROW("keepalive_ms", keepalive_ms, ST_PARAM_INT, "10000", 0, 1 << 30, "ms", 5,
        "Time without traffic from a connected peer after which its device is probed; 0: never."),
    ROW("connect_timeout_ms", connect_timeout_ms, ST_PARAM_INT, "60000", 10, 1 << 30, "ms", 5,
        "How long connection requests to a peer that does not answer are repeated."),
    ROW("connect_retry_ms", connect_retry_ms, ST_PARAM_INT, "20", 1, 1 << 20, "ms", 6,
        "Time after which a connection request is repeated for the first time; doubles up to a second."),
    ROW("close_timeout_ms", close_timeout_ms, ST_PARAM_INT, "1000", 0, 1 << 30, "ms", 7,
        "How long closing waits for pending output."),
    ROW("max_connected_peers", max_connected_peers, ST_PARAM_INT, "0", 0, 1 << 24, "peers", 3,
        "Connections that a rank opens itself and keeps: the least recently used one is closed before another is "
        "opened, and opened again when it is needed. The rank also accepts connections requested by peers, up to half "
        "this number plus one. 0: any number."),
    ROW("coalesce_at", coalesce_at, ST_PARAM_INT, "8", 0, 16384, "messages", 4,
        "Short messages that a peer has not yet acknowledged from which on further ones of nonblocking sends wait for "
        "the next progress, to be sent together (pml_ob1_coalesce); 0: only messages without room wait."),
    ROW("near_first", near_first, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Whether the device nearest to the processors of this process carries the messages that use one device only; "
        "0: the first device does."),
    ROW("fork_support", fork_support, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Where the kernel does not copy registered pages for a child that is forked (before Linux 5.12), have "
        "libibverbs keep them out of it: a child that touches one then dies. 0: a fork then corrupts the data of the "
        "device."),
    CHOICE(
        "eager_rdma", eager_rdma, eager_choices, "off", 3,
        "Whether short messages of hot peers are written by RDMA into a ring of the receiver, which polls its "
        "memory. auto: if the device's write is faster than its send, measured when a peer becomes hot for the first "
        "time. Windows of messages that are sent together (coalesce_at) go by send and receive. A receiver that sleeps "
        "long revokes its rings."),
    CHOICE("eager_rdma_detect", eager_rdma_detect, detect_choices, "auto", 5,
           "How a receiver detects a message in a ring: flag (the last byte, correct only if the device writes it "
           "last), seal (a byte of each cache line), imm (immediate data, by the completion queue); auto: flag if the "
           "device guarantees the order, else seal."),
    ROW("eager_rdma_peers", eager_rdma_peers, ST_PARAM_INT, "16", 0, 1024, "peers", 4,
        "Maximum number of peers with a ring here; the peer that sends least loses its ring to a hotter one. 0: none."),
    ROW("eager_rdma_slots", eager_rdma_slots, ST_PARAM_INT, "106", 2, 128, "slots", 5,
        "Slots of a ring: maximum number of short messages of a peer that are not handled yet."),
    ROW("eager_rdma_slot", eager_rdma_slot, ST_PARAM_SIZE, "576", 128, 8192, "bytes", 5,
        "Bytes of a slot, rounded up to cache lines. By default an odd number of these, so that the ends of slots do "
        "not meet in few sets of a cache."),
    ROW("eager_rdma_span", eager_rdma_span, ST_PARAM_INT, "8", 1, 64, "slots", 5,
        "Maximum number of slots of a message, at most 8 KiB in all; longer messages use send and receive. A message "
        "of 4 KiB fits the default; a ring, with the room that the last message may need behind it, then takes 64 "
        "KiB."),
    ROW("eager_rdma_after", eager_rdma_after, ST_PARAM_INT, "16", 1, 1 << 20, "messages", 5,
        "Messages by send and receive after which a peer is hot."),
    ROW("eager_rdma_hot", eager_rdma_hot, ST_PARAM_STRING, "", 0, 0, NULL, 5,
        "Ranks that get a ring here with their first message, such as 0,4-7, while places are free; they are evicted "
        "only in favour of each other. Do not name ranks that send rarely: a receiver that sleeps long revokes all "
        "rings, and each grant with its end costs three messages."),
    ROW("eager_rdma_window", eager_rdma_window, ST_PARAM_INT, "4096", 1, 1 << 30, "messages", 6,
        "Arrivals after which the counts that decide which peers are hot are halved."),
    CHOICE("eager_rdma_order", eager_rdma_order, order_choices, "prioritised", 6,
           "Order in which rings are polled: prioritised (the peer that has sent most recently first), sequential (by "
           "place), circular (each round starts with the next ring)."),
    ROW("eager_rdma_lively", eager_rdma_lively, ST_PARAM_INT, "8", 1, 1024, "rings", 5,
        "Quiet rings that are polled in every round. Further quiet rings are polled in turn, two a round."),
};
