/* What processes on one soft adapter share: a segment per process, a memfd that peers map. Everything that a peer needs
 * to deliver to a process without its help lies here: queue pairs, receive queues, completion queues, keys of memory
 * regions.
 *
 * Who writes what: the owner makes and destroys objects; peers take receives, add completions, set events, and may move
 * a queue pair to the error state. Anything read here may have been written by a broken peer: indices and offsets are
 * read once (HCA_ONCE) and checked against the constants below before use, and an owner keeps its own copies of what it
 * must rely on. The memory regions say where in a process others write, so they lie in a memfd of their own, mapped in
 * the middle of the segment, which the kernel lets nobody but its owner write. */
#ifndef SOFTHCA_SEGMENT_H
#define SOFTHCA_SEGMENT_H

#include "cost_keys.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_MAGIC     0x61636874666f733aull /* changes with the layout */
#define HCA_LINE      64u
#define HCA_CACHE     _Alignas(HCA_LINE)
#define HCA_NAME_ROOM 32

/* A queue pair's number is its process's index in the fabric and its slot there. */
#define HCA_SLOT_BITS 14u
#define HCA_PROCESSES 1024u /* index 0 is nobody's */
#define HCA_QPS       (1u << HCA_SLOT_BITS)
#define HCA_CQS       8192u
#define HCA_SRQS      1024u
#define HCA_MRS       65536u
#define HCA_FILES     64u /* that regions lie in and peers may map */
#define HCA_DEVICES   8u
#define HCA_PORTS     2u
#define HCA_MAX_SGE   32u
#define HCA_NONE      UINT32_MAX

static inline uint32_t hca_qpn(uint32_t process, uint32_t slot)
{
    return process << HCA_SLOT_BITS | slot;
}
static inline uint32_t hca_qpn_process(uint32_t qpn)
{
    return (qpn & 0xffffffu) >> HCA_SLOT_BITS;
}
static inline uint32_t hca_qpn_slot(uint32_t qpn)
{
    return qpn & (HCA_QPS - 1u);
}

/* Reads what others write, once: what was checked is what is used. */
#define HCA_ONCE(place) (*(const volatile __typeof__(place) *)&(place))

/* Descriptors of eventfds that peers may signal are named by tokens: serial number << 32 | the owner's descriptor. A
 * descriptor's number is used again, a token is not. */

/* ---- completion queues ---- */

/* State of an entry: position << 16 | process << 2 | one of these. EMPTY at position p: may be claimed for p. The
 * process in a claim is the one that is to publish it: the owner skips claims of the dead. MOVED: of a ring that has
 * been replaced. */
enum hca_cqe_kind { HCA_CQE_EMPTY, HCA_CQE_CLAIMED, HCA_CQE_FULL, HCA_CQE_MOVED };
static inline uint64_t hca_cqe_state(uint64_t position, uint32_t process, enum hca_cqe_kind kind)
{
    return position << 16 | (uint64_t)process << 2 | (uint64_t)kind;
}
static inline enum hca_cqe_kind hca_cqe_kind_of(uint64_t state)
{
    return (enum hca_cqe_kind)(state & 3u);
}
static inline uint32_t hca_cqe_process(uint64_t state)
{
    return (uint32_t)(state >> 2) & 0x3fffu;
}

struct hca_cqe {
    HCA_CACHE _Atomic(uint64_t) state;
    uint64_t id;             /* of a receive: struct hca_rwqe's; of a send: how many had been carried out with it */
    uint32_t status, opcode; /* enum ibv_wc_status, ibv_wc_opcode */
    uint32_t byte_len, imm;
    uint32_t qp_num, src_qp;
    uint32_t flags; /* enum ibv_wc_flags */
    uint16_t slid;
    uint8_t sl, path_bits, solicited, is_send;
    uint8_t parcel; /* of a receive: where its payload is, from 1; 0: where it was to go */
};
_Static_assert(sizeof(struct hca_cqe) == HCA_LINE, "an entry is a line");

enum hca_arm { HCA_ARM_NOT, HCA_ARM_SOLICITED, HCA_ARM_NEXT };

