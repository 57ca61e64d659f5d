/* softhca inside one process. Its state is a singleton, because libibverbs' is: whoever loads the library has one set
 * of devices. */
#ifndef SOFTHCA_HCA_H
#define SOFTHCA_HCA_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include "segment.h"

#define HCA_INTERNAL __attribute__((visibility("hidden")))

/* Bytes of a page of the kernel (getauxval(3)): what sysconf says a preload may have changed. */
static inline size_t hca_page_size(void)
{
    return (size_t)getauxval(AT_PAGESZ);
}

#define HCA_MAX_RD_ATOMIC 16 /* RDMA reads and atomics outstanding at a queue pair */

/* ---- limits.c: what the environment (SOFTHCA_*) says ---- */

struct hca_limits {
    uint32_t devices, ports; /* SOFTHCA_DEVICES, SOFTHCA_PORTS */
    bool roce;               /* SOFTHCA_LINK=ib|roce */
    bool fixed_cq;           /* SOFTHCA_RESIZE=no: completion queues stay as long as they were made */
    bool no_datagrams;       /* SOFTHCA_UD=no: there are no queue pairs for datagrams */
    bool no_manager;         /* SOFTHCA_CM=no: there is no connection manager */
    bool arm_unpolled;       /* SOFTHCA_ARM: completions that were not polled make an event when the queue is armed */
    uint32_t max_qp, max_cq, max_srq, max_mr, max_pd, max_ah; /* a process's */
    uint32_t max_qp_wr, max_sge, max_cqe, max_srq_wr, max_inline;
    uint32_t pkeys;       /* SOFTHCA_PKEYS: entries of the table of partition keys */
    uint32_t short_most;  /* SOFTHCA_SHORT: bytes of a message that goes by a parcel */
    uint64_t max_memlock; /* bytes that may be registered; by default RLIMIT_MEMLOCK, without limit for root */
    enum ibv_mtu mtu;
};
/* Faults that come once, the Nth time from now; 0: none. Of creation: it fails with ENOMEM. Of a datagram that is sent:
 * it ends with an error, so that its queue pair goes to the state SQE; that queue pair fails, with IBV_EVENT_QP_FATAL.
 */
enum hca_fault {
    HCA_FAULT_QP,
    HCA_FAULT_MR,
    HCA_FAULT_CQ,
    HCA_FAULT_SRQ,
    HCA_FAULT_PD,
    HCA_FAULT_DATAGRAM,
    HCA_FAULT_FATAL,
    HCA_FAULTS
};
/* Faults of traffic. */
struct hca_trouble {
    _Atomic(uint32_t) drop;     /* every Nth message of this process is lost; 0: none */
    _Atomic(uint32_t) acks;     /* every Nth message of a connection arrives and is not acknowledged; 0: none */
    _Atomic(uint32_t) rnr;      /* so many deliveries in a row find the receiver not ready */
    _Atomic(uint32_t) delay_us; /* at most, before each operation: those of several queue pairs overtake each other */
    _Atomic(uint32_t) overrun;  /* the Nth completion from now finds its queue full; 0: none */
    _Atomic(uint32_t) stall;    /* every Nth completion takes 20 ms to be added; 0: none */
    _Atomic(uint32_t)
        torn_us;            /* lines of RDMA writes come in any order, with a pause of so much at most; 0: in order */
    _Atomic(uint32_t) down; /* connections of this process carry nothing */
    _Atomic(uint32_t) qp_most;                 /* no queue pair is made while there are so many; 0: any number */
    _Atomic(uint32_t) limit_lost, limit_again; /* so many limit events to be lost, to be followed by another one */
};
/* Counts of faults, and of receivers that were not ready, for tests: a fault that never came proves nothing. */
struct hca_tally {
    _Atomic(uint64_t) sent;               /* messages that could have been lost, since the command */
    _Atomic(uint64_t) dropped, datagrams; /* all, and of these by UD */
    _Atomic(uint64_t) failed;             /* of the faults that come once */
    _Atomic(uint64_t) qp_refused, limit_lost, limit_again;
    _Atomic(uint64_t) cut, cut_writes; /* messages stopped by `down`, and of these RDMA writes with data */
    _Atomic(uint64_t) not_ready;       /* deliveries that found no receive, each retry of a message by itself */
};
HCA_INTERNAL void hca_limits_read(struct hca_limits *l);    /* a bad value is said on stderr and its default holds */
HCA_INTERNAL bool hca_fault_now(enum hca_fault what);       /* true: this is the one */
HCA_INTERNAL bool hca_trouble_now(_Atomic(uint32_t) *left); /* true: one of the next so many */
/* "qp 3", "drop 10", "port soft0 1 down", ...: one command of the control socket or of SOFTHCA_FAULTS, where commas
 * separate them. Writes an answer of one line. */
