/* The connection manager, as the kernel module rdma_ucm has it for librdmacm: what a program writes to
 * /dev/infiniband/rdma_cm is a command (rdma/rdma_user_cm.h), and is carried out in the process itself. Connection
 * messages travel by sockets with abstract names, one for each connection, so each end learns at once that the other
 * process has ended. No thread: a channel's descriptor is an epoll set with the sockets of its identifiers in it, so it
 * is readable when there may be something to hear, and whoever then asks for an event hears it. */
#ifndef SOFTHCA_CM_H
#define SOFTHCA_CM_H

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include "hca.h"

enum cm_state {
    CM_IDLE,      /* made, perhaps bound */
    CM_LISTENING, /* requests are accepted at its socket */
    CM_ADDRESSED, /* both addresses are known */
    CM_ROUTED,    /* and the way between them */
    CM_ASKING,    /* REQUEST was sent */
    CM_EXPECTING, /* accepted from a listener; REQUEST is to come */
    CM_ASKED,     /* REQUEST has come */
    CM_ANSWERING, /* RESPONSE was sent */
    CM_ANSWERED,  /* RESPONSE has come */
    CM_UP,        /* READY was sent, or has come; of datagrams: RESPONSE was sent, or has come */
    CM_OVER       /* refused, disconnected, or failed */
};

/* Numbers of events: enum rdma_cm_event_type, whose header cannot be included beside the kernel's. */
enum cm_event_code {
    CM_EVENT_ADDR_RESOLVED = 0,
    CM_EVENT_ADDR_ERROR = 1,
    CM_EVENT_ROUTE_RESOLVED = 2,
    CM_EVENT_ROUTE_ERROR = 3,
    CM_EVENT_CONNECT_REQUEST = 4,
    CM_EVENT_CONNECT_RESPONSE = 5,
    CM_EVENT_UNREACHABLE = 7,
    CM_EVENT_REJECTED = 8,
    CM_EVENT_ESTABLISHED = 9,
    CM_EVENT_DISCONNECTED = 10
};
/* Reasons of a REJECT: InfiniBand Architecture Specification, volume 1, section 12.6.7.2. */
#define CM_NO_SUCH_SERVICE 8
#define CM_BY_CONSUMER     28
/* Status of a SIDR reply: section 12.11.2.1. */
#define CM_SIDR_UNSUPPORTED 1
#define CM_SIDR_REJECTED    2
#define CM_QKEY             0x01234567u /* Linux, RDMA_UDP_QKEY: of queue pairs that the program says none of */
#define CM_HOPS             64

/* One end of a connection. */
struct cm_end {
    union cm_address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6; /* what the commands have room for */
    } at;
    uint32_t device, port; /* port 0: not known */
    uint32_t lid, psn;
    union ibv_gid gid;
};

/* What an identifier has of a port. */
struct cm_claim {
    union cm_address at;
    bool afonly;     /* of its family only; else, at all addresses, of IPv4 and IPv6 */
    uint32_t shared; /* 0: its own; else which of those that share it */
};
#define CM_UNSET (-1) /* of an option */

struct cm_id {
    uint32_t number; /* what the program calls it: its place in the table */
    uint32_t space;  /* RDMA_PS_TCP, RDMA_PS_UDP or RDMA_PS_IB */
    bool datagram;   /* for queue pairs for datagrams: SIDR instead of a connection */
    uint64_t uid;    /* what it is to be called in events; 0: the program has not said it yet */
    struct cm_channel *channel;
    enum cm_state state;
    int fd;            /* bound to the port, listening or connected; -1: none */
    bool watched;      /* fd is in the channel's epoll set */
    uint32_t listener; /* where it came in, until its request is fetched; else CM_NONE */
    uint32_t reported; /* events that the program has fetched */
    struct cm_claim claim;
    bool reuse;                 /* options */
    int8_t afonly, ack_timeout; /* CM_UNSET: none */
    struct cm_end here, there;
    struct rdma_ucm_conn_param theirs; /* as an event tells it: depths as we see them */
    uint8_t responder_resources, initiator_depth, retry_count;
};
#define CM_NONE UINT32_MAX

struct cm_event {
    struct cm_event *next;
    uint32_t id; /* whose: of a request, the listener's */
    struct rdma_ucm_event_resp say;
};

struct cm_channel {
    int fd, ready; /* epoll, what the program holds; eventfd in it: there are events */
    pid_t pid;
    unsigned waiting; /* threads */
    bool closed;
    struct cm_event *first, **end;
};

/* What travels. Both ends are processes of one machine and one build: host order. */
enum cm_kind { CM_REQUEST, CM_RESPONSE, CM_READY, CM_REJECT, CM_UNREACHABLE, CM_DISCONNECT };
struct cm_message {
    uint32_t magic, kind;
    uint32_t reason; /* of a REJECT */
    struct cm_end from, to;
    struct rdma_ucm_conn_param param;
};
#define CM_MAGIC 0x6d636873u /* "shcm" */