struct hca_cq {
    HCA_CACHE _Atomic(uint64_t) tail; /* next position to claim; a hint, the entries decide. Positions only grow, also
                                         from ring to ring: what is left of an old one means nothing in the next */
    _Atomic(uint32_t) arm;            /* enum hca_arm */
    _Atomic(uint32_t) events;         /* completion events that get_cq_event has not fetched */
    _Atomic(uint32_t) adding;         /* processes that are */
    /* Written seldom: the owner's polls read here and take nothing away from those who add. */
    HCA_CACHE _Atomic(uint32_t) generation; /* 0: no such queue */
    _Atomic(uint32_t) overrun;
    _Atomic(uint32_t) moving; /* the ring is being replaced */
    _Atomic(uint64_t) ring;   /* offset of struct hca_cqe[n]; n is 1 << the six lowest bits */
    uint64_t event;           /* token of the channel's descriptor; 0: no channel */
    uint64_t asynchronous;    /* token of its context's descriptor of asynchronous events */
    _Atomic(uint32_t) async;  /* bit per enum ibv_event_type that waits to be fetched */
    uint32_t context;         /* the owner's number of it */
    uint32_t bytes;           /* accounted */
};

#define HCA_RING_BITS 63ull

/* ---- receive queues, shared or not ---- */

struct hca_sge {
    uint64_t addr;
    uint32_t length, lkey;
};
struct hca_rwqe {
    uint64_t id; /* hca_receive_add: what the wr_id is, the owner alone knows */
    uint32_t n_sge;
    uint32_t unused;
    struct hca_sge sge[]; /* max_sge of the queue */
};

/* The owner adds at tail; whoever delivers takes at head, by compare-and-swap after reading the entry. */
struct hca_rq {
    HCA_CACHE _Atomic(uint64_t) head;
    _Atomic(uint64_t) tail;
    uint64_t ring; /* offset */
    uint32_t n;    /* entries, a power of two */
    uint32_t max_sge;
};

struct hca_srq {
    struct hca_rq rq;
    HCA_CACHE _Atomic(uint32_t) generation;
    _Atomic(uint32_t) limit; /* armed when not 0 */
    _Atomic(uint32_t) async;
    uint32_t pd, context;
    uint64_t asynchronous;
    uint32_t bytes;
};

/* ---- queue pairs ---- */

struct hca_qp {
    struct hca_rq rq;
    /* What each delivery and each post of the owner's reads, and hardly anybody writes. */
    HCA_CACHE _Atomic(uint32_t) generation; /* 0: no such queue pair */
    _Atomic(uint32_t) state;                /* enum ibv_qp_state; peers may set IBV_QPS_ERR */
    _Atomic(uint32_t) attention;            /* a peer moved it to the error state: the owner has to flush */
    uint32_t type, dest_qpn, pd, access, qkey;
    uint32_t recv_cq, srq; /* slots; srq HCA_NONE: own rq */
    uint32_t rq_psn;       /* expected first */
    _Atomic(uint16_t) lid; /* of its port, which may get another */
    uint16_t dlid;
    uint8_t device, port, min_rnr_timer, max_dest_rd_atomic;
    uint64_t asynchronous;
    /* What each delivery writes. */
    HCA_CACHE _Atomic(uint32_t) users; /* deliveries under way */
    _Atomic(uint32_t) async;
    _Atomic(uint64_t) received; /* messages delivered since RTR: the first must have rq_psn */
    uint32_t context, bytes;
};
_Static_assert(sizeof(struct hca_qp) <= 256, "an idle queue pair costs at most 512 bytes of shared state");

/* ---- memory regions ---- */

/* Pages were unmapped under a region. */
enum hca_gone { HCA_THERE, HCA_GONE };

/* key: slot << 8 | generation; both lkey and rkey. */
struct hca_mr {
    _Atomic(uint32_t) key;        /* 0: none */
    _Atomic(uint32_t) pd, access; /* may change under the same key */
    _Atomic(uint32_t) gone;       /* enum hca_gone */
    uint32_t last_generation;     /* so that the key of a region that is gone stays wrong */
    uint32_t watched;             /* its owner would know if the pages went away */
    uint32_t file;                /* struct hca_file that all of it lies in, from 1; 0: none that peers may map */
    uint64_t addr, length;        /* as work requests name it */
    uint64_t base;                /* where it lies in the owner's address space */
    uint64_t file_offset;         /* of base */
};
_Static_assert(sizeof(struct hca_mr) <= 64, "slots have their room");