HCA_INTERNAL void hca_fault_command(char *command, char *answer, size_t size);
HCA_INTERNAL extern struct hca_trouble hca_trouble;
HCA_INTERNAL extern struct hca_tally hca_tally;
HCA_INTERNAL void hca_tally_write(void); /* a line to the file SOFTHCA_TALLY, as the process ends */
HCA_INTERNAL void hca_faults_from_environment(void);

/* ---- fabric.c, peers.c: this process's place in the fabric, and its peers ---- */

#define HCA_PEER_FDS 256 /* event descriptors of a peer that we keep at most */
struct hca_peer {
    char *segment; /* mapped; our own too */
    uint32_t index;
    pid_t pid;
    int pidfd;   /* -1: ourselves, buried, or the kernel refuses it: */
    int proc_fd; /* then its folder in /proc, which is empty once it has ended; else -1 */
    _Atomic(bool) dead;
    _Atomic(bool)
        stuck; /* a lock of its, or a change that it said it was making, did not end: it is not waited for again */
    _Atomic(bool) watcher_stuck; /* nor its watcher */
    struct hca_peer_fd {
        uint64_t token;
        int ours;
    } * fds; /* event descriptors of theirs that we have */
    size_t n_fds, oldest_fd;
    _Atomic(uint32_t) next_small, next_large; /* parcels that are probably free */
    _Atomic(struct hca_mapped *) mapped;      /* mapped.c: its files, HCA_FILES of them; NULL: none yet */
    struct hca_peer *before;                  /* that had this index and has ended; buried */
};

struct hca_process {
    struct hca_limits limits;
    uint32_t index;
    char *segment;
    _Atomic(struct hca_header *) header; /* set last when the fabric is joined */
    int memory_fd, keys_fd, listen_fd, kick_fd;
    int pagemap_fd; /* /proc/self/pagemap; -1: there is none */
    _Atomic(struct hca_peer *) peer[HCA_PROCESSES];
    struct hca_qp_own *qp[HCA_QPS];
    /* Which completion queues a queue pair uses: slots + 1; 0: none. What is polled names a queue pair as a broken peer
     * may have it; one that does not use the queue is not touched. */
    struct hca_cqs_of {
        _Atomic(uint16_t) send, recv;
    } cqs_of[HCA_QPS];
    struct hca_cq_own *cq[HCA_CQS];
    _Atomic(bool) cq_moving[HCA_CQS]; /* its ring is being replaced */
    struct hca_srq_own *srq[HCA_SRQS];
    struct hca_mr_own *mr[HCA_MRS];
    /* Slots beyond were never used. These are ours; the header's are for softhca-stat, and peers can write there. */
    _Atomic(bool) device_gone[HCA_DEVICES];
    _Atomic(uint32_t) watching; /* as in our header */
    _Atomic(bool) counts_stick; /* a queue pair's count of users stayed */
    _Atomic(uint32_t) top_qp, top_cq, top_srq, top_mr;
    _Atomic(uint64_t) bytes_registered;
    struct hca_file_own {
        uint32_t regions; /* of ours in it */
        int fd;
    } file[HCA_FILES];
    uint64_t file_serial; /* the last one given */
    pthread_mutex_t lock; /* making and destroying objects, peers, tables */
};
HCA_INTERNAL extern struct hca_process hca;
/* A slot is used: raises our mark, and the one for others to see. */
static inline void hca_top_raise(_Atomic(uint32_t) *top, _Atomic(uint32_t) *shown, uint32_t slot)
{
    if (slot >= atomic_load(top)) {
        atomic_store(top, slot + 1);
        atomic_store(shown, slot + 1);
    }
}

