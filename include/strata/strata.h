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

#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1

#define STRATA_ANY_SOURCE (-1)
#define STRATA_ANY_TAG    (-1)
#define STRATA_PROC_NULL  (-2) /* sends to and receives from it complete at once with 0 bytes */
#define STRATA_TAG_MAX    0x7fffffff

typedef struct strata strata_t;                 /* a context */
typedef struct strata_comm strata_comm_t;       /* a matching context: an isolated space of (source, tag) */
typedef struct strata_request strata_request_t; /* an operation under way */
typedef struct strata_message strata_message_t; /* a message taken out of matching by a matched probe */
struct strata_host;                             /* <strata/host.h>: callbacks of an embedder */

typedef enum strata_thread_level { STRATA_THREAD_SINGLE = 0, STRATA_THREAD_MULTIPLE = 1 } strata_thread_level_t;

typedef enum strata_mode {
    STRATA_STANDARD = 0,
    STRATA_BUFFERED = 1,    /* completes locally, from the attached buffer if it cannot leave at once */
    STRATA_SYNCHRONOUS = 2, /* completes only after the receive has matched */
    STRATA_READY = 3        /* the caller asserts that the receive is posted */
} strata_mode_t;

/* What a receive or a probe found. */
typedef struct strata_status {
    int source; /* rank in the communicator */
    int tag;
    int error;     /* STRATA_OK, STRATA_ERR_TRUNCATE, STRATA_ERR_CANCELLED, STRATA_ERR_PEER, ... */
    size_t length; /* bytes in the message; after a truncated receive, bytes delivered */
    size_t sent;   /* bytes that the sender sent: larger than length exactly when truncated */
} strata_status_t;
#define STRATA_STATUS_IGNORE ((strata_status_t *)0)

/* A parameter set by the program: it beats the command line, the environment and files. */
typedef struct strata_setting {
    const char *name;  /* "btl", "btl_sm_eager_limit", ... */
    const char *value; /* text as a user would write it: "self,sm", "32k" */
} strata_setting_t;

typedef struct strata_config {
    size_t size; /* sizeof(strata_config_t), set by STRATA_CONFIG_INIT */
    strata_thread_level_t thread_level;
    const strata_setting_t *settings; /* n_settings entries; may be NULL */
    size_t n_settings;
    const strata_setting_t *command_line; /* like settings, remembered as given on the command line */
    size_t n_command_line;
    const struct strata_host *host; /* an embedder's callbacks, or NULL */
    char *error_text;               /* why strata_init failed; may be NULL (then it goes to stderr) */
    size_t error_text_size;
} strata_config_t;
#define STRATA_CONFIG_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(strata_config_t), STRATA_THREAD_SINGLE, NULL, 0, NULL, 0, NULL, NULL, 0                                 \
    }

/* Makes a context: joins the job (PMIx launcher, embedder, or alone), opens and selects components. No
 * communication with peers takes place. `config` may be NULL. STRATA_ERR_PARAM for a parameter or component
 * that does not exist, STRATA_ERR_NOT_FOUND when a framework is left without a component. */
STRATA_API int strata_init(const strata_config_t *config, strata_t **out);

/* Completes outgoing traffic, leaves the job and frees everything. All requests must be complete and all
 * communicators but the world freed. Collective unless the rte parameter says otherwise: it fences. */
STRATA_API int strata_finalize(strata_t *s);

STRATA_API int strata_rank(const strata_t *s);
STRATA_API int strata_size(const strata_t *s);
STRATA_API strata_comm_t *strata_world(strata_t *s); /* all ranks of the job; lives as long as s */

/* Collective over the job, by the launcher; for set-up and shut-down, not for speed. */
STRATA_API int strata_fence(strata_t *s);
/* Ends the whole job through the launcher; returns if there is none. Never exits the process itself. */
STRATA_API int strata_abort(strata_t *s, int status, const char *reason);

/* ---- matching contexts ---------------------------------------------------------------------------- */