/* A memfd that memory regions lie in. Peers find its descriptor in /proc/PID/fd, and map it if it is this file. */
struct hca_file {
    _Atomic(uint64_t) serial; /* 0: none. No other file of this process has the same, before or after */
    uint64_t device, inode;
    uint64_t bytes; /* when it got its serial: with one that has grown it gets another, so that peers map it anew */
    int32_t fd;     /* of the owner */
};

/* ---- payload on its way ---- */

/* Of a message that is too short to be worth a call of the kernel. Whoever delivers claims one in the target's segment
 * and fills it; the owner gives it free when it polls the completion, and copies to where the receive said. */
struct hca_parcel {
    HCA_CACHE _Atomic(uint32_t) holder; /* process that claimed it; 0: free */
    uint32_t unused[3];
    char bytes[];
};
/* Two sizes: what was sent last is to fit the caches, and a window of tiny messages to find a place for each. */
#define HCA_SMALL_PARCELS 128u
#define HCA_LARGE_PARCELS 32u
#define HCA_PARCELS       (HCA_SMALL_PARCELS + HCA_LARGE_PARCELS)
#define HCA_PARCEL_HEAD   ((uint32_t)offsetof(struct hca_parcel, bytes))
#define HCA_SMALL_BYTES   512u /* of a parcel, with its head */
#define HCA_LARGE_BYTES   33088u
_Static_assert(HCA_SMALL_BYTES % HCA_LINE == 0 && HCA_LARGE_BYTES % HCA_LINE == 0 && HCA_PARCELS < 256, "whole lines");
static inline uint32_t hca_parcel_room(uint32_t i)
{
    return (i < HCA_SMALL_PARCELS ? HCA_SMALL_BYTES : HCA_LARGE_BYTES) - HCA_PARCEL_HEAD;
}
#define HCA_PARCEL_ROOM (HCA_LARGE_BYTES - HCA_PARCEL_HEAD)

/* ---- the segment ---- */

struct hca_port {
    _Atomic(uint32_t) state; /* enum ibv_port_state */
};
/* Of a device: the engine that its processes have together (cost_engine.c). In the header of one of them; those of the
 * others are not used. */
struct hca_serial {
    HCA_CACHE _Atomic(uint32_t) lock; /* process that holds it */
    _Atomic(uint32_t) qpn;            /* that it had last; 0: none */
    _Atomic(uint64_t) free_at;        /* CLOCK_MONOTONIC in ns: when its last message was delivered */
};
/* Atomic operations are atomic among adapters only, as IBV_ATOMIC_HCA says: under a lock of the target. */
#define HCA_ATOMIC_LOCKS 64u

struct hca_header {
    uint64_t magic;
    uint32_t process; /* its index in the fabric */
    int32_t pid;
    char program[HCA_NAME_ROOM];
    _Atomic(uint32_t) closing;
    uint64_t kick;                         /* token: wakes the owner's engine */
    _Atomic(uint32_t) watching;            /* the watcher of registered memory has news that it may not have told */
    _Atomic(uint32_t) engine;              /* the number of the owner's thread; FUTEX_OWNER_DIED: it has ended */
    HCA_CACHE _Atomic(uint32_t) attention; /* some queue pair wants it */
    HCA_CACHE struct hca_port port[HCA_DEVICES][HCA_PORTS];
    _Atomic(uint32_t) device_gone[HCA_DEVICES];
    HCA_CACHE _Atomic(uint32_t) atomic_lock[HCA_ATOMIC_LOCKS]; /* process that holds it */
    /* High-water marks and sums of the owner, for softhca-stat. */
    HCA_CACHE _Atomic(uint32_t) top_qp, top_cq, top_srq, top_mr; /* slots beyond were never used */
    _Atomic(uint64_t) bytes_registered, bytes_adapter;
    /* Costs (cost.c), for softhca-stat: which are set, bit per enum hca_cost_key; what each is; how often it was spent.
     */
    HCA_CACHE _Atomic(uint32_t) costs;
    _Atomic(uint64_t) cost_ps[HCA_COSTS], cost_times[HCA_COSTS];
    struct hca_serial serial[HCA_DEVICES];
};

