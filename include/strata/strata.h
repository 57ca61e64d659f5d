/* Strata's public interface: messages between the processes of a parallel job.
 *
 * Everything hangs from a context, strata_t, made by strata_init; several contexts may live in one process.
 * Functions return STRATA_OK or a negative strata_rc_t unless they say otherwise; outputs are written only on
 * success. With STRATA_THREAD_SINGLE at most one thread at a time may call into a context; with
 * STRATA_THREAD_MULTIPLE any number may. Message semantics (order, modes, probe, cancel, truncation) are
 * those of MPI-3.1, chapter 3. */
#ifndef STRATA_STRATA_H
#define STRATA_STRATA_H

#include <stddef.h>
#include <stdint.h>
#include <strata/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_VERSION_MAJOR 0 /* raised by incompatible changes of the public interface */
#define STRATA_VERSION_MINOR 1 /* raised by additions */

#define STRATA_ANY_SOURCE (-1)       /* receive and probe: from any rank */
#define STRATA_ANY_TAG    (-1)       /* receive and probe: any tag */
#define STRATA_PROC_NULL  (-2)       /* sends to and receives from it complete at once with 0 bytes */
#define STRATA_TAG_MAX    0x7fffffff /* tags are 0..STRATA_TAG_MAX */

typedef struct strata strata_t;                 /* a context */
typedef struct strata_comm strata_comm_t;       /* a matching context: an isolated space of (source, tag) */
typedef struct strata_request strata_request_t; /* a pending operation */
typedef struct strata_message strata_message_t; /* a message taken out of matching by a matched probe */
struct strata_host;                             /* <strata/host.h>: callbacks of an embedder */

typedef enum strata_thread_level { STRATA_THREAD_SINGLE = 0, STRATA_THREAD_MULTIPLE = 1 } strata_thread_level_t;

/* Send modes; MPI-3.1, section 3.4. */
typedef enum strata_mode {
    STRATA_STANDARD = 0,    /* completes when the buffer may be used again; may wait for the receiver */
    STRATA_BUFFERED = 1,    /* completes locally, from the attached buffer if it cannot leave at once */
    STRATA_SYNCHRONOUS = 2, /* completes only after the receive has matched */
    STRATA_READY = 3        /* the caller asserts that the receive is posted */
} strata_mode_t;

/* What a receive or a probe found. */
typedef struct strata_status {
    int source;    /* rank in the communicator */
    int tag;       /* the tag that it was sent with */
    int error;     /* STRATA_OK, STRATA_ERR_TRUNCATE, STRATA_ERR_CANCELLED, STRATA_ERR_PEER, ... */
    size_t length; /* bytes in the message; after a truncated receive, bytes delivered */
    size_t sent;   /* bytes that the sender sent: larger than length exactly when truncated */
} strata_status_t;
/* For a caller who does not want the status. */
#define STRATA_STATUS_IGNORE ((strata_status_t *)0)

/* A parameter set by the program. It takes precedence over the command line, the environment and files. */
typedef struct strata_setting {
    const char *name;  /* "btl", "btl_sm_eager_limit", ... */
    const char *value; /* text as a user would write it: "self,sm", "32k" */
} strata_setting_t;

/* Arguments of strata_init. Initialise with STRATA_CONFIG_INIT. */
typedef struct strata_config {
    size_t size;                          /* sizeof(strata_config_t), set by STRATA_CONFIG_INIT */
    strata_thread_level_t thread_level;   /* whether several threads may call into the context at once */
    const strata_setting_t *settings;     /* n_settings entries; may be NULL */
    size_t n_settings;                    /* entries of settings */
    const strata_setting_t *command_line; /* like settings, recorded as coming from the command line */
    size_t n_command_line;                /* entries of command_line */
    const struct strata_host *host;       /* an embedder's callbacks, or NULL */
    char *error_text;                     /* why strata_init failed; may be NULL (then it goes to stderr) */
    size_t error_text_size;               /* bytes at error_text */
} strata_config_t;
/* Initialiser of a strata_config_t: one thread, no settings, no embedder. */
#define STRATA_CONFIG_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(strata_config_t), STRATA_THREAD_SINGLE, NULL, 0, NULL, 0, NULL, NULL, 0                                 \
    }

