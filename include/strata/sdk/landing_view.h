/* A message of a landing ring in its memory, at the sender or the receiver (landing_ring.h). */
#ifndef STRATA_SDK_LANDING_VIEW_H
#define STRATA_SDK_LANDING_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <strata/sdk/copy.h>
#include <strata/sdk/hint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message in a ring, or the place for one: one part, or two where it wraps. */
struct st_landing_view {
    char *first;         /* first_len bytes */
    char *second;        /* second_len bytes, or NULL */
    uint32_t first_len;  /* bytes of the first part */
    uint32_t second_len; /* bytes of the second part; 0: it does not wrap */
    uint64_t end;        /* position behind the slot */
    bool marked;         /* at the receiver: the sender committed it with ST_LANDING_MARKED */
};

/* Bytes of it. */
static inline uint32_t st_landing_length(const struct st_landing_view *view)
{
    return view->first_len + view->second_len;
}
/* Copies a message of st_landing_length bytes into its place. */
static inline void st_landing_fill(const struct st_landing_view *view, const void *data)
{
    st_copy_long(view->first, data, view->first_len);
    if (ST_UNLIKELY(view->second_len != 0))
        st_copy_long(view->second, (const char *)data + view->first_len, view->second_len);
}
/* Copies it out. */
static inline void st_landing_copy(const struct st_landing_view *view, void *to)
{
    st_copy_long(to, view->first, view->first_len);
    if (ST_UNLIKELY(view->second_len != 0))
        st_copy_long((char *)to + view->first_len, view->second, view->second_len);
}

#ifdef __cplusplus
}
#endif
#endif