/* Bytes from slot to slot of the tables. */
#define HCA_SLOT_QP   256u
#define HCA_SLOT_CQ   128u
#define HCA_SLOT_SRQ  128u
#define HCA_SLOT_MR   64u
#define HCA_SLOT_FILE 64u

/* Sparse: pages that nobody touched take no memory. */
#define HCA_AT_QP    (64ull << 10)
#define HCA_AT_CQ    (HCA_AT_QP + (uint64_t)HCA_QPS * 256)
#define HCA_AT_SRQ   (HCA_AT_CQ + (uint64_t)HCA_CQS * 128)
#define HCA_AT_MR    (HCA_AT_SRQ + (uint64_t)HCA_SRQS * 128)
#define HCA_AT_FILES (HCA_AT_MR + (uint64_t)HCA_MRS * 64)
/* Per region: its use after it was gone has been said. Written by who notices. */
#define HCA_AT_SAID    (HCA_AT_FILES + (uint64_t)HCA_FILES * HCA_SLOT_FILE)
#define HCA_AT_PARCELS (HCA_AT_SAID + HCA_MRS)
#define HCA_AT_LARGE   (HCA_AT_PARCELS + HCA_SMALL_PARCELS * HCA_SMALL_BYTES)
#define HCA_AT_HEAP    (HCA_AT_LARGE + HCA_LARGE_PARCELS * HCA_LARGE_BYTES)
#define HCA_SIZE       (512ull << 20)
_Static_assert(sizeof(struct hca_header) <= HCA_AT_QP, "the header has its room");
_Static_assert(sizeof(struct hca_cq) <= 128 && sizeof(struct hca_srq) <= 128, "slots have their room");
_Static_assert(sizeof(struct hca_file) <= HCA_SLOT_FILE, "slots have their room");

/* The memfd of its own, which only the owner can write: memory regions and the files that they lie in. */
#define HCA_KEYS_SIZE (HCA_AT_SAID - HCA_AT_MR)
_Static_assert(HCA_AT_MR % 4096 == 0 && HCA_KEYS_SIZE % 4096 == 0, "whole pages");

static inline struct hca_qp *hca_qp_at(char *segment, uint32_t slot)
{
    return (struct hca_qp *)(void *)(segment + HCA_AT_QP + (uint64_t)slot * 256);
}
static inline struct hca_cq *hca_cq_at(char *segment, uint32_t slot)
{
    return (struct hca_cq *)(void *)(segment + HCA_AT_CQ + (uint64_t)slot * 128);
}
static inline struct hca_srq *hca_srq_at(char *segment, uint32_t slot)
{
    return (struct hca_srq *)(void *)(segment + HCA_AT_SRQ + (uint64_t)slot * 128);
}
static inline struct hca_mr *hca_mr_at(char *segment, uint32_t slot)
{
    return (struct hca_mr *)(void *)(segment + HCA_AT_MR + (uint64_t)slot * 64);
}
static inline struct hca_file *hca_file_at(char *segment, uint32_t slot)
{
    return (struct hca_file *)(void *)(segment + HCA_AT_FILES + (uint64_t)slot * HCA_SLOT_FILE);
}
static inline struct hca_parcel *hca_parcel_at(char *segment, uint32_t i)
{
    uint64_t at = i < HCA_SMALL_PARCELS ? HCA_AT_PARCELS + (uint64_t)i * HCA_SMALL_BYTES
                                        : HCA_AT_LARGE + (uint64_t)(i - HCA_SMALL_PARCELS) * HCA_LARGE_BYTES;

    return (struct hca_parcel *)(void *)(segment + at);
}
static inline _Atomic(uint8_t) *hca_said_at(char *segment, uint32_t slot)
{
    return (_Atomic(uint8_t) *)(void *)(segment + HCA_AT_SAID + slot);
}

#endif
