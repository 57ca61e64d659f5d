/* Status codes shared by the public API, the embedding API and the component contracts.
 *
 * 0 is success, every failure is negative. STRATA_ERR_AGAIN is back-pressure, not a failure: nothing was accepted, the
 * caller keeps the work and retries after progress. */
#ifndef STRATA_STATUS_H
#define STRATA_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STRATA_API __attribute__((visibility("default")))
#else
#define STRATA_API
#endif

/* Every status of every interface. */
typedef enum strata_rc {
    STRATA_OK = 0,
    STRATA_ERR_AGAIN = -1,       /* a resource is exhausted for now; call again after progress */
    STRATA_ERR_ARG = -2,         /* an argument is invalid */
    STRATA_ERR_NOMEM = -3,       /* memory (private, shared or registered) could not be allocated */
    STRATA_ERR_NOT_FOUND = -4,   /* no such component, parameter, key, rank or message */
    STRATA_ERR_UNREACHABLE = -5, /* no usable transport reaches the peer */
    STRATA_ERR_TRUNCATE = -6,    /* the message was longer than the receive buffer; the excess was dropped */
    STRATA_ERR_CANCELLED = -7,   /* the request was cancelled before it matched */
    STRATA_ERR_PEER = -8,        /* the peer died or its connection failed */
    STRATA_ERR_UNSUPPORTED = -9, /* this build, transport or kernel cannot do it */
    STRATA_ERR_SYSTEM = -10,     /* a system call failed; the message names it and its errno */
    STRATA_ERR_ABI = -11,        /* a plugin was built for another version of Strata */
    STRATA_ERR_STATE = -12,      /* the call is not allowed in the object's present state */
    STRATA_ERR_PARAM = -13,      /* a run-time parameter is unknown or has a bad value */
    STRATA_ERR_TIMEOUT = -14,    /* a bounded wait ended */
    STRATA_ERR_RANK = -15,       /* rank outside the communicator */
    STRATA_ERR_TAG = -16,        /* tag outside 0..STRATA_TAG_MAX (or STRATA_ANY_TAG to receive) */
    STRATA_ERR_BUFFER = -17,     /* the attached buffer cannot hold this buffered send */
    STRATA_ERR_PROTOCOL = -18    /* a peer sent invalid data, which was dropped */
} strata_rc_t;

/* A short English text for a status; never NULL, never to be freed. */
STRATA_API const char *strata_strerror(int rc);

#ifdef __cplusplus
}
#endif
#endif
