/* Account of memory that libraries take on behalf of a context: a component brackets the calls that make a library
 * allocate. The report of the process sets it against what the kernel counts. Nothing is measured unless
 * mca_base_account_memory is on. */
#ifndef STRATA_SDK_ACCOUNT_H
#define STRATA_SDK_ACCOUNT_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the growth between two marks is measured. */
enum st_account_by {
    ST_ACCOUNT_PAGES, /* private pages outside images and stacks, maps too; takes half a millisecond */
    ST_ACCOUNT_HEAP   /* bytes allocated from malloc; for calls that are made for each peer */
};

/* Memory at the beginning of a bracket. */
struct st_account_mark {
    bool on;               /* whether anything is measured */
    enum st_account_by by; /* how */
    size_t bytes;          /* at the beginning */
};

/* Begins a bracket. */
ST_API void st_account_enter(strata_t *s, enum st_account_by by, struct st_account_mark *mark);
/* Ends a bracket: memory added since its beginning counts for the libraries; memory freed meanwhile is subtracted. */
ST_API void st_account_leave(strata_t *s, const struct st_account_mark *mark);

#ifdef __cplusplus
}
#endif
#endif