typedef struct strata_comm_spec {
    size_t size;      /* sizeof(strata_comm_spec_t) */
    uint32_t id;      /* same on every member, unique among live communicators; 0 is the world's */
    int rank;         /* my rank in it */
    int n_ranks;      /* members */
    const int *world; /* n_ranks job ranks, copied; NULL when rank i is job rank i */
    void *user;       /* the embedder's pointer; see strata_comm_user */
} strata_comm_spec_t;

/* Local: no communication. Messages that arrived before it existed are kept and matched now. */
STRATA_API int strata_comm_create(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out);
/* Local. No request on it may be pending. An id may be used again after every member has freed it. */
STRATA_API int strata_comm_free(strata_comm_t *comm);
STRATA_API int strata_comm_rank(const strata_comm_t *comm);
STRATA_API int strata_comm_size(const strata_comm_t *comm);
STRATA_API void *strata_comm_user(const strata_comm_t *comm);
STRATA_API strata_t *strata_comm_context(const strata_comm_t *comm);

/* ---- data that is not one contiguous block ---------------------------------------------------------- */

struct strata_iovec {
    void *base;
    size_t length;
};

/* Caller's own conversion. Both may be called in any order of offsets, several times for one message, from
 * any thread that makes progress; they must not call into Strata. */
typedef struct strata_convert {
    /* Copies `length` bytes of the packed stream starting at `offset` to `dst`; returns bytes written,
     * which may be fewer (never 0 while bytes remain), or a negative status. */
    ptrdiff_t (*pack)(void *user, size_t offset, void *dst, size_t length);
    /* The reverse, into the receive buffer. */
    ptrdiff_t (*unpack)(void *user, size_t offset, const void *src, size_t length);
    void *user;
} strata_convert_t;

typedef enum strata_data_kind { STRATA_CONTIGUOUS = 0, STRATA_IOVEC = 1, STRATA_GENERIC = 2 } strata_data_kind_t;

typedef struct strata_data {
    strata_data_kind_t kind;
    size_t length; /* bytes of the packed stream */
    union {
        void *buffer; /* STRATA_CONTIGUOUS */
        struct {
            const struct strata_iovec *v; /* must stay valid until the request completes */
            size_t n;
        } iov;                    /* STRATA_IOVEC; the lengths add up to `length` */
        strata_convert_t convert; /* STRATA_GENERIC */
    } u;
} strata_data_t;

/* ---- blocking ----------------------------------------------------------------------------------------- */

STRATA_API int strata_send(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
STRATA_API int strata_ssend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
STRATA_API int strata_bsend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
STRATA_API int strata_rsend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag);
STRATA_API int strata_send_data(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode);
/* Returns the status' error. `len` is the room in `buf`; a longer message is truncated to it. */
STRATA_API int strata_recv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);
STRATA_API int strata_recv_data(strata_comm_t *comm, const strata_data_t *data, int src, int tag,
                                strata_status_t *status);
STRATA_API int strata_sendrecv(strata_comm_t *comm, const void *sbuf, size_t slen, int dst, int stag, void *rbuf,
                               size_t rlen, int src, int rtag, strata_status_t *status);

/* ---- nonblocking and persistent ---------------------------------------------------------------------- */

STRATA_API int strata_isend(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_request_t **req);
STRATA_API int strata_isend_mode(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode,
                                 strata_request_t **req);
STRATA_API int strata_isend_data(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                                 strata_request_t **req);
STRATA_API int strata_irecv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_request_t **req);
STRATA_API int strata_irecv_data(strata_comm_t *comm, const strata_data_t *data, int src, int tag,
                                 strata_request_t **req);

/* Persistent requests: made inactive, started any number of times, freed by strata_request_free. The data
 * description is copied; the memory it names is not. */
STRATA_API int strata_send_init(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                                strata_request_t **req);
STRATA_API int strata_recv_init(strata_comm_t *comm, const strata_data_t *data, int src, int tag,
                                strata_request_t **req);