/* Joins the fabric, once; 0 or an errno. */
HCA_INTERNAL int hca_start(void);
/* The process with this index, attached if need be; NULL when there is none (any more). */
HCA_INTERNAL struct hca_peer *hca_peer_get(uint32_t index);
HCA_INTERNAL struct hca_peer *hca_peer_find(uint32_t index); /* the same, under hca.lock */
HCA_INTERNAL bool hca_peer_dead(struct hca_peer *p);
/* Adds 1 to an eventfd of ours, if the token is one: what a peer asks for that cannot have the descriptor. */
HCA_INTERNAL void hca_signal_here(uint64_t token);
/* The same by what the kernel leaves in shared memory: at once, and before the pid can be another's. */
HCA_INTERNAL bool hca_peer_ended(struct hca_peer *p);
/* A name for an eventfd of ours that peers may signal; 0: no memory. hca_token_end: before the descriptor is closed. */
HCA_INTERNAL uint64_t hca_token(int fd);
HCA_INTERNAL void hca_token_end(uint64_t token);
HCA_INTERNAL void hca_peers_in_child(void); /* after fork */
/* Adds 1 to an eventfd of a peer (or of our own); 0: none. */
HCA_INTERNAL void hca_peer_signal(struct hca_peer *p, uint64_t token);
/* A spin lock in p's shared memory that survives its holder's death. Who waits keeps its processor for `patience`
 * turns. False: its holder lives and does not let go of it. */
HCA_INTERNAL bool hca_shared_lock(struct hca_peer *p, _Atomic(uint32_t) *lock, uint32_t patience);
HCA_INTERNAL void hca_shared_unlock(_Atomic(uint32_t) *lock);

/* ---- patience.c ---- */

struct hca_patience { /* all 0: none is waited for yet */
    const struct hca_peer *of;
    uint64_t begin_ns, used_ns;
};
/* Whether a process that lives has had the processor for long enough, since the first call about it, to end what is
 * waited for. */
HCA_INTERNAL bool hca_patience_over(const struct hca_peer *p, struct hca_patience *w);

/* ---- heap.c: queue memory in the segment; slots of the tables. Under hca.lock. ---- */

HCA_INTERNAL uint64_t hca_heap_alloc(size_t bytes); /* an offset, zeroed; 0: none left */
HCA_INTERNAL void hca_heap_free(uint64_t offset, size_t bytes);
/* The lowest slot of a table of pointers that is free, from *hint on, and below `limit`; HCA_NONE: all taken. */
HCA_INTERNAL uint32_t hca_slot_find(void *const table[], uint32_t limit, uint32_t *hint);
HCA_INTERNAL uint32_t hca_pow2(uint32_t n);

/* ---- objects: the verbs structs that programs see come first in ours ---- */

struct hca_context {
    struct hca_device *device;
    uint32_t number;                                /* distinguishes contexts of this process; from 1 */
    uint64_t asynchronous;                          /* hca_token(async_fd) */
    _Atomic(uint32_t) async, port_async[HCA_PORTS]; /* bits of events of the device and its ports */
    struct hca_context *next;
    struct verbs_context v; /* last: v.context is what programs hold */
};
static inline struct hca_context *hca_context(struct ibv_context *c)
{
    return (struct hca_context *)(void *)((char *)c - offsetof(struct hca_context, v.context));
}
struct hca_device {
    struct ibv_device ibv;
    const void *provider; /* NULL: providers recognize devices of theirs by what they have in this place */
    uint32_t index;
};
HCA_INTERNAL uint64_t hca_now_ns(void); /* CLOCK_MONOTONIC */
HCA_INTERNAL bool hca_is_ours(const struct ibv_context *c);
HCA_INTERNAL bool hca_is_device(const struct ibv_device *d); /* of ours */
HCA_INTERNAL bool hca_device_gone(uint32_t device);          /* removed, by a command */
#define HCA_GIDS 8                                           /* entries of a port's table */
/* 0, EINVAL (no such entry), ENODATA (empty), EIO. */
HCA_INTERNAL int hca_gid_entry(uint32_t device, uint32_t port, uint32_t index, struct ibv_gid_entry *e);
/* Commands: after hca_start(). */
HCA_INTERNAL void hca_port_set(uint32_t device, uint32_t port, bool up);
HCA_INTERNAL void hca_device_remove(uint32_t device);
/* The port gets its nth address, from 0, in this process. */
#define HCA_ADDRESSES 200u
HCA_INTERNAL void hca_port_readdress(uint32_t device, uint32_t port, uint32_t n);
HCA_INTERNAL void hca_set_address(uint32_t device, uint32_t port, uint32_t n); /* without a word to anybody */
HCA_INTERNAL uint16_t hca_lid(uint32_t device, uint32_t port);                 /* port from 1 */
HCA_INTERNAL void hca_gid(uint32_t device, uint32_t port, union ibv_gid *gid);
HCA_INTERNAL bool hca_gid_place(const union ibv_gid *gid, uint32_t *device, uint32_t *port);
/* Where an address leads: the LID of a port of the fabric; 0: nowhere. */
HCA_INTERNAL uint16_t hca_route(const struct ibv_ah_attr *a);
HCA_INTERNAL bool hca_port_up(const char *segment, uint32_t device, uint32_t port);

