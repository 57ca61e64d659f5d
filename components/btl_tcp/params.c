/* The rows behind struct tcp_params. */
#include "params.h"

#include <stdlib.h>
#include <strata/sdk/bml.h>

#define TEXT(number)     #number
#define KIB_TEXT(number) TEXT(number) "k"
#define ROW(field, kind, dflt_, lo, hi, unit_, level_, help_)                                                          \
    {                                                                                                                  \
        .name = #field, .type = kind, .offset = offsetof(struct tcp_params, field), .dflt = dflt_, .min = lo,          \
        .max = hi, .unit = unit_, .help = help_, .level = level_                                                       \
    }

const struct st_param tcp_param_rows[TCP_N_PARAMS] = {
    ROW(if_include, ST_PARAM_STRING, "", 0, 0, NULL, 2,
        "Interfaces to use and to listen at, as names or networks (eth0,10.1.0.0/16,fd00::/8), with commas; empty: all "
        "that are up, and it listens at every address."),
    ROW(if_exclude, ST_PARAM_STRING, "", 0, 0, NULL, 2,
        "Interfaces neither to use nor to listen at, as names or networks, with commas; what is excluded is not used "
        "even if included."),
    ROW(ports, ST_PARAM_STRING, "", 0, 0, NULL, 3,
        "Ports to listen at, as FIRST-LAST or one number: the first free one is taken, and each process of a machine "
        "takes one for each link; empty: any."),
    ROW(links, ST_PARAM_INT, "4", 1, ST_BML_MAX_PATHS, "links", 3,
        "Links to a peer that are used at once, at most: networks that both are in, each by an interface of its own; "
        "the same in all processes of a job. 1: any one link."),
    ROW(eager_limit, ST_PARAM_SIZE, KIB_TEXT(TCP_EAGER_LIMIT_KIB), 64, 4 << 20, "bytes", 3,
        "Largest message sent before the receiver has matched it; at most btl_tcp_max_send."),
    ROW(coalesce_at, ST_PARAM_INT, "4", 0, 16384, "messages", 4,
        "Messages to a peer since the last progress, within a millisecond, from which on nonblocking sends of up to "
        "pml_ob1_coalesce bytes wait for the next progress and share a frame; 0: never."),
    ROW(max_send, ST_PARAM_SIZE, "132k", 1024, 4 << 20, "bytes", 4,
        "Largest payload of one frame; the same in all processes of a job."),
    ROW(pipeline_send, ST_PARAM_SIZE, "132k", 512, 4 << 20, "bytes", 4,
        "Payload of the fragments of a longer message; at most btl_tcp_max_send."),
    ROW(rdma_min, ST_PARAM_SIZE, KIB_TEXT(TCP_RDMA_MIN_KIB), 0, (uint64_t)1 << 40, "bytes", 4,
        "Shortest announced message that the receiver gets from the sender's memory, without a copy at either end; 0: "
        "none is."),
    ROW(piece, ST_PARAM_SIZE, "512k", 4096, TCP_PIECE_MAX, "bytes", 5,
        "Bytes of a put or get that are sent by one call, at most; 128k by the connection of messages."),
    ROW(unsent, ST_PARAM_SIZE, "256k", 0, 1 << 30, "bytes", 5,
        "Bytes that a socket holds before the network has room for them; then sends are refused and tried again. 0: "
        "only the send buffer's size is the limit."),
    ROW(sndbuf, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 5, "Size of a socket's send buffer; 0: the kernel adapts it."),
    ROW(rcvbuf, ST_PARAM_SIZE, "0", 0, 1 << 30, "bytes", 5,
        "Size of a socket's receive buffer; 0: the kernel adapts it."),
    ROW(latency_ns, ST_PARAM_INT, "20000", 1, 1000000000, "ns", 6, "Latency that paths are compared by, one way."),
    ROW(bandwidth_mbs, ST_PARAM_INT, "1000", 1, 1000000, "MB/s", 6,
        "Bandwidth that is the path's weight beside others."),
    ROW(connect_timeout_ms, ST_PARAM_INT, "60000", 1, 1 << 30, "ms", 4,
        "How long a peer's addresses are dialled while none of them answers; then the peer has failed. A peer that "
        "accepts the call without answering is dialled again after this time, each time with twice the limit."),
    ROW(dials, ST_PARAM_INT, "32", 1, 1 << 20, "peers", 6,
        "Peers that are dialled at a time, not counting those without an answer for 200 ms. Calls to other peers wait; "
        "these peers may call meanwhile."),
    ROW(handshake_timeout_ms, ST_PARAM_INT, "5000", 1, 1 << 30, "ms", 6,
        "How long a caller may take to prove that it belongs to the job."),
    ROW(close_timeout_ms, ST_PARAM_INT, "2000", 0, 1 << 30, "ms", 7,
        "How long closing waits for peers to receive the sent data."),
    ROW(timeout_ms, ST_PARAM_INT, "60000", 4000, 1 << 30, "ms", 4,
        "How long a peer may be unreachable before it has failed: after half of the time without an answer of its "
        "kernel a connection ends; the other half is for the next connection."),
    ROW(mend, ST_PARAM_BOOL, "1", 0, 0, NULL, 4,
        "Whether a broken connection is re-established, and lost data sent again; the same in all processes of a job. "
        "Costs a copy and 16 bytes for each message."),
    ROW(bulk, ST_PARAM_BOOL, "1", 0, 0, NULL, 5,
        "Whether puts, gets and fragments have a connection of their own, so that messages do not wait behind them."),
    ROW(zerocopy, ST_PARAM_STRING, "off", 0, 0, NULL, 5,
        "Whether payloads of puts and gets are sent without a copy in the kernel (MSG_ZEROCOPY): off; auto: on "
        "connections where it is measured to be faster; or the shortest such payload, in bytes (64k)."),
    ROW(strangers, ST_PARAM_INT, "64", 1, 4096, "connections", 6,
        "Callers at a time that have not yet proved their membership in the job; others wait in the kernel's queue."),
};

static const char *ports_number(const char *text, uint16_t *out)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (end == text || *text < '0' || *text > '9' || n == 0 || n > 65535)
        return NULL;
    *out = (uint16_t)n;
    return end;
}

bool tcp_ports_parse(const char *text, uint16_t *first, uint16_t *last)
{
    *first = *last = 0;
    if (!text || !*text)
        return true;
    text = ports_number(text, first);
    *last = *first;
    if (text && *text == '-')
        text = ports_number(text + 1, last);
    return text && !*text && *last >= *first;
}
