/* One end of a connection: a queue pair with its completion queues and a registered buffer, and what its peer has to
 * know. */
#ifndef VERBS_SUPPORT_END_H
#define VERBS_SUPPORT_END_H

#include "support/device.h"

/* Zero means the default that is named. Ends that share a completion queue or SRQ pass it; it is then not destroyed
 * here. */
struct end_options {
    enum ibv_qp_type type;       /* RC */
    uint32_t send_wr, recv_wr;   /* 64 */
    uint32_t send_sge, recv_sge; /* 4 */
    uint32_t inline_size;
    bool signal_all;
    size_t memory;                    /* 64 KiB */
    int mr_access;                    /* ACCESS_ALL */
    int qp_access;                    /* all remote kinds, as far as the type has them; NO_ACCESS: none */
    struct ibv_cq *send_cq, *recv_cq; /* one of its own each */
    struct ibv_srq *srq;
    uint8_t rnr_retry;     /* 7, which is for ever; NO_RNR_RETRY: 0 */
    uint8_t retry_cnt;     /* 5 */
    uint8_t timeout;       /* 14: 67 ms */
    uint8_t min_rnr_timer; /* 12: 0.64 ms */
    uint32_t cqe;          /* 256 */
};
#define NO_ACCESS    (-1)
#define NO_RNR_RETRY 255
#define UD_QKEY      0x11223344u

struct end_address {
    uint32_t qpn, psn, rkey;
    uint16_t lid;
    union ibv_gid gid;
    uint64_t addr; /* of the buffer */
};

struct end {
    struct device *dev;
    struct ibv_qp *qp;
    struct ibv_cq *send_cq, *recv_cq;
    struct memory mem;
    struct end_options opt;
    bool own_send_cq, own_recv_cq;
    uint32_t psn;
};

void end_open(struct end *e, struct device *d, const struct end_options *opt);
void end_close(struct end *e);
struct end_address end_address(const struct end *e);

/* Moves the queue pair; each returns what ibv_modify_qp returned. `without` leaves attributes of the mask out. */
int end_to_init(struct end *e, int without);
int end_to_rtr(struct end *e, const struct end_address *peer, int without);
int end_to_rts(struct end *e, int without);
int end_to_state(struct end *e, enum ibv_qp_state state); /* with no other attribute: RESET, ERR, SQD */
enum ibv_qp_state end_state(const struct end *e);
/* Waits until the queue pair is in that state. */
void end_await_state(const struct end *e, enum ibv_qp_state state);
/* RESET to RTS, connected with peer (ignored by UD). */
void end_connect(struct end *e, const struct end_address *peer);
void address_vector(const struct device *d, const struct end_address *peer, struct ibv_ah_attr *av);
struct ibv_ah *end_ah(const struct end *e, const struct end_address *peer);

/* Two connected ends in this process, of one device. */
struct pair {
    struct device dev;
    struct end a, b;
};
void pair_open(struct pair *p, const struct end_options *a, const struct end_options *b);
void pair_close(struct pair *p);
#define PAIR(pair, ...) pair_open(pair, &(struct end_options){__VA_ARGS__}, &(struct end_options){__VA_ARGS__})
/* RESET and connect again, both ends: after an error. */
void pair_reconnect(struct pair *p);

#endif