struct hca_pd_own {
    struct ibv_pd ibv;
    uint32_t number; /* protection domains are compared by it, in shared memory; from 1 */
    _Atomic(uint32_t) users;
};
struct hca_ah_own {
    struct ibv_ah ibv;
    struct ibv_ah_attr attr;
    _Atomic(uint32_t) holders; /* its owner, and each datagram that was posted and is not over */
    _Atomic(bool) destroyed;
};
struct hca_mr_own {
    struct ibv_mr ibv;
    uint32_t slot;
    unsigned access;
};
struct hca_cq_own {
    struct ibv_cq ibv;
    struct hca_cq *shared;
    struct hca_cqe *ring;
    uint32_t slot, n, mask;
    uint64_t head;
    _Atomic(struct hca_cqe *) next; /* the entry at head: looked at without the lock, to see that there is nothing */
    _Atomic(uint32_t) users;        /* queue pairs */
    uint32_t claimed;               /* polls in a row that met the same claim */
    uint64_t claimed_ns;            /* when it was looked at last, or the first of those was not soon over */
    bool unsettled;                 /* at the last resize somebody who was adding did not end in time, and may never */
    uint32_t fetched_events, fetched_async;
    _Atomic(uint32_t) armed; /* how often: there are no more events */
    struct hca_cq_own *channel_next;
    pthread_mutex_t lock;
};
/* receives.c: receives that were posted and whose completions were not polled. */
struct hca_posted {
    uint64_t wr_id, room; /* bytes */
    struct hca_sge only;  /* its list, if that has one entry; else of no bytes */
};
struct hca_receive {
    uint64_t wr_id;
    uint32_t room_or_next;    /* bytes; of a free place: the next free one */
    _Atomic(uint32_t) serial; /* odd: taken */
    struct hca_sge only;
};
struct hca_receives {
    struct hca_receive *of;
    uint32_t n, free;           /* under the lock of the queue */
    _Atomic(uint32_t) returned; /* free ones as well, for when there are no others */
    /* Of the queue, under its lock: how many were ever added, and how many of them had been taken when we last looked.
     * Peers take receives all the time, and each look at their line costs them and us a miss. */
    uint64_t added, taken;
};
struct hca_srq_own {
    struct ibv_srq ibv;
    struct hca_srq *shared;
    char *ring;
    uint32_t slot, n, max_wr, max_sge;
    struct hca_receives receives;
    uint64_t bytes;
    _Atomic(uint32_t) users;
    uint32_t fetched_async;
    pthread_mutex_t lock;
};