STRATA_API int strata_start(strata_request_t *req);
STRATA_API int strata_startall(size_t n, strata_request_t *const reqs[]);

/* Completion. A completed nonpersistent request is freed and *req set to NULL; a persistent one becomes
 * inactive. A NULL or inactive request counts as complete with an empty status. wait and test return the
 * status' error. */
STRATA_API int strata_wait(strata_request_t **req, strata_status_t *status);
STRATA_API int strata_test(strata_request_t **req, int *done, strata_status_t *status);
/* First failing status' error, or STRATA_OK; all are complete on return. `statuses` has n entries or is NULL. */
STRATA_API int strata_waitall(size_t n, strata_request_t *reqs[], strata_status_t *statuses);
STRATA_API int strata_testall(size_t n, strata_request_t *reqs[], int *done, strata_status_t *statuses);
/* *index is the completed one, or -1 when none was active. */
STRATA_API int strata_waitany(size_t n, strata_request_t *reqs[], int *index, strata_status_t *status);
STRATA_API int strata_testany(size_t n, strata_request_t *reqs[], int *index, int *done, strata_status_t *status);
/* Asks for a receive that has not matched to complete with STRATA_ERR_CANCELLED. Sends are not cancelled:
 * STRATA_ERR_UNSUPPORTED. The request must still be waited for. */
STRATA_API int strata_cancel(strata_request_t *req);
/* Gives up interest; an operation under way completes first. Sets *req to NULL. */
STRATA_API int strata_request_free(strata_request_t **req);

/* ---- probe ---------------------------------------------------------------------------------------------- */

STRATA_API int strata_probe(strata_comm_t *comm, int src, int tag, strata_status_t *status);
STRATA_API int strata_iprobe(strata_comm_t *comm, int src, int tag, int *found, strata_status_t *status);
/* Takes the message out of matching: only strata_mrecv / strata_imrecv on it can receive it. */
STRATA_API int strata_mprobe(strata_comm_t *comm, int src, int tag, strata_message_t **msg, strata_status_t *status);
STRATA_API int strata_improbe(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg,
                              strata_status_t *status);
STRATA_API int strata_mrecv(strata_message_t **msg, void *buf, size_t len, strata_status_t *status);
STRATA_API int strata_imrecv(strata_message_t **msg, void *buf, size_t len, strata_request_t **req);
STRATA_API int strata_imrecv_data(strata_message_t **msg, const strata_data_t *data, strata_request_t **req);

/* ---- buffered sends ------------------------------------------------------------------------------------- */

#define STRATA_BSEND_OVERHEAD 128 /* bytes of the attached buffer that each message may take beyond its data */
STRATA_API int strata_buffer_attach(strata_t *s, void *buffer, size_t size);
/* Blocks until every buffered message has left it. */
STRATA_API int strata_buffer_detach(strata_t *s, void **buffer, size_t *size);

/* ---- progress and introspection ------------------------------------------------------------------------- */

/* Moves everything that can move now; returns how many events were handled (0: nothing happened). */
STRATA_API int strata_progress(strata_t *s);

/* One line of a memory report. Categories: "queue pairs", "shared receive queues", "eager rings",
 * "registered", "shared memory", "unexpected", "requests", "peers", "other". */
typedef struct strata_mem_line {
    const char *component; /* "btl_sm", "pml_ob1", "base" */
    const char *category;
    size_t bytes; /* resident, private or shared, now */
    int shared;   /* nonzero: memory that several processes map, counted by its owner only */
} strata_mem_line_t;
STRATA_API int strata_mem_report(strata_t *s, void (*line)(void *arg, const strata_mem_line_t *line), void *arg);

/* How a peer is reached. Connects to it if need be. JSON text, to be freed with free(). */
STRATA_API int strata_peer_report(strata_t *s, int rank, char **json);

#ifdef __cplusplus
}
#endif
#endif
