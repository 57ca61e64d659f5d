/* Private to links: channels without a job. docs/design/channel_link.md. */
#ifndef CHANNEL_LINK_H
#define CHANNEL_LINK_H

#include <limits.h>
#include <pthread.h>
#include <strata/channel_link.h>
#include <strata/host.h>
#include <strata/sdk/hmac.h>

enum {
    LINK_NONCE = 32,
    LINK_NAME = 64,
    LINK_ADDRESS = 256,
    LINK_LARGEST = 1 << 20,
    LINK_SILENCE_MS = 5000,
    LINK_CALLERS = 256 /* that have not proven the secret yet, at most */
};

/* A process of the link: its published values, and where it runs. */
struct link_member {
    char *blobs; /* struct link_blob, key, value, one after the other; NULL: none */
    size_t length;
    char boot[LINK_NAME];
    const char *host; /* in the link's names, or NULL */
    int fd;           /* of the handshake, kept while it is there; -1 */
    bool known;
    bool taken; /* its number was given to somebody */
};
struct link_blob {
    uint32_t key_length, length; /* the key's without a zero */
};

/* A host's name, which stays as long as the link. */
struct link_name {
    struct link_name *next;
    char text[LINK_NAME];
};

struct strata_channel_link {
    strata_t *context;
    strata_host_t host;
    int listener; /* -1: it has connected */
    bool path;    /* the listener's name is to be removed */
    char address[LINK_ADDRESS], job[LINK_NAME];
    uint8_t secret[ST_HMAC_SIZE];
    int locals[2], n_locals; /* ranks of this machine at the start, ascending */
    pthread_mutex_t lock;    /* of members: callbacks come on any thread inside the context */
    struct link_member *members;
    int n_members;               /* by rank; those of a process that has connected: 0 and its own */
    struct link_caller *callers; /* in the order in which they came */
    struct link_name *names;     /* that host_of gives, each once */
    char *error;                 /* while it is made: where what is wrong goes, or NULL: stderr */
    size_t error_size;
};

/* The input of a proof: whose it is, and both nonces. */
struct link_said {
    char side[16];
    uint8_t listener[LINK_NONCE], caller[LINK_NONCE];
};

/* How far a handshake is: connected, its first bytes are under way, the nonces are known, both know the secret. */
enum link_stage { LINK_CALLED, LINK_HELLO, LINK_PROOF, LINK_PROVEN };

/* A handshake's side: numbered, keyed frames over a socket. */
struct link_wire {
    int fd;
    int64_t until; /* ms of the clock; negative: no limit */
    enum link_stage stage;
    struct link_said said;
    uint8_t key[ST_HMAC_SIZE];
    uint64_t sent, received; /* frames */
    char *in, *out;          /* bytes of the next item that have come; bytes that are to leave */
    size_t in_size, in_room; /* bytes that have come; bytes allocated */
    size_t out_size, out_at; /* bytes to leave in all, of which so many have left */
    bool caller;
    bool blocks; /* it waits up to `until` where the socket has or takes nothing; else STRATA_ERR_AGAIN */
};

/* The listener's first message, the caller's number, and its last, that the caller is admitted. */
struct link_welcome {
    uint32_t rank;
    char job[LINK_NAME];
};
static const char link_ready[8] = "ready";

/* A process that has connected and was not given out by accept yet. */
struct link_caller {
    struct link_caller *next;
    struct link_wire wire;
    int rank;   /* 0: it has not proven the secret yet */
    bool ready; /* its frame is in the table, and it is told */
};

/* link_error.c: what is wrong, to where the user wants it; returns rc. */
int link_fail(const strata_channel_link_t *l, int rc, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* link_secret.c: finds the secret. STRATA_ERR_ARG, STRATA_ERR_SYSTEM, which were said. */
int link_secret(strata_channel_link_t *l);

/* link_address.c. Sockets that do not block; errors were said. */
int link_listen(strata_channel_link_t *l, const char *address);
/* One try. STRATA_ERR_UNREACHABLE: nobody listens, which was not said. */
int link_dial(const strata_channel_link_t *l, const char *address, int64_t until, int *fd);

/* link_wire.c. STRATA_ERR_PEER: it went away, or what arrived is not right; STRATA_ERR_TIMEOUT; STRATA_ERR_AGAIN: to be
 * called again when the socket is ready. */
int link_wait(int fd, short events, int64_t until);
/* Sends the bytes that were told. */
int link_push(struct link_wire *w);
/* A frame of `size` bytes, behind it its code. It leaves by a push, or before the next is heard. */
int link_tell(struct link_wire *w, const void *data, size_t size);
/* The next frame, valid until the next call; it has at least `least` bytes. */
int link_hear(struct link_wire *w, size_t least, const char **data, size_t *size);
/* Nonces and proofs of the secret; then w->key is of this connection. Each side says its nonce, then the caller proves
 * itself, then the listener. */
int link_prove(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE]);
/* Closes the socket, if it is there, and frees what is kept. */
void link_wire_close(struct link_wire *w);

/* link_callers.c. Callers at the listener, whose handshakes go on side by side. */
/* Takes those that have connected, and goes on with all. STRATA_OK: *out is one that is ready, and leaves the list;
 * STRATA_ERR_AGAIN: none is; STRATA_ERR_SYSTEM, STRATA_ERR_NOMEM: no more can be taken, which was said. */
int link_callers_go(strata_channel_link_t *l, struct link_caller **out);
/* Sleeps until a caller has come, said something or been silent for too long, or the connection of a member has ended.
 * STRATA_OK also at the time `next`, unless that is negative. STRATA_ERR_TIMEOUT, STRATA_ERR_NOMEM. */
int link_callers_wait(const strata_channel_link_t *l, int64_t until, int64_t next);
void link_caller_free(struct link_caller *c);
void link_callers_free(strata_channel_link_t *l);

/* link_members.c. The callbacks of a host, whose user is the link. */
void link_host(strata_channel_link_t *l, int rank);
/* Room for ranks up to `rank`. STRATA_ERR_NOMEM. */
int link_member_add(strata_channel_link_t *l, int rank);
/* The lowest number that nobody has. STRATA_ERR_NOMEM. */
int link_member_new(strata_channel_link_t *l, int *rank);
/* Forgets one whose handshake has failed: its number is free. */
void link_member_drop(strata_channel_link_t *l, int rank);
/* Tells what this process has published and where it is; takes the same of `rank`. As link_tell, link_hear. */
int link_member_tell(strata_channel_link_t *l, struct link_wire *w);
int link_member_hear(strata_channel_link_t *l, struct link_wire *w, int rank);
/* Frees what one has published that has gone; its number stays taken, as the context knows it. */
void link_member_leave(strata_channel_link_t *l, int rank);
void link_members_free(strata_channel_link_t *l);

#endif