/* A work request of a send queue. */
struct hca_swqe {
    uint64_t wr_id;
    union {
        uint64_t remote_addr;
        struct hca_ah_own *handle; /* of a datagram, held until that is over */
    };
    uint64_t compare_add, swap;
    uint32_t opcode, flags, imm, rkey, length;
    uint32_t n_sge, remote_qpn, remote_qkey;
    struct ibv_ah_attr ah;
    uint32_t said;        /* enum ibv_wc_status + 1 once it has a completion */
    struct hca_sge sge[]; /* or inline data: flags & IBV_SEND_INLINE */
};
/* Room for entries of a send queue: a power of two, doubled when they are all taken. */
struct hca_sq {
    struct hca_sq *older; /* until the queue pair ends: who polls may be reading it */
    uint32_t n;
    _Alignas(16) char entries[];
};
#define HCA_LINES 3
struct hca_qp_own {
    struct ibv_qp ibv;
    struct hca_qp *shared;
    uint32_t slot, type, max_send_wr, max_send_sge, max_recv_wr, max_recv_sge, max_inline;
    bool sq_sig_all;
    char *rq_ring;
    uint32_t rq_n;
    uint64_t rq_bytes;
    struct hca_receives receives;
    struct ibv_qp_attr attr; /* as set */
    _Atomic(bool) may_be_written;
    struct hca_pd_own *pd;
    struct hca_cq_own *send_cq, *recv_cq;
    struct hca_srq_own *srq;
    struct ibv_qp_init_attr init;
    /* The send queue: entries [sq_free, sq_tail) are taken, [sq_next, sq_tail) are still to be carried out. */
    _Atomic(struct hca_sq *) sq;
    uint32_t sq_n, sq_stride; /* sq_n: entries at most */
    uint32_t sq_tail, sq_next;
    _Atomic(uint32_t) sq_done;  /* follows sq_next, for who polls */
    _Atomic(uint32_t) sq_freed; /* by polling; sq_free follows it */
    uint32_t sq_free;
    uint32_t psn_sent; /* messages since RTS */
    bool charged;      /* of some send; the last one is charged_send, as sq_next counts (cost_data.c) */
    uint32_t charged_send;
    unsigned tries, rnr_tries;
    uint32_t carried;  /* messages that have arrived while the fault `acks` is set */
    bool unheard;      /* the message has arrived, and its acknowledgement was lost */
    bool delayed;      /* by a fault, once */
    bool tell_drained; /* IBV_EVENT_SQ_DRAINED is to come */
    uint8_t peer_rnr_timer;
    const void *lines[HCA_LINES]; /* of the target's, which the last message wrote; NULL at first */
    uint64_t retry_at;            /* ns; 0: not waiting */
    uint32_t fetched_async;
    struct hca_qp_own *pending_next;
    bool pending;
    pthread_mutex_t lock, rq_lock;
};

/* A queue pair's state. Peers may set IBV_QPS_ERR; if it is no state at all, that is what a broken one meant. */
static inline uint32_t hca_qp_state(const struct hca_qp *q)
{
    uint32_t state = atomic_load_explicit(&q->state, memory_order_acquire);

    return state <= IBV_QPS_ERR ? state : IBV_QPS_ERR;
}

static inline struct hca_swqe *hca_swqe_at(const struct hca_qp_own *qp, uint32_t i)
{
    /* Acquire: pairs with hca_sq_grow. */
    struct hca_sq *sq = atomic_load_explicit(&qp->sq, memory_order_acquire);

    return (struct hca_swqe *)(void *)(sq->entries + (size_t)(i & (sq->n - 1)) * qp->sq_stride);
}

/* pd.c */
HCA_INTERNAL void hca_ah_let_go(struct hca_ah_own *ah);
/* The next work request has been carried out, with a completion of `status` or without one. Under qp->lock. */
static inline void hca_send_over(struct hca_qp_own *qp, bool completes, uint32_t status)
{
    if (qp->type == IBV_QPT_UD)
        hca_ah_let_go(hca_swqe_at(qp, qp->sq_next)->handle);
    if (completes)
        hca_swqe_at(qp, qp->sq_next)->said = status + 1;
    /* Release: who polls the completion reads the entry. */
    atomic_store_explicit(&qp->sq_done, ++qp->sq_next, memory_order_release);
}

/* The verbs themselves, for devices of ours: as libibverbs' functions of the same name, with errors as errno (pointers:
 * NULL and errno set). interpose.c exports them and passes other devices through. */

/* device.c */
HCA_INTERNAL size_t hca_devices(struct hca_device **first);
HCA_INTERNAL struct ibv_context *hca_open_device(struct hca_device *d);
HCA_INTERNAL int hca_close_device(struct ibv_context *c);
HCA_INTERNAL int hca_query_device(struct ibv_context *c, struct ibv_device_attr *a);
HCA_INTERNAL int hca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a);
HCA_INTERNAL int hca_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid);
HCA_INTERNAL int hca_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey);
HCA_INTERNAL uint64_t hca_guid(const struct hca_device *d); /* network order */
/* pd.c */
HCA_INTERNAL struct ibv_pd *hca_alloc_pd(struct ibv_context *c);
HCA_INTERNAL int hca_dealloc_pd(struct ibv_pd *pd);
HCA_INTERNAL struct ibv_ah *hca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a);
HCA_INTERNAL int hca_destroy_ah(struct ibv_ah *ah);
HCA_INTERNAL int hca_init_ah_from_wc(struct ibv_context *c, uint8_t port, const struct ibv_wc *wc,
                                     const struct ibv_grh *grh, struct ibv_ah_attr *a); /* 0 or an errno */