/* Makes a context: joins the job (PMIx launcher, embedder, or alone), opens and selects components. No communication
 * with peers takes place. `config` may be NULL. STRATA_ERR_PARAM for a parameter or component that does not exist,
 * STRATA_ERR_NOT_FOUND if a framework has no usable component; the reason is written to error_text or stderr. */
STRATA_API int strata_init(const strata_config_t *config, strata_t **out);

/* Completes outgoing traffic, leaves the job and frees everything. All requests must be complete, all channels closed,
 * and all communicators but the world freed. Collective: it fences, and returns what strata_fence would. */
STRATA_API int strata_finalize(strata_t *s);

/* My rank in the job, 0..size-1. */
STRATA_API int strata_rank(const strata_t *s);
/* Ranks in the job. */
STRATA_API int strata_size(const strata_t *s);
STRATA_API strata_comm_t *strata_world(strata_t *s); /* all ranks of the job; lives as long as s */

/* Barrier over the job, provided by the launcher; for set-up and shut-down, not optimised for speed. STRATA_ERR_PEER: a
 * rank has failed, and the fence had not completed mca_base_fence_after_failure_ms later. */
STRATA_API int strata_fence(strata_t *s);
/* Ends the whole job through the launcher; returns if there is none. Never exits the process itself. */
STRATA_API int strata_abort(strata_t *s, int status, const char *reason);

/* ---- matching contexts ---------------------------------------------------------------------------- */

/* Description of a matching context, for strata_comm_create. */
typedef struct strata_comm_spec {
    size_t size;      /* sizeof(strata_comm_spec_t) */
    uint32_t id;      /* same on every member, unique among live communicators; 0 is the world's */
    int rank;         /* my rank in it */
    int n_ranks;      /* members */
    const int *world; /* n_ranks job ranks, copied; NULL when rank i is job rank i */
    void *user;       /* the embedder's pointer; see strata_comm_user */
    int inter;   /* nonzero: an intercommunicator. n_ranks and world are the other group's, to which sends go and from
                  * which receives come; rank is mine in my own group, and the id is the same in both groups */
    int n_local; /* members of my own group, for collectives of an intercommunicator; 0: it has none */
    const int *local; /* their job ranks, copied; ignored where n_local is 0 */
} strata_comm_spec_t;

/* Makes a matching context. Local: no communication. Messages that arrived before are matched now. STRATA_ERR_ARG,
 * STRATA_ERR_RANK, STRATA_ERR_NOMEM. */
STRATA_API int strata_comm_create(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out);
/* Frees a matching context. Local. No request on it may be pending. An id may be used again after every member has
 * freed the communicator. If one of its collectives has failed, every member must create the next communicator of that
 * id before any member starts a collective on it. */
STRATA_API int strata_comm_free(strata_comm_t *comm);
/* My rank in the communicator. */
STRATA_API int strata_comm_rank(const strata_comm_t *comm);
/* Members of the communicator; of an intercommunicator, of the other group. */
STRATA_API int strata_comm_size(const strata_comm_t *comm);
/* The pointer given in strata_comm_spec_t; NULL for the world. */
STRATA_API void *strata_comm_user(const strata_comm_t *comm);
/* The context that the communicator belongs to. */
STRATA_API strata_t *strata_comm_context(const strata_comm_t *comm);

/* ---- data that is not one contiguous block ---------------------------------------------------------- */

/* One piece of memory. */
struct strata_iovec {
    void *base;    /* start; may be NULL when length is 0 */
    size_t length; /* bytes */
};

/* Caller's own conversion. Both may be called in any order of offsets, several times for one message, from
 * any thread that makes progress; they must not call into Strata. */
typedef struct strata_convert {
    /* Copies `length` bytes of the packed stream starting at `offset` to `dst`; returns bytes written,
     * which may be fewer (never 0 while bytes remain), or a negative status. */
    ptrdiff_t (*pack)(void *user, size_t offset, void *dst, size_t length);
    /* The reverse, into the receive buffer. */
    ptrdiff_t (*unpack)(void *user, size_t offset, const void *src, size_t length);
    void *user; /* first argument of both */
} strata_convert_t;