HCA_INTERNAL extern pthread_mutex_t cm_lock; /* identifiers, channels, events: all but the four that files.c calls */

/* ---- cm_channel.c: channels and events. The first three for files.c, with a descriptor that is anybody's. ---- */
HCA_INTERNAL int cm_open(int flags);                   /* a new channel's descriptor, as open() returns it */
HCA_INTERNAL bool cm_has(int fd);                      /* whether it is a channel of this process */
HCA_INTERNAL void cm_close(int fd);                    /* before the descriptor is closed */
HCA_INTERNAL struct cm_channel *cm_channel_of(int fd); /* NULL: none */
/* Adds the identifier's socket to its channel's epoll set, or takes it out. False and errno: it is not there. */
HCA_INTERNAL bool cm_watch(struct cm_id *id);
HCA_INTERNAL void cm_unwatch(struct cm_id *id);
/* An event for the program, to be filled in further; NULL: the program does not know this identifier, or no memory. */
HCA_INTERNAL struct cm_event *cm_say(struct cm_id *id, enum cm_event_code what, int status);
/* Fetches the oldest, after waiting for one unless the descriptor is nonblocking; 0 or an errno. */
HCA_INTERNAL int cm_event_get(struct cm_channel *c, struct rdma_ucm_event_resp *out);
HCA_INTERNAL void cm_events_drop(struct cm_channel *c, const struct cm_id *id);
HCA_INTERNAL void cm_events_move(struct cm_channel *from, struct cm_channel *to, const struct cm_id *id);

/* ---- cm_command.c: for files.c; what write() returns ---- */
HCA_INTERNAL ssize_t cm_write(int fd, const void *command, size_t size);

/* ---- cm_id.c: identifiers ---- */
HCA_INTERNAL struct cm_id *cm_id_new(struct cm_channel *c, uint32_t space, bool datagram); /* NULL and errno */
HCA_INTERNAL void cm_id_free(struct cm_id *id);
HCA_INTERNAL struct cm_id *cm_id_at(uint32_t number);                              /* NULL: none */
HCA_INTERNAL struct cm_id *cm_id_next(const struct cm_channel *c, uint32_t after); /* CM_NONE: the first */

/* ---- cm_address.c: addresses and names. 0 or an errno. ---- */
HCA_INTERNAL socklen_t cm_address_size(const union cm_address *a); /* 0: no family of ours */
HCA_INTERNAL uint16_t cm_port_of(const union cm_address *a);
HCA_INTERNAL bool cm_is_any(const union cm_address *a);
HCA_INTERNAL bool cm_same_host(const union cm_address *a, const union cm_address *b);
/* Which port of which device the address leads to; `mine`: of this process's. */
HCA_INTERNAL int cm_place(struct cm_end *e, bool mine);
/* What to reach `to` from, where the program does not say. */
HCA_INTERNAL void cm_source_for(const union cm_address *to, union cm_address *from);

/* ---- cm_port.c: ports. 0 or an errno. ---- */
/* Gives the identifier a socket at the port of `at`, or at one that is free, which is entered there. */
HCA_INTERNAL int cm_bind(struct cm_id *id, union cm_address *at);
HCA_INTERNAL int cm_own(struct cm_id *id);           /* before it listens: nobody else has its address and port */
HCA_INTERNAL int cm_connect(const struct cm_id *id); /* its socket, to who listens at id->there */

/* ---- cm_option.c, cm_attr.c. 0 or an errno. ---- */
HCA_INTERNAL int cm_set_option(struct cm_id *id, uint32_t level, uint32_t name, const void *value, size_t size);
HCA_INTERNAL int cm_qp_attr(const struct cm_id *id, uint32_t state, struct ib_uverbs_qp_attr *a);
HCA_INTERNAL void cm_path(const struct cm_id *id, struct ib_uverbs_ah_attr *a);
static inline bool cm_has_path(const struct cm_id *id)
{
    return id->state >= CM_ROUTED && id->here.port && id->there.port;
}

/* ---- cm_wire.c: messages ---- */
HCA_INTERNAL int cm_send(const struct cm_id *id, enum cm_kind kind, const struct rdma_ucm_conn_param *param,
                         uint32_t reason);
/* An event with what the other end has said of the connection. */
HCA_INTERNAL void cm_say_theirs(struct cm_id *id, enum cm_event_code what, int status);
/* Something can be read at its socket. It may be gone when this returns. */
HCA_INTERNAL void cm_hear(struct cm_id *id);
HCA_INTERNAL void cm_hang_up(struct cm_id *id, enum cm_state now); /* its socket is closed */

#endif