/* mr.c */
HCA_INTERNAL struct ibv_mr *hca_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access);
HCA_INTERNAL int hca_dereg_mr(struct ibv_mr *mr);
/* Gives a region another domain and other rights, under the same keys; 0 or an errno. */
HCA_INTERNAL int hca_mr_allow(struct ibv_mr *mr, struct ibv_pd *pd, unsigned access);
/* rereg.c: 0 or an enum ibv_rereg_mr_err_code */
HCA_INTERNAL int hca_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                              unsigned access);
/* Whether a region of `segment`'s process has this key, covers the range, belongs to pd and grants all of `access`;
 * *addr becomes an address of that process. A range of no bytes needs no region. */
HCA_INTERNAL bool hca_mr_check(char *segment, uint32_t key, uint32_t pd, uint64_t *addr, uint64_t length,
                               unsigned access);
/* memory.c: notices when pages of a region go away: it is marked, and that is said on stderr. Under hca.lock. */
HCA_INTERNAL bool hca_watch(const struct hca_mr *mr); /* false: nobody would notice */
HCA_INTERNAL void hca_unwatch(const struct hca_mr *mr);
/* backing.c: the memfd that a region of ours lies in, for peers to map. */
struct hca_backing {
    uint64_t device, inode;
    uint64_t offset, end; /* of the region in the file */
};
/* False: the range is not all in writable MAP_SHARED mappings of one file, in the file's order. */
HCA_INTERNAL bool hca_backing_find(const void *addr, size_t length, struct hca_backing *b);
/* The file's number in the segment, from 1, held for one region; 0: peers may not map it. Under hca.lock. */
HCA_INTERNAL uint32_t hca_file_hold(const struct hca_backing *b);
HCA_INTERNAL void hca_file_let_go(uint32_t number); /* 0: nothing is done. Under hca.lock */
HCA_INTERNAL void hca_files_in_child(void);         /* after fork */
/* mapped.c: files of a peer that are mapped here. Held: nobody unmaps it. NULL: it cannot be mapped. */
HCA_INTERNAL char *hca_mapped_hold(struct hca_peer *p, uint32_t number, uint64_t serial, uint64_t *bytes);
HCA_INTERNAL void hca_mapped_let_go(struct hca_peer *p, uint32_t number);
/* Unmaps those that no region lies in any more; all of a peer that has ended. Under hca.lock. */
HCA_INTERNAL void hca_mapped_trim(struct hca_peer *p);
/* cq.c */
HCA_INTERNAL struct ibv_cq *hca_create_cq(struct ibv_context *c, int cqe, void *user, struct ibv_comp_channel *channel,
                                          int vector);
HCA_INTERNAL int hca_resize_cq(struct ibv_cq *cq, int cqe);
HCA_INTERNAL int hca_destroy_cq(struct ibv_cq *cq);
HCA_INTERNAL int hca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
HCA_INTERNAL int hca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Adds a completion to a queue of any process; `e` says what (its state is ignored). Signals the channel if it is
 * armed. A parcel that does not arrive is given free. */
