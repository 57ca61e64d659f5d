/* What travels between the pml_ob1 of two processes. Layouts are for processes of one architecture, in its byte order;
 * lengths, offsets and ids are checked by the receiver before they are used. An id names an object of the process that
 * made it: index and generation in its table (wire_ids.h), never an address. */
#ifndef OB1_WIRE_H
#define OB1_WIRE_H

#include <strata/sdk/btl_rdma.h>

/* Kinds of objects that are named on the wire. */
enum { OB1_ID_SEND = 1, OB1_ID_RECV, OB1_ID_PUT };

enum ob1_type {
    /* Messages: these begin with struct wire_match and carry a sequence number. */
    OB1_EAGER = 1,  /* wire_match, payload: the whole message */
    OB1_EAGER_SYNC, /* wire_sync, same; the receiver answers OB1_ACK when it has matched */
    OB1_STREAM,     /* wire_stream, payload: the first bytes; OB1_STREAM_DATA follow without being asked for */
    OB1_RNDV,       /* wire_rndv, payload: the key when OB1_F_KEY; the receiver fetches the data */
    OB1_LAST_MATCHED = OB1_RNDV,
    /* Continuations. */
    OB1_STREAM_DATA, /* wire_stream_data, payload */
    OB1_DATA,        /* wire_data, payload: part of a rendezvous, answering OB1_CTS */
    OB1_ACK,         /* wire_control: a synchronous eager message has matched */
    OB1_FIN,         /* wire_control: so many bytes of a rendezvous are done with (or, to a put's requester, were put);
                      * payload: struct wire_fin of other messages, any number */
    OB1_CTS,         /* wire_request: send this range as OB1_DATA */
    OB1_THROTTLE,    /* wire_control: bytes 1: announce messages instead of sending them; 0: go on as before. id: its
                      * number, of which the lower 8 bits count */
    OB1_PUT,         /* wire_put: put this range to this address; payload: the key where memory is registered */
    OB1_BATCH, /* wire_batch; payload: eager messages of one sender in one context, each a wire_part and its bytes */
};

enum {
    OB1_F_EXPOSED = 1u << 0, /* wire_rndv: `address` is the message's, contiguous memory */
    OB1_F_KEY = 1u << 1,     /* a key of ST_BTL_KEY_MAX bytes is the payload */
    OB1_F_ALONE = 1u << 2,   /* wire_rndv: of class OB1_ALONE (flow.h) */
    OB1_F_CROSSES = 1u << 3, /* wire_rndv: of class OB1_CROSSES */
    OB1_F_LATE = 1u << 4,    /* wire_rndv: of class OB1_LATE, or to hear of the receive */
    OB1_F_AT_ONCE = OB1_F_ALONE | OB1_F_CROSSES | OB1_F_LATE /* fetched without regard to rdma_min */
};

struct wire_match {
    uint8_t type, flags;
    uint16_t seq; /* of this sender in this context */
    uint32_t context;
    int32_t tag;
    int32_t src; /* rank of the sender in the context */
};
/* The same as two words. A transport copies a header by words right after it was written; had it been written field by
 * field, the loads would wait until every store before them, those to the peer's memory included, has left the store
 * buffer. */
union wire_match_words {
    struct wire_match match;
    uint64_t w[2];
};
_Static_assert(sizeof(struct wire_match) == 16, "two words");

static inline void ob1_match_words(union wire_match_words *h, enum ob1_type type, uint16_t seq, uint32_t context,
                                   int32_t tag, int32_t src)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    h->w[0] = (uint64_t)context << 32 | (uint32_t)seq << 16 | (uint32_t)type;
    h->w[1] = (uint64_t)(uint32_t)src << 32 | (uint32_t)tag;
#else
    h->match = (struct wire_match){.type = (uint8_t)type, .seq = seq, .context = context, .tag = tag, .src = src};
#endif
}

