/* The handshake of a link: nonces, proofs, and frames with codes over a socket that does not block. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/random.h>

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

int link_read(struct link_wire *w, void *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        int rc = link_wait(w->fd, POLLIN, w->until);
        ssize_t n = rc == STRATA_OK ? st_socket_read(w->fd, (char *)data + at, size - at) : rc;
        if (n < 0)
            return (int)n;
        at += (size_t)n;
    }
    return STRATA_OK;
}

int link_write(struct link_wire *w, const void *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        int rc = link_wait(w->fd, POLLOUT, w->until);
        ssize_t n = rc == STRATA_OK ? st_socket_write(w->fd, (const char *)data + at, size - at) : rc;
        if (n < 0)
            return (int)n;
        at += (size_t)n;
    }
    return STRATA_OK;
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
        rc = link_write(w, &length, sizeof(length));
    if (rc == STRATA_OK)
        rc = link_write(w, data, size);
    return rc == STRATA_OK ? link_write(w, code, sizeof(code)) : rc;
}

int link_hear(struct link_wire *w, size_t least, void **data, size_t *size)
{
    uint8_t code[ST_HMAC_SIZE], right[ST_HMAC_SIZE];
    uint32_t length;
    int rc = link_read(w, &length, sizeof(length));

    if (rc != STRATA_OK)
        return rc;
    if (length < least || length > LINK_LARGEST)
        return STRATA_ERR_PEER;
    char *memory = malloc((size_t)length + 1);
    if (!memory)
        return STRATA_ERR_NOMEM;
    rc = link_read(w, memory, length);
    if (rc == STRATA_OK)
        rc = link_read(w, code, sizeof(code));
    if (rc == STRATA_OK)
        rc = wire_code(w, !w->caller, w->received++, memory, length, right);
    if (rc == STRATA_OK && !st_hmac_same(code, right, sizeof(code)))
        rc = STRATA_ERR_PEER;
    if (rc != STRATA_OK) {
        free(memory);
        return rc;
    }
    *data = memory;
    *size = length;
    return STRATA_OK;
}

/* The input of a proof: whose it is, and both nonces. */
struct wire_said {
    char side[16];
    uint8_t listener[LINK_NONCE], caller[LINK_NONCE];
};

static void wire_proof(const uint8_t secret[ST_HMAC_SIZE], struct wire_said said, const char *side,
                       uint8_t out[ST_HMAC_SIZE])
{
    memset(said.side, 0, sizeof(said.side));
    memcpy(said.side, side, strlen(side));
    st_hmac(secret, ST_HMAC_SIZE, &said, sizeof(said), out);
}

/* Each side says its nonce, then the caller proves itself, then the listener. */
int link_prove(struct link_wire *w, const uint8_t secret[ST_HMAC_SIZE])
{
    struct {
        char magic[sizeof(link_magic)];
        uint8_t nonce[LINK_NONCE];
    } mine, its;
    struct wire_said said;
    uint8_t proof[ST_HMAC_SIZE], right[ST_HMAC_SIZE];

    memcpy(mine.magic, link_magic, sizeof(link_magic));
    if (getrandom(mine.nonce, sizeof(mine.nonce), 0) != sizeof(mine.nonce))
        return STRATA_ERR_SYSTEM;
    int rc = link_write(w, &mine, sizeof(mine));
    if (rc == STRATA_OK)
        rc = link_read(w, &its, sizeof(its));
    if (rc != STRATA_OK)
        return rc;
    if (memcmp(its.magic, link_magic, sizeof(link_magic)) != 0)
        return STRATA_ERR_PEER;
    memcpy(said.listener, w->caller ? its.nonce : mine.nonce, LINK_NONCE);
    memcpy(said.caller, w->caller ? mine.nonce : its.nonce, LINK_NONCE);
    wire_proof(secret, said, "key", w->key);
    for (int turn = 0; turn < 2 && rc == STRATA_OK; turn++) {
        const char *side = turn == 0 ? "caller" : "listener";
        wire_proof(secret, said, side, right);
        if ((turn == 0) == w->caller) {
            rc = link_write(w, right, sizeof(right));
            continue;
        }
        rc = link_read(w, proof, sizeof(proof));
        if (rc == STRATA_OK && !st_hmac_same(proof, right, sizeof(proof)))
            rc = STRATA_ERR_PEER;
    }
    return rc;
}