/* Which member of strata_data_t's union holds. */
typedef enum strata_data_kind { STRATA_CONTIGUOUS = 0, STRATA_IOVEC = 1, STRATA_GENERIC = 2 } strata_data_kind_t;

/* A message's data: where the bytes are. The struct is copied by every call that takes one; what it points to is not.
 */
typedef struct strata_data {
    strata_data_kind_t kind; /* which of the three */
    size_t length;           /* bytes of the packed stream */
    union {
        void *buffer; /* STRATA_CONTIGUOUS */
        struct {
            const struct strata_iovec *v; /* must stay valid until the request completes */
            size_t n;
        } iov;                    /* STRATA_IOVEC; the lengths add up to `length` */
        strata_convert_t convert; /* STRATA_GENERIC */
    } u;                          /* by kind */
} strata_data_t;

/* ---- blocking ----------------------------------------------------------------------------------------- */

/* Sends `len` bytes at `buf` in standard mode; returns when `buf` may be used again. `dst` is a rank of `comm` or
 * STRATA_PROC_NULL. STRATA_ERR_RANK, STRATA_ERR_TAG and STRATA_ERR_ARG for bad arguments, STRATA_ERR_UNREACHABLE when
 * no transport reaches the peer, STRATA_ERR_PEER when it has died. */
STRATA_API int strata_send(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
/* Synchronous mode: returns after the receive has matched. */
STRATA_API int strata_ssend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
/* Buffered mode: returns at once; STRATA_ERR_BUFFER when the attached buffer has no room. */
STRATA_API int strata_bsend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
/* Ready mode: the receive must be posted already. */
STRATA_API int strata_rsend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
/* Any kind of data, any mode. */
STRATA_API int strata_send_data(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode);
/* Returns the status' error. `len` is the room in `buf`; a longer message is truncated to it. */
STRATA_API int strata_recv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);
/* Like strata_recv, into any kind of data. */
STRATA_API int strata_recv_data(strata_comm_t *comm, const strata_data_t *data, int src, int tag,
                                strata_status_t *status);
/* Sends and receives at the same time, so that rings and exchanges cannot deadlock. The first failure is returned. */
STRATA_API int strata_sendrecv(strata_comm_t *comm, const void *sbuf, size_t slen, int dst, int stag, void *rbuf,
                               size_t rlen, int src, int rtag, strata_status_t *status);

/* ---- nonblocking and persistent ---------------------------------------------------------------------- */

/* Starts a standard send; `buf` belongs to the request until completion. While the peer has unhandled messages, a short
 * message may be delayed until the next call that makes progress, and is then sent together with others. */
STRATA_API int strata_isend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_request_t **req);
/* The same in any mode. */
STRATA_API int strata_isend_mode(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode,
                                 strata_request_t **req);
/* The same for any kind of data. */
STRATA_API int strata_isend_data(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                                 strata_request_t **req);
/* Starts a receive of up to `len` bytes; `buf` belongs to the request until completion. */
STRATA_API int strata_irecv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_request_t **req);
/* The same into any kind of data. */
STRATA_API int strata_irecv_data(strata_comm_t *comm, const strata_data_t *data, int src, int tag,
                                 strata_request_t **req);

/* Persistent requests: made inactive, started any number of times, freed by strata_request_free. The data
 * description is copied; the memory it names is not. */
STRATA_API int strata_send_init(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                                strata_request_t **req);
/* The receiving counterpart of strata_send_init. */
STRATA_API int strata_recv_init(strata_comm_t *comm, const strata_data_t *data, int src, int tag,
                                strata_request_t **req);
/* Starts an inactive persistent request; STRATA_ERR_STATE when it is active or not persistent. */
STRATA_API int strata_start(strata_request_t *req);
/* Starts n requests in order; stops at the first failure, which it returns. */
STRATA_API int strata_startall(size_t n, strata_request_t *const reqs[]);

