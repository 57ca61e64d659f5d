/* The handshake of a link: nonces, proofs, and frames with codes over a socket that does not block. What has come of
 * the next bytes is kept, so each step can be called again until they are all there. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/random.h>
#include <unistd.h>

#include "channel/link.h"

static const char link_magic[16] = "strata channel1";

int link_wait(int fd, short events, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = until < 0 ? -1 : until - st_now_ms();
        int n = poll(&p, 1, until < 0 ? -1 : left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);
        if (n > 0)
            return STRATA_OK;
        if (n == 0 && (until < 0 || st_now_ms() >= until))
            return STRATA_ERR_TIMEOUT;
        if (n < 0 && errno != EINTR)
            return STRATA_ERR_SYSTEM;
    }
}

void link_wire_close(struct link_wire *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    free(w->in);
    free(w->out);
    *w = (struct link_wire){.fd = -1};
}

int link_push(struct link_wire *w)
{
    while (w->out_at < w->out_size) {
        ssize_t n = st_socket_write(w->fd, w->out + w->out_at, w->out_size - w->out_at);
        if (n < 0)
            return (int)n;
        w->out_at += (size_t)n;
        int rc = n > 0 ? STRATA_OK : w->blocks ? link_wait(w->fd, POLLOUT, w->until) : STRATA_ERR_AGAIN;
        if (rc != STRATA_OK)
            return rc;
    }
    w->out_at = w->out_size = 0;
    return STRATA_OK;
}

/* Bytes that leave by the next push, or before the next read. */
static int wire_put(struct link_wire *w, const void *data, size_t size)
{
    char *more = realloc(w->out, w->out_size + size + 1);

    if (!more)
        return STRATA_ERR_NOMEM;
    w->out = more;
    if (size)
        memcpy(more + w->out_size, data, size);
    w->out_size += size;
    return STRATA_OK;
}

/* The first `size` bytes of what the other side says next are at w->in. */
static int wire_get(struct link_wire *w, size_t size)
{
    int rc = link_push(w);

    if (rc == STRATA_OK && w->in_room < size) {
        char *more = realloc(w->in, size);
        if (!more)
            return STRATA_ERR_NOMEM;
        w->in = more;
        w->in_room = size;
    }
    while (rc == STRATA_OK && w->in_size < size) {
        ssize_t n = st_socket_read(w->fd, w->in + w->in_size, size - w->in_size);
        if (n < 0)
            return (int)n;
        w->in_size += (size_t)n;
        if (n == 0)
            rc = w->blocks ? link_wait(w->fd, POLLIN, w->until) : STRATA_ERR_AGAIN;
    }
    return rc;
}

/* The code covers the direction, the frame's number and its bytes. */
static int wire_code(const struct link_wire *w, bool by_caller, uint64_t number, const void *data, size_t size,
                     uint8_t out[ST_HMAC_SIZE])
{
    char *all = malloc(16 + size);

    if (!all)
        return STRATA_ERR_NOMEM;
    memcpy(all, by_caller ? "caller  " : "listener", 8);
    memcpy(all + 8, &number, 8);
    memcpy(all + 16, data, size);
    st_hmac(w->key, sizeof(w->key), all, 16 + size, out);
    free(all);
    return STRATA_OK;
}

int link_tell(struct link_wire *w, const void *data, size_t size)
{
    uint8_t code[ST_HMAC_SIZE];
    uint32_t length = (uint32_t)size;
    int rc = size > LINK_LARGEST ? STRATA_ERR_NOMEM : wire_code(w, w->caller, w->sent++, data, size, code);

    if (rc == STRATA_OK)
        rc = wire_put(w, &length, sizeof(length));
    if (rc == STRATA_OK)
        rc = wire_put(w, data, size);
    return rc == STRATA_OK ? wire_put(w, code, sizeof(code)) : rc;
}

int link_hear(struct link_wire *w, size_t least, const char **data, size_t *size)
{
    uint8_t right[ST_HMAC_SIZE];
    uint32_t length;
    int rc = wire_get(w, sizeof(length));

    if (rc != STRATA_OK)
        return rc;
    memcpy(&length, w->in, sizeof(length));
    if (length < least || length > LINK_LARGEST)
        return STRATA_ERR_PEER;
    rc = wire_get(w, sizeof(length) + length + sizeof(right));
    if (rc == STRATA_OK)
        rc = wire_code(w, !w->caller, w->received, w->in + sizeof(length), length, right);
    if (rc != STRATA_OK)
        return rc;
    if (!st_hmac_same((const uint8_t *)w->in + sizeof(length) + length, right, sizeof(right)))
        return STRATA_ERR_PEER;
    w->received++;
    w->in_size = 0;
    *data = w->in + sizeof(length);
    *size = length;
    return STRATA_OK;
}

static void wire_proof(const uint8_t secret[ST_HMAC_SIZE], struct link_said said, const char *side,
                       uint8_t out[ST_HMAC_SIZE])
{
    memset(said.side, 0, sizeof(said.side));
    memcpy(said.side, side, strlen(side));
    st_hmac(secret, ST_HMAC_SIZE, &said, sizeof(said), out);
}

struct wire_hello {
    char magic[sizeof(link_magic)];
    uint8_t nonce[LINK_NONCE];
};

static int prove_begin(struct link_wire *w)
{
    uint8_t *mine = w->caller ? w->said.caller : w->said.listener;
    struct wire_hello hello;

    memcpy(hello.magic, link_magic, sizeof(link_magic));
    if (getrandom(hello.nonce, sizeof(hello.nonce), 0) != sizeof(hello.nonce))
        return STRATA_ERR_SYSTEM;
    memcpy(mine, hello.nonce, LINK_NONCE);
    w->stage = LINK_HELLO;
    return wire_put(w, &hello, sizeof(hello));
}

/* Proves this side's knowledge of the secret. */
static int prove_self(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE])
{
    uint8_t proof[ST_HMAC_SIZE];

    wire_proof(secret, w->said, w->caller ? "caller" : "listener", proof);
    return wire_put(w, proof, sizeof(proof));
}

static int prove_hello(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE])
{
    struct wire_hello its;
    int rc = wire_get(w, sizeof(its));

    if (rc != STRATA_OK)
        return rc;
    memcpy(&its, w->in, sizeof(its));
    if (memcmp(its.magic, link_magic, sizeof(link_magic)) != 0)
        return STRATA_ERR_PEER;
    w->in_size = 0;
    memcpy(w->caller ? w->said.listener : w->said.caller, its.nonce, LINK_NONCE);
    wire_proof(secret, w->said, "key", w->key);
    w->stage = LINK_PROOF;
    return w->caller ? prove_self(w, secret) : STRATA_OK;
}

static int prove_other(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE])
{
    uint8_t right[ST_HMAC_SIZE];
    int rc = wire_get(w, sizeof(right));

    if (rc != STRATA_OK)
        return rc;
    wire_proof(secret, w->said, w->caller ? "listener" : "caller", right);
    if (!st_hmac_same((const uint8_t *)w->in, right, sizeof(right)))
        return STRATA_ERR_PEER;
    w->in_size = 0;
    w->stage = LINK_PROVEN;
    return w->caller ? STRATA_OK : prove_self(w, secret);
}

int link_prove(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE])
{
    int rc = w->stage == LINK_CALLED ? prove_begin(w) : STRATA_OK;

    if (rc == STRATA_OK && w->stage == LINK_HELLO)
        rc = prove_hello(w, secret);
    return rc == STRATA_OK && w->stage == LINK_PROOF ? prove_other(w, secret) : rc;
}
