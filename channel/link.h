/* Private to links: channels without a job. docs/design/channel.md. */
#ifndef CHANNEL_LINK_H
#define CHANNEL_LINK_H

#include <limits.h>
#include <pthread.h>
#include <strata/channel_link.h>
#include <strata/host.h>
#include <strata/sdk/hmac.h>

enum { LINK_NONCE = 32, LINK_NAME = 64, LINK_ADDRESS = 256, LINK_LARGEST = 1 << 20, LINK_SILENCE_MS = 5000 };

/* A process of the link: its published values, and where it runs. */
struct link_member {
    char *blobs; /* struct link_blob, key, value, one after the other; NULL: none */
    size_t length;
    char boot[LINK_NAME];
    const char *host; /* in the link's names, or NULL */
    int fd;           /* of the handshake, kept while it is there; -1 */
    bool known;
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
    int n_members;           /* by rank; those of a process that has connected: 0 and its own */
    struct link_name *names; /* that host_of gives, each once */
    char *error;             /* where what is wrong goes, or NULL: stderr */
    size_t error_size;
};

/* A handshake's side: numbered, keyed frames over a socket. */
struct link_wire {
    int fd;
    int64_t until; /* ms of the clock; negative: no limit */
    uint8_t key[ST_HMAC_SIZE];
    uint64_t sent, received;
    bool caller;
};

/* link_error.c: what is wrong, to where the user wants it; returns rc. */
int link_fail(const strata_channel_link_t *l, int rc, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* link_secret.c: finds the secret. STRATA_ERR_ARG, STRATA_ERR_SYSTEM, which were said. */
int link_secret(strata_channel_link_t *l);

/* link_address.c. Sockets that do not block; errors were said. */
int link_listen(strata_channel_link_t *l, const char *address);
/* One try. STRATA_ERR_UNREACHABLE: nobody listens, which was not said. */
int link_dial(const strata_channel_link_t *l, const char *address, int64_t until, int *fd);

/* link_wire.c. STRATA_ERR_PEER: it went away, or what arrived is not right; STRATA_ERR_TIMEOUT. */
int link_wait(int fd, short events, int64_t until);
int link_read(struct link_wire *w, void *data, size_t size);
int link_write(struct link_wire *w, const void *data, size_t size);
/* A frame of `size` bytes, behind it its code. */
int link_tell(struct link_wire *w, const void *data, size_t size);
/* The next frame, malloc'ed; it has at least `least` bytes. */
int link_hear(struct link_wire *w, size_t least, void **data, size_t *size);
/* Nonces and proofs of the secret; then w->key is of this connection. */
int link_prove(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE]);

/* link_members.c. The callbacks of a host, whose user is the link. */
void link_host(strata_channel_link_t *l, int rank);
/* Room for ranks up to `rank`. STRATA_ERR_NOMEM. */
int link_member_add(strata_channel_link_t *l, int rank);
/* Forgets the last one, whose handshake has failed: its number is free. */
void link_member_drop(strata_channel_link_t *l, int rank);
/* Tells what this process has published and where it is; takes the same of `rank`. As link_tell, link_hear. */
int link_member_tell(strata_channel_link_t *l, struct link_wire *w);
int link_member_hear(strata_channel_link_t *l, struct link_wire *w, int rank);
void link_members_free(strata_channel_link_t *l);

#endif