/* Completion. A completed nonpersistent request is freed and *req set to NULL; a persistent one becomes
 * inactive. A NULL or inactive request counts as complete with an empty status. wait and test return the
 * status' error. */
STRATA_API int strata_wait(strata_request_t **req, strata_status_t *status);
/* Makes progress once. *done is nonzero if the request is complete (then as strata_wait). */
STRATA_API int strata_test(strata_request_t **req, int *done, strata_status_t *status);
/* First failing status' error, or STRATA_OK; all are complete on return. `statuses` has n entries or is NULL. */
STRATA_API int strata_waitall(size_t n, strata_request_t *reqs[], strata_status_t *statuses);
/* *done when all are complete; otherwise none is freed. */
STRATA_API int strata_testall(size_t n, strata_request_t *reqs[], int *done, strata_status_t *statuses);
/* *index is the completed one, or -1 when none was active. */
STRATA_API int strata_waitany(size_t n, strata_request_t *reqs[], int *index, strata_status_t *status);
/* *done when one is complete or none was active; *index as for strata_waitany. */
STRATA_API int strata_testany(size_t n, strata_request_t *reqs[], int *index, int *done, strata_status_t *status);
/* Asks for a receive that has not matched to complete with STRATA_ERR_CANCELLED. Sends are not cancelled:
 * STRATA_ERR_UNSUPPORTED. The request must still be waited for. */
STRATA_API int strata_cancel(strata_request_t *req);
/* Releases the request; a pending operation completes first. Sets *req to NULL. */
STRATA_API int strata_request_free(strata_request_t **req);

/* ---- probe ---------------------------------------------------------------------------------------------- */

/* Waits for a matching message, which stays available for a receive. All probes of a rank that has failed return its
 * error once none of its messages matches. */
STRATA_API int strata_probe(strata_comm_t *comm, int src, int tag, strata_status_t *status);
/* Makes progress once. *found is nonzero if a matching message has arrived; only then *status is set. */
STRATA_API int strata_iprobe(strata_comm_t *comm, int src, int tag, int *found, strata_status_t *status);
/* Takes the message out of matching: only strata_mrecv / strata_imrecv on it can receive it. */
STRATA_API int strata_mprobe(strata_comm_t *comm, int src, int tag, strata_message_t **msg, strata_status_t *status);
/* Like strata_mprobe without waiting. */
STRATA_API int strata_improbe(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg,
                              strata_status_t *status);
/* Receives the message that a matched probe took; sets *msg to NULL. Returns the status' error. */
STRATA_API int strata_mrecv(strata_message_t **msg, void *buf, size_t len, strata_status_t *status);
/* The same, nonblocking. */
STRATA_API int strata_imrecv(strata_message_t **msg, void *buf, size_t len, strata_request_t **req);
/* The same into any kind of data. */
STRATA_API int strata_imrecv_data(strata_message_t **msg, const strata_data_t *data, strata_request_t **req);

/* ---- buffered sends ------------------------------------------------------------------------------------- */

#define STRATA_BSEND_OVERHEAD 128 /* bytes of the attached buffer that each message may take beyond its data */
/* Gives buffered sends `size` bytes at `buffer`, which belong to Strata until detached. STRATA_ERR_STATE when there
 * is one already. */
STRATA_API int strata_buffer_attach(strata_t *s, void *buffer, size_t size);
/* Blocks until every buffered message has left the buffer. */
STRATA_API int strata_buffer_detach(strata_t *s, void **buffer, size_t *size);

/* ---- progress and introspection ------------------------------------------------------------------------- */

/* Advances all pending communication as far as possible without waiting; returns the number of events handled. */
STRATA_API int strata_progress(strata_t *s);

/* Memory for messages, `len` bytes that read as zero, on a page boundary: registered with every device that carries
 * messages to a peer, so that the first long message from it is as fast as later ones. STRATA_ERR_NOMEM.
 * strata_finalize frees memory that was not freed before. */
STRATA_API int strata_mem_alloc(strata_t *s, size_t len, void **memory);
/* Frees memory of strata_mem_alloc; no operation may use it. STRATA_ERR_ARG: `memory` is not from strata_mem_alloc. */
STRATA_API int strata_mem_free(strata_t *s, void *memory);

