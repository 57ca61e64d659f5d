/* Bytes that btl_tcp publishes and sends. Numbers are in the byte order of the machine; a peer of the other order is
 * refused by the magic number. */
#ifndef TCP_WIRE_H
#define TCP_WIRE_H

#include <assert.h>
#include <stdint.h>

/* Names this version of the protocol. */
#define TCP_MAGIC     0x54634105u
#define TCP_KEY       32u /* bytes of a process's key */
#define TCP_NONCE     16u
#define TCP_PROOF     32u
#define TCP_ADDRESSES 8u /* published by a process at most */

/* An address that a process listens at. */
struct tcp_address {
    uint8_t ip[16];    /* IPv4 is mapped */
    uint8_t prefix;    /* bits of the network's part, of 128 */
    uint8_t flags;     /* TCP_VIRTUAL, TCP_LOOPBACK */
    uint8_t interface; /* the same for addresses of one interface, below TCP_ADDRESSES */
    uint8_t speed;     /* of the interface, as tcp_speed_code; 0: not known */
};
#define TCP_VIRTUAL  1u /* of a bridge of containers or virtual machines: other machines may have the same one */
#define TCP_LOOPBACK 2u /* reaches processes of the same machine only */

/* Published by each process for the others of its job. */
struct tcp_card {
    uint32_t magic;
    uint16_t port;
    uint16_t n; /* addresses */
    uint8_t key[TCP_KEY];
    struct tcp_address address[TCP_ADDRESSES];
};
static_assert(sizeof(struct tcp_card) == 40 + TCP_ADDRESSES * 20, "no holes: the card is published as it is");

/* ---- handshake: the dialler sends HELLO, the listener CHALLENGE, the dialler RESPONSE, then VERDICT and READY ---- */

enum tcp_kind { TCP_HELLO = 1, TCP_CHALLENGE, TCP_RESPONSE, TCP_VERDICT, TCP_READY };
enum tcp_verdict {
    TCP_NONE = 0,  /* the other side decides */
    TCP_ACCEPT,    /* this connection is the one of the pair */
    TCP_DUPLICATE, /* the pair has another one */
    TCP_GONE,      /* the peer was lost or has left: there will be none */
    TCP_VERDICTS
};

/* What a connection is for. */
enum tcp_role {
    TCP_FIRST, /* the connection of the pair */
    TCP_BULK,  /* beside it, of the same epoch: pieces of puts and answers, fragments of long messages */
    TCP_ROLES
};

struct tcp_head {
    uint32_t magic;
    uint16_t kind;    /* enum tcp_kind */
    uint16_t verdict; /* enum tcp_verdict; of HELLO and CHALLENGE 0 */
};
struct tcp_hello {
    struct tcp_head head;
    uint32_t from, to; /* ranks */
    uint32_t max_send;
    uint32_t epoch; /* connections of the pair that the sender knows to be over */
    uint32_t role;  /* enum tcp_role */
    uint8_t nonce[TCP_NONCE];
};
struct tcp_challenge {
    struct tcp_head head;
    uint32_t max_send;
    uint32_t epoch; /* as in tcp_hello */
    uint8_t nonce[TCP_NONCE];
    uint8_t proof[TCP_PROOF];
};
struct tcp_response {
    struct tcp_head head;
    uint8_t proof[TCP_PROOF];
};
static_assert(sizeof(struct tcp_head) == 8 && sizeof(struct tcp_hello) == 44 && sizeof(struct tcp_challenge) == 64 &&
                  sizeof(struct tcp_response) == 40,
              "no holes");

/* ---- frames, after the handshake ---- */

/* In front of each message; header and payload follow, then zeroes up to a multiple of TCP_ALIGN. */
struct tcp_frame {
    uint32_t len; /* of the payload, with TCP_PUT and TCP_GOT including tcp_move.lead */
    uint8_t kind; /* enum tcp_frame_kind */
    uint8_t am;
    uint8_t hdr_len;
    uint8_t pad;
    uint32_t done; /* puts of the other side that have been written, of this connection, modulo 2^32 */
    uint32_t spare;
};
enum tcp_frame_kind {
    TCP_DATA = 0xd1,
    TCP_GOODBYE = 0xd2,
    TCP_PUT = 0xd3,      /* a piece of a put; header: struct tcp_move */
    TCP_GET = 0xd4,      /* asks for memory; header: struct tcp_move */
    TCP_GOT = 0xd5,      /* a piece of the answer; header: struct tcp_move */
    TCP_DONE = 0xd6,     /* only `done` */
    TCP_ASK_BULK = 0xd7, /* the receiver, who has dialled the first connection, is asked to dial the second */
    TCP_NO_BULK = 0xd8   /* there will be no second connection */
};
/* A frame thus begins at a multiple of 64 bytes of the stream, and of the kernel's pages where it starts anew, which it
 * does when everything has been acknowledged. A payload with the same address
 * modulo 64 as its place in the stream is then copied without collisions (st_copy_collides). */
#define TCP_ALIGN 64u
static_assert(sizeof(struct tcp_frame) % 16 == 0, "headers are aligned");

/* Names registered memory to a peer; travels in the first bytes of a key. */
struct tcp_key {
    uint64_t secret; /* of this registration; never 0 */
    uint32_t index;  /* in the table of its module */
    uint32_t zero;
};

/* Header of TCP_PUT, TCP_GET and TCP_GOT. The payload begins behind `lead` bytes of no meaning, so that the copy to the
 * kernel does not collide. */
struct tcp_move {
    uint64_t address;   /* in the receiver's memory: of the payload, or wanted; TCP_GOT: place in the answer */
    struct tcp_key key; /* of that memory; TCP_GOT: zeroes */
    uint64_t length;    /* TCP_GET: bytes wanted */
    uint32_t id;        /* of a get: chosen by who asks */
    uint32_t word;      /* with TCP_NOTICE */
    uint8_t what;       /* TCP_LAST, TCP_NOTICE */
    uint8_t lead;       /* below TCP_ALIGN */
    uint8_t pad[6];
};
#define TCP_LAST   1u /* the last piece of its put */
#define TCP_NOTICE 2u /* `word` is a notice; with TCP_LAST */
static_assert(sizeof(struct tcp_move) == 48, "a frame's head is as long as its alignment");

/* Bytes of a frame on the wire. */
static inline uint32_t tcp_frame_bytes(uint32_t hdr_len, uint32_t len)
{
    return (uint32_t)(sizeof(struct tcp_frame) + hdr_len + len + TCP_ALIGN - 1) & ~(TCP_ALIGN - 1);
}

#endif
