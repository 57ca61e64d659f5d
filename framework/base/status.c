/* Texts of the status codes. */
#include <strata/status.h>

const char *strata_strerror(int rc)
{
    switch (rc) {
    case STRATA_OK:
        return "success";
    case STRATA_ERR_AGAIN:
        return "a resource is used up for now";
    case STRATA_ERR_ARG:
        return "invalid argument";
    case STRATA_ERR_NOMEM:
        return "out of memory";
    case STRATA_ERR_NOT_FOUND:
        return "not found";
    case STRATA_ERR_UNREACHABLE:
        return "no usable transport reaches the peer";
    case STRATA_ERR_TRUNCATE:
        return "message truncated: longer than the receive buffer";
    case STRATA_ERR_CANCELLED:
        return "request cancelled";
    case STRATA_ERR_PEER:
        return "the peer failed";
    case STRATA_ERR_UNSUPPORTED:
        return "not supported here";
    case STRATA_ERR_SYSTEM:
        return "a system call failed";
    case STRATA_ERR_ABI:
        return "built for another version of Strata";
    case STRATA_ERR_STATE:
        return "not allowed in this state";
    case STRATA_ERR_PARAM:
        return "bad run-time parameter";
    case STRATA_ERR_TIMEOUT:
        return "timed out";
    case STRATA_ERR_RANK:
        return "rank outside the communicator";
    case STRATA_ERR_TAG:
        return "tag out of range";
    case STRATA_ERR_BUFFER:
        return "attached buffer exhausted";
    case STRATA_ERR_PROTOCOL:
        return "protocol violation by a peer";
    default:
        return "unknown status";
    }
}