/* One line of a memory report. Categories: "queue pairs", "shared receive queues", "eager rings", "bounce buffers",
 * "registered", "shared memory", "unexpected", "requests", "peers", "other"; of other ranks' shared memory, which they
 * count, "mapped peer memory"; and of the program's own memory "pinned", which is registered for RDMA now, and "pinned
 * at most", so far. While mca_base_account_memory is on, component "process" has the kernel's figures, whatever the
 * memory is used for: "private", of which "before strata_init", "libraries" (that Strata loads and calls), "free in
 * malloc", "not accounted for" or, where the other lines add up to more than that, "accounted twice"; and beside it
 * "proportional" (PSS), "device mappings", "device mappings, proportional", "page tables" and "resident at most". */
typedef struct strata_mem_line {
    const char *component; /* "btl_sm", "pml_ob1", "base" */
    const char *category;  /* one of those above */
    size_t bytes;          /* resident, private or shared, now */
    int shared;            /* nonzero: memory that several processes map, counted by its owner only */
    int user;              /* nonzero: the program's memory or another rank's; not to be added to what Strata holds */
    size_t most;           /* high-water mark: the highest `bytes` of all reports of the context, with this one; of
                              several lines with this component and category, the sum so far of each report */
} strata_mem_line_t;
/* Calls `line` for each line of the report, on this thread, before returning; the strings are valid during the call. */
STRATA_API int strata_mem_report(strata_t *s, void (*line)(void *arg, const strata_mem_line_t *line), void *arg);

/* Kind of a counter. */
typedef enum strata_counter_kind {
    STRATA_COUNT, /* number of events; only grows */
    STRATA_LEVEL, /* current value */
    STRATA_PEAK   /* maximum of a level */
} strata_counter_kind_t;
/* One counter of a context, named as its parameters are: FRAMEWORK_COMPONENT_NAME. strata-info --counters lists them.
 */
typedef struct strata_counter {
    const char *framework; /* "pml", "btl", "rcache" */
    const char *component; /* "ob1", "sm", "tree" */
    const char *name; /* "messages_sent", "bytes_sent", "bytes_got", "messages_received", "registered_bytes", ... */
    const char *unit; /* "messages", "bytes", "entries", ... */
    strata_counter_kind_t kind; /* grows only, a level, or a peak */
    uint64_t value;             /* now; of all modules of the component */
    const char *help;           /* what it counts, a sentence */
} strata_counter_t;
/* Calls `fn` for each counter, in the same order for the life of a context (positions may be remembered; new ones are
 * added at the end), on this thread, before returning. The strings live as long as the context. */
STRATA_API int strata_counters(strata_t *s, void (*fn)(void *arg, const strata_counter_t *c), void *arg);
/* Messages of `comm` that have arrived and that no receive has taken (*unexpected), receives that wait for a message
 * (*posted). Either pointer may be NULL. */
STRATA_API int strata_comm_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted);

/* One parameter, as strata-info shows it. Strings are valid during the call only. */
typedef struct strata_param {
    const char *name;          /* "btl_sm_eager_limit" */
    const char *type;          /* "int", "size", "bool", "string", "list", "enum", ... */
    const char *value;         /* as text */
    const char *default_value; /* as text */
    const char *source;        /* "default", "file", "environment", "command line", "api" */
    const char *unit;          /* "bytes", or "" */
    const char *help;          /* what it does */
    int level;                 /* 1 (for everybody) to 9 (for developers) */
} strata_param_t;
/* Calls `fn` for every parameter of the base and of all components that can be loaded, without making a context: for
 * embedders that offer them under names of their own. `config` as for strata_init, may be NULL. */
STRATA_API int strata_params(const strata_config_t *config, void (*fn)(void *arg, const strata_param_t *p), void *arg);

/* Describes the paths to a peer and the traffic in both directions. Connects to the peer if necessary. JSON text, to be
 * freed with free(). */
STRATA_API int strata_peer_report(strata_t *s, int rank, char **json);

#ifdef __cplusplus
}
#endif
#endif