HCA_INTERNAL void hca_cq_push(struct hca_peer *p, uint32_t cq_slot, const struct hca_cqe *e);
/* A completion has found no room: nothing is added any more. */
HCA_INTERNAL void hca_cq_overrun(struct hca_peer *p, struct hca_cq *cq);
/* Says to who has armed it that something was added. */
HCA_INTERNAL void hca_cq_notify(struct hca_peer *p, struct hca_cq *cq, bool solicited);
/* Takes out what a queue pair left in a queue of its own process. for_good: it will have no more completions there. */
HCA_INTERNAL void hca_cq_clean(struct hca_cq_own *cq, struct hca_qp_own *qp, bool for_good);
/* completion.c, under the queue's lock. False: it is of nobody, or cannot be. */
HCA_INTERNAL bool hca_completion(const struct hca_cq_own *cq, const struct hca_cqe *e, struct ibv_wc *wc);
HCA_INTERNAL void hca_completion_drop(struct hca_qp_own *qp, const struct hca_cqe *e); /* nobody will poll it */
/* receives.c: a table for n receives; false: no memory. */
HCA_INTERNAL bool hca_receives_make(struct hca_receives *r, uint32_t n);
HCA_INTERNAL void hca_receives_free(struct hca_receives *r);
/* A new id, under the lock of the queue. False: all n are outstanding. */
HCA_INTERNAL bool hca_receive_add(struct hca_receives *r, const struct hca_posted *what, uint64_t *id);
/* What an outstanding receive was posted as; it is over. False: there is none of that id. */
HCA_INTERNAL bool hca_receive_end(struct hca_receives *r, uint64_t id, struct hca_posted *what);
HCA_INTERNAL void hca_receives_forget(struct hca_receives *r); /* ends all */
/* channel.c */
HCA_INTERNAL struct ibv_comp_channel *hca_create_comp_channel(struct ibv_context *c);
HCA_INTERNAL int hca_destroy_comp_channel(struct ibv_comp_channel *channel);
HCA_INTERNAL int hca_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user);
HCA_INTERNAL void hca_ack_cq_events(struct ibv_cq *cq, unsigned n);
HCA_INTERNAL uint64_t hca_channel_token(const struct ibv_comp_channel *channel);
HCA_INTERNAL void hca_channel_add(struct ibv_comp_channel *channel, struct hca_cq_own *cq);
HCA_INTERNAL void hca_channel_remove(struct ibv_comp_channel *channel, struct hca_cq_own *cq);
HCA_INTERNAL int hca_get_async_event(struct ibv_context *c, struct ibv_async_event *event);
HCA_INTERNAL void hca_ack_async_event(struct ibv_async_event *event);
/* What nobody fetched goes with its object. */
HCA_INTERNAL void hca_async_forget(struct ibv_context *c, _Atomic(uint32_t) *word);
HCA_INTERNAL extern struct hca_context *hca_contexts; /* list of the open ones, under hca.lock; device.c keeps it */
/* Sets an event's bit in an object's word and wakes whoever waits at the context's descriptor
 * (hca_context.asynchronous, and the word of that name of each object). Once until it is fetched. */
HCA_INTERNAL void hca_async(struct hca_peer *p, _Atomic(uint32_t) *word, uint64_t token, enum ibv_event_type what);
/* srq.c, rq.c */
HCA_INTERNAL struct ibv_srq *hca_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a);
HCA_INTERNAL int hca_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *a, int mask);
HCA_INTERNAL int hca_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *a);
HCA_INTERNAL int hca_destroy_srq(struct ibv_srq *srq);
/* Raises the limit event, once, when fewer receives than the limit are left. */
HCA_INTERNAL void hca_srq_look(struct hca_peer *p, struct hca_srq *srq);
HCA_INTERNAL int hca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
HCA_INTERNAL int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
HCA_INTERNAL size_t hca_rq_bytes(uint32_t n, uint32_t max_sge); /* of a ring */
/* Takes a receive from a queue that lies in `segment`, into *id, sge, *n_sge. False: there is none, or it makes no
 * sense. */
HCA_INTERNAL bool hca_rq_take(char *segment, struct hca_rq *rq, uint64_t *id, struct hca_sge sge[HCA_MAX_SGE],
                              uint32_t *n_sge);
/* qp.c */
HCA_INTERNAL struct ibv_qp *hca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a);
HCA_INTERNAL int hca_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init);
HCA_INTERNAL int hca_destroy_qp(struct ibv_qp *qp);
HCA_INTERNAL void
hca_sends_forget(struct hca_qp_own *qp); /* that were posted: they are not carried out. Under qp->lock */
/* quiesce.c: waits, bounded, for deliveries that are under way: to a queue pair, whose count of users is 0 then; to all
 * of a protection domain's. Without hca.lock: a delivery may need it. */
HCA_INTERNAL void hca_qp_quiesce(struct hca_qp_own *qp);
HCA_INTERNAL void hca_pd_quiesce(uint32_t pd);
/* qp_modify.c */
HCA_INTERNAL int hca_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask);
/* flush.c: all that is outstanding ends with IBV_WC_WR_FLUSH_ERR. Under the queue pair's locks: neither may be held. */
HCA_INTERNAL void hca_qp_flush(struct hca_qp_own *qp);
HCA_INTERNAL bool hca_qp_try_flush(struct hca_qp_own *qp); /* the same, not waiting for locks; false: one was taken */
HCA_INTERNAL void hca_flush_sends(struct hca_qp_own *qp);  /* the sends alone, under qp->lock */
/* A queue pair of any process goes to the error state; its owner is told to flush. `event` -1: none. */
HCA_INTERNAL void hca_qp_break(struct hca_peer *p, struct hca_qp *qp, int event);
/* send_room.c: the first room of a send queue, and twice as much of it: 0 or ENOMEM. The latter under qp->lock. */
HCA_INTERNAL int hca_sq_make(struct hca_qp_own *qp);
HCA_INTERNAL int hca_sq_grow(struct hca_qp_own *qp);
HCA_INTERNAL void hca_sq_free(struct hca_qp_own *qp);
/* send.c */
HCA_INTERNAL uint32_t hca_wc_opcode(uint32_t wr_opcode);
HCA_INTERNAL int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* engine.c: carries out what send queues hold, at once where that is possible; what has to wait (receiver not ready,
 * peer that does not answer) is tried again by poll_cq and by a thread. */
