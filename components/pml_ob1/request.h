/* Requests: what a send or a receive that is not complete needs. */
#ifndef OB1_REQUEST_H
#define OB1_REQUEST_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/pml.h>
#include "match.h"
#include "peer.h"

struct ob1;

enum ob1_kind { OB1_SEND = 1, OB1_RECV = 2 };

/* Reasons to take the long way at completion: bits in strata_request.end_bits. */
enum {
    OB1_END_CALLBACK = 1u << 0, /* fn is called */
    OB1_END_FREED = 1u << 1,    /* nobody waits: give the storage back */
    OB1_END_BUFFERED = 1u << 2, /* a block of the attached buffer is given back */
    OB1_END_ID = 1u << 3,       /* an id is given back */
    OB1_END_REG = 1u << 4,      /* a registration is given back */
    OB1_END_QUEUED = 1u << 5,   /* complete; its callback is about to be called */
    OB1_END_LONG = 1u << 6      /* counted in long_sends of its peer */
};

struct ob1_req {
    struct strata_request head;
    strata_data_t data;
    struct ob1_peer *peer; /* once a protocol runs between us */
    uint64_t id;           /* our name for it on the wire, 0: none */
    uint64_t done;         /* bytes moved */
    uint64_t expect;       /* receive: bytes wanted (the smaller of message and room) */
    uint32_t tasks;        /* that refer to it */
    int32_t tag;           /* wanted; kept for persistent requests */
    int32_t rank;          /* wanted source, or destination */
    uint8_t mode;
    bool matched;
    bool failed; /* completes as soon as no task refers to it */
    union {
        struct { /* receive */
            struct ob1_posted posted;
            uint64_t sender_id, address;
            uint8_t offer; /* OB1_F_EXPOSED, OB1_F_KEY: what the sender lets us do with its memory; OB1_F_AT_ONCE */
            uint8_t found; /* what its announcement found, for the answer (answers.h) */
            struct st_btl *key_btl; /* that `key` is for */
        };
        struct { /* send */
            struct st_work work;
            struct ob1_cpeer *to; /* NULL: the context was freed, `seq` is set */
            uint32_t stream, stream_at;
            uint32_t context;
            int32_t src; /* my rank in it */
            uint16_t seq;
            uint8_t protocol; /* enum ob1_protocol */
            uint8_t flow;     /* enum ob1_class */
            bool heard;       /* the receiver has said what it found */
            void *block;      /* of the attached buffer */
            struct st_btl_reg *reg;
            struct st_btl *reg_btl;
            struct st_btl_op lent; /* the data is the transport's until it says that it is done */
            struct ob1 *pml;       /* for it: the context may have been freed */
        };
        struct ob1_req *next_callback;
    };
    uint8_t key[ST_BTL_KEY_MAX]; /* receive: the sender's memory */
};
_Static_assert(sizeof(struct ob1_req) <= 288, "the budget of a request");

/* request.c */
int ob1_req_name(struct ob1 *pml, struct ob1_req *req, int kind); /* gives it a name for the wire: OB1_ID_SEND, _RECV */
void ob1_req_unname(struct ob1 *pml, struct ob1_req *req);
struct ob1_req *ob1_req_make(struct ob1 *pml, enum ob1_kind kind, strata_comm_t *comm, void *storage);
void ob1_req_end_slow(struct ob1 *pml, struct ob1_req *req);
void ob1_req_fail(struct ob1 *pml, struct ob1_req *req, int rc);
void ob1_req_try_end(struct ob1 *pml, struct ob1_req *req); /* ends it when nothing is left to do */
void ob1_request_free(strata_request_t *req);
void ob1_run_callbacks(void *arg); /* struct st_client.outside */

/* A receive: copies the part of a message for which there is room. */
int ob1_recv_part(struct ob1_req *req, uint64_t offset, const void *data, uint64_t len);

/* cancel.c, persistent.c */
int ob1_cancel(strata_request_t *req);
int ob1_send_init(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
int ob1_recv_init(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
int ob1_start(strata_request_t *req);

/* wait.c */
bool ob1_drained(void *arg);                                 /* struct st_client.drained */
uint32_t ob1_wait_new(struct ob1 *pml, struct ob1_req *req); /* returns how many polls it took */
void ob1_wait_req(struct ob1 *pml, struct ob1_req *req);     /* when it has been polled for already */

#endif
