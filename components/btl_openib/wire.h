/* The wire: published cards, connection messages, and the head of every message of a connection. Both ends are little
 * endian, as everywhere in Strata. */
#ifndef IB_WIRE_H
#define IB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define IB_WIRE_VERSION 13u
#define IB_CARD_KEY     "btl_openib"
#define IB_MAX_RAILS    8u
#define IB_ADDRESSES    4u

/* Methods of connecting (method.h), by number. */
enum { IB_METHOD_UD = 1, IB_METHOD_TCP, IB_METHOD_RDMACM, IB_METHODS = IB_METHOD_RDMACM };

/* The card of one port, published under IB_CARD_KEY ".NUMBER", in order. */
struct ib_card {
    uint32_t version;
    uint32_t qpn; /* ud: of the queue pair for datagrams */
    uint64_t key; /* secret of the readers of this card: connection messages must name it */
    uint64_t job;
    uint8_t gid[16];
    uint16_t lid;
    uint8_t ethernet;
    uint8_t methods[IB_METHODS];       /* of connecting, by preference; zeroes behind them */
    uint16_t tcp_port, cm_port;        /* tcp, rdmacm: where it listens */
    uint16_t pkey;                     /* partition, with IB_PKEY_FULL for a full member; 0: not known */
    uint32_t size[2];                  /* bytes of receive buffers, by priority */
    uint8_t address[IB_ADDRESSES][16]; /* tcp: IPv6, or IPv4 mapped into it; zeroes: none */
    uint8_t cm_address[16];            /* rdmacm: likewise */
    uint64_t rails;                    /* places of all ports of the process that have a card: ib_rail_match */
    uint8_t place;                     /* of this one */
    char device[32];
};
_Static_assert(sizeof(struct ib_card) == 192, "the card is read by others of the job");

#define IB_PKEY_FULL 0x8000u

enum ib_conn_type {
    IB_CONN_REQUEST = 1,
    IB_CONN_REPLY,
    IB_CONN_READY,
    IB_CONN_FAILED, /* the sender has given up the peer and makes no connection */
    IB_CONN_MISFIT, /* the sender cannot connect: the cards do not fit */
    IB_CONN_MOVED,  /* the sender has no connection, and a new address */
    IB_CONN_BUSY,   /* the sender has no room for a connection and keeps nothing of this request: ask anew */
    /* CLOSE out of band, since that of the connection may be lost: `credits` are the messages that were sent before it,
     * of high and of low priority. TOO: the sender has received the receiver's. */
    IB_CONN_CLOSE,
    IB_CONN_CLOSE_TOO,
    IB_CONN_CLOSED /* the answer: CLOSE has arrived, and all before it */
};

/* The present address of a port: cards hold the first one. All zero: none given. */
struct ib_address {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t spare[6];
};

/* A connection message, whichever way it travels. */
struct ib_conn {
    uint32_t version;
    uint8_t type;
    uint8_t mtu;       /* enum ibv_mtu */
    uint8_t rd_atomic; /* RDMA reads that the sender serves at a time */
    uint8_t rail;
    uint64_t key;     /* of the receiver's card */
    int32_t from, to; /* ranks */
    uint32_t mine;    /* the sender's id of this attempt */
    uint32_t yours;   /* the receiver's, when it is known; of a request: the last that was closed in agreement */
    uint32_t qpn[2], credits[2]; /* sequence numbers of packets begin with ib_conn_psn */
    struct ib_address address;   /* the sender's */
};
_Static_assert(sizeof(struct ib_conn) == 72, "no padding");
/* Bytes that librdmacm carries as private data: it has its own way of finding addresses. */
#define IB_CONN_PRIVATE offsetof(struct ib_conn, address)
_Static_assert(IB_CONN_PRIVATE <= 56, "private data of a request");
#define IB_TCP_MAGIC 0x54436269u /* "ibCT": leads a message by sockets, with its size (sdk/frames.h) */
static inline uint32_t ib_conn_psn(uint32_t qpn)
{
    return qpn & 0xffffffu;
}

/* Leads every message of a connection. */
struct ib_head {
    uint8_t am;          /* enum st_am, or IB_CONTROL */
    uint8_t hdr_len;     /* and IB_HDR_KEPT: the receiver keeps the header, see below */
    uint16_t credits[2]; /* by priority: messages of the receiver's that were consumed since the last time */
    uint8_t control;     /* enum ib_control */
    uint8_t slots;       /* of the receiver's ring of eager RDMA: freed since the last time (eager_rdma/) */
};
#define IB_HEAD ((uint32_t)sizeof(struct ib_head))
/* Header of most messages, whose client is ST_AM_FREQUENT: receivers have a shorter path for these. */
#define IB_USUAL_HDR 16u /* bytes of header */
/* CLOSE, CLOSE_TOO and BYE have in the place of credits how many messages of low priority were ever sent, which the
 * peer must have got before it closes: completions of low priority may be seen after those of high. */
static inline void ib_head_set_low(struct ib_head *h, uint32_t n)
{
    h->credits[0] = (uint16_t)n;
    h->credits[1] = (uint16_t)(n >> 16);
}
static inline uint32_t ib_head_low(const struct ib_head *h)
{
    return h->credits[0] | (uint32_t)h->credits[1] << 16;
}
#define IB_CONTROL 0xffu

/* A message whose head and header would make a packet of their own goes without them, with immediate data:
 * its client and header are those of the last such message of this queue pair but for two bytes. Where there was none,
 * or more is other, it goes as all do, with IB_HDR_KEPT. In the data, from the lowest bit: credits of high and of low
 * priority, three bits each; then twice a byte of the header, its place five bits and its value eight. */
#define IB_HDR_KEPT       0x80u
#define IB_IMM_CREDITS    7u /* at most, of a priority */
#define IB_IMM_LOW_AT     3u /* bit of the credits of low priority */
#define IB_IMM_BYTES      2u
#define IB_IMM_BYTE_AT    6u /* bit of the first */
#define IB_IMM_PLACE_BITS 5u
#define IB_IMM_BYTE_BITS  (IB_IMM_PLACE_BITS + 8u)

/* An RDMA write with immediate data is a put with notice: the data are the word for ST_AM_NOTICE, and nothing else. It
 * is a message without a head, which can return no credits. One word is no notice: the write was to the next slot of a
 * ring of eager RDMA. */
#define IB_IMM_RING UINT32_C(0xf0000000)

enum ib_control {
    IB_CONTROL_CREDITS = 1,
    IB_CONTROL_BYE,
    IB_CONTROL_CLOSE,
    IB_CONTROL_CLOSE_TOO,
    IB_CONTROL_RING,    /* with a struct ib_ring_grant as header: the receiver's ring, or none any more */
    IB_CONTROL_FAREWELL /* the same, of which `word` counts: the last message to that ring was before this one */
};

#endif