/* Messages that go together (coalesce.c): as many OB1_EAGER with sequence numbers from seq on. */
struct wire_batch {
    uint8_t type, flags;
    uint16_t seq;
    uint32_t context;
    uint32_t spare;
    int32_t src;
};
struct wire_part {
    int32_t tag;
    uint32_t len; /* bytes that follow, then zeros up to a multiple of WIRE_PART_ALIGN */
};
#define WIRE_PART_ALIGN 8u
static inline uint32_t wire_padded(size_t len)
{
    return (uint32_t)(len + WIRE_PART_ALIGN - 1) & ~(uint32_t)(WIRE_PART_ALIGN - 1);
}

struct wire_sync {
    struct wire_match match;
    uint64_t id; /* the sender's request */
};
struct wire_stream {
    struct wire_match match;
    uint32_t total;  /* bytes of the message */
    uint32_t stream; /* number of the stream, by sender and receiver */
};
struct wire_rndv {
    struct wire_match match;
    uint64_t length;
    uint64_t id; /* the sender's request */
    uint64_t address;
};
struct wire_stream_data {
    uint8_t type, flags;
    uint16_t spare;
    uint32_t stream;
    uint32_t offset;
    uint32_t total;
};
struct wire_data {
    uint8_t type, flags;
    uint16_t spare;
    uint32_t spare2;
    uint64_t id; /* the receiver's request */
    uint64_t offset;
};
struct wire_control {
    uint8_t type;
    uint8_t found; /* OB1_FIN of a receiver: what the announcement found (answers.h) */
    uint16_t spare;
    int32_t status;
    uint64_t id; /* of the process that this goes to */
    uint64_t bytes;
};
struct wire_fin { /* as wire_control of status STRATA_OK */
    uint64_t id;
    uint64_t bytes;
};
struct wire_request {
    uint8_t type;
    uint8_t found; /* as in wire_control */
    uint16_t spare;
    uint32_t spare2;
    uint64_t id;     /* the sender's request */
    uint64_t answer; /* CTS: the receiver's request, for OB1_DATA; PUT: for OB1_FIN */
    uint64_t offset, length;
};
struct wire_put {
    struct wire_request request;
    uint64_t address;
};
/* Any continuation, or several messages. */
union wire_any {
    uint8_t type;
    struct wire_batch batch;
    struct wire_stream_data stream_data;
    struct wire_data data;
    struct wire_control control;
    struct wire_request request;
    struct wire_put put;
};

_Static_assert(sizeof(struct wire_batch) == 16 && sizeof(struct wire_part) == WIRE_PART_ALIGN, "no padding");
_Static_assert(sizeof(struct wire_sync) == 24 && sizeof(struct wire_stream) == 24, "no padding");
_Static_assert(sizeof(struct wire_stream_data) == 16 && sizeof(struct wire_data) == 24, "no padding");
_Static_assert(sizeof(struct wire_control) == 24 && sizeof(struct wire_rndv) == 40, "no padding");
_Static_assert(sizeof(struct wire_fin) == 16, "no padding");
_Static_assert(sizeof(struct wire_request) == 40 && sizeof(struct wire_put) == 48, "no padding");
_Static_assert(sizeof(struct wire_put) <= ST_BTL_HDR_MAX, "every header fits an active message");

/* A message's header, checked and in one form. */
struct ob1_arrival {
    uint8_t type, flags;
    uint16_t seq;
    uint32_t context;
    int32_t tag, src;
    int32_t job_rank; /* of the sender, as the transport knows it */
    uint32_t stream;
    uint64_t length; /* bytes of the message */
    uint64_t id;
    uint64_t address;
    const void *data; /* payload that came along */
    uint32_t len;
    uint8_t found;      /* as on the wire, of a message that has waited for its receive; else 0 */
    struct st_btl *btl; /* that it came by */
};

/* Parses a fragment of the matched types: STRATA_OK, or STRATA_ERR_PROTOCOL when it cannot be true. */
int wire_parse(const struct st_frag *frag, struct ob1_arrival *a);

/* Longest message that may be streamed: what a peer can make us allocate by one header. */
#define OB1_STREAM_MAX (16u << 20)

#endif