HCA_INTERNAL void hca_engine_run(struct hca_qp_own *qp); /* under qp->lock */
HCA_INTERNAL void hca_engine_poll(void);                 /* cheap when nothing waits */
HCA_INTERNAL int hca_engine_start(void);
HCA_INTERNAL void hca_engine_in_child(void);                /* after fork: the thread is not there */
HCA_INTERNAL void hca_engine_forget(struct hca_qp_own *qp); /* before it is freed */
/* deliver.c: carries out one work request. */
enum hca_outcome { HCA_DONE, HCA_AGAIN_RNR, HCA_AGAIN_LOST };
/* HCA_DONE: *status says how it ended, IBV_WC_SUCCESS or why the queue pair goes to the error state. */
HCA_INTERNAL enum hca_outcome hca_deliver(struct hca_qp_own *qp, const struct hca_swqe *w, enum ibv_wc_status *status);
HCA_INTERNAL enum hca_outcome hca_deliver_ud(struct hca_qp_own *qp, const struct hca_swqe *w,
                                             enum ibv_wc_status *status);
/* transfer.c: copies between lists of this process and a peer's. */
enum hca_copied { HCA_COPIED, HCA_LOCAL_FAULT, HCA_REMOTE_FAULT, HCA_NOBODY };
/* HCA_WRITE_IN_ORDER: the last byte becomes visible last, which costs the kernel a second look for the page. */
enum hca_way { HCA_READ, HCA_WRITE, HCA_WRITE_IN_ORDER };
/* Whether the kernel lets us copy at all: 0 or an errno, which it says on stderr with the call. */
HCA_INTERNAL int hca_transfer_check(void);
HCA_INTERNAL enum hca_copied hca_transfer(struct hca_peer *p, enum hca_way way, const struct hca_sge *local,
                                          uint32_t n_local, const struct hca_sge *remote, uint32_t n_remote,
                                          uint64_t length);
/* parcel.c: messages that the kernel need not copy. */
struct hca_source {
    struct hca_sge sge[HCA_MAX_SGE];
    uint32_t n;
    bool is_inline;
};
/* Whether a copy of ours may read it: pages that have gone would be a signal, not an error. */
HCA_INTERNAL bool hca_source_readable(const struct hca_source *s);
/* The parcel, from 1, with the list's first `length` bytes; 0: there is none for them. */
HCA_INTERNAL uint32_t hca_parcel_send(struct hca_peer *p, const struct hca_source *from, uint64_t length);
/* Copies from a parcel of ours to where a receive of domain `pd` said; false: that may not be written. */
HCA_INTERNAL bool hca_parcel_open(uint32_t number, uint32_t pd, const struct hca_sge *into, uint32_t length);
HCA_INTERNAL void hca_parcel_free(char *segment, uint32_t number); /* 0, and what is none: nothing is done */
/* store.c: an RDMA write without a system call, to where hca_mr_check() says; to->lkey is the key. The last byte
 * becomes visible last. False: nothing was written, and it is for the kernel. */
HCA_INTERNAL bool hca_store(struct hca_peer *p, const struct hca_source *from, const struct hca_sge *to);
/* torn.c: writes by `write` line by line, for the fault `torn`. What a line ends with is what the write does. */
typedef enum hca_copied (*hca_write_fn)(struct hca_peer *p, const struct hca_source *from, const struct hca_sge *to);
HCA_INTERNAL enum hca_copied hca_torn_write(uint32_t most_us, struct hca_peer *p, const struct hca_source *from,
                                            const struct hca_sge *to, hca_write_fn write);
/* control.c: the control socket, for the engine's thread: a descriptor that is readable when there is something to do
 * (the listening socket or a connection; -1: none), and doing it, without waiting. */
HCA_INTERNAL int hca_control_fd(void);
HCA_INTERNAL void hca_control_serve(void);

#endif
