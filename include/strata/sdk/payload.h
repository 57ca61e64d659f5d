/* Payload of a send: bytes by pointer, by iovec or by a pack callback, at an offset. */
#ifndef STRATA_SDK_PAYLOAD_H
#define STRATA_SDK_PAYLOAD_H

#include <string.h>
#include <strata/strata.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A window [offset, offset + length) of a strata_data_t's packed stream. */
struct st_payload {
    const strata_data_t *data; /* the whole message */
    size_t offset;             /* first byte of the window */
    size_t length;             /* bytes in it */
};

/* Copies the window into dst. Returns STRATA_OK or the pack callback's error. */
ST_API int st_payload_gather(const struct st_payload *p, void *dst);
/* Copies `length` bytes from src into the stream at offset. */
ST_API int st_data_scatter(const strata_data_t *data, size_t offset, const void *src, size_t length);
/* Pointer to the window when it is contiguous in memory, else NULL. */
static inline const void *st_payload_contiguous(const struct st_payload *p)
{
    return p->data->kind == STRATA_CONTIGUOUS ? (const char *)p->data->u.buffer + p->offset : NULL;
}
/* Checks kind, pointers and that iovec lengths add up. */
ST_API int st_data_check(const strata_data_t *data);

#ifdef __cplusplus
}
#endif
#endif
