/* Beginning and end of a context's channels; the context calls these. */
#ifndef CHANNEL_CHANNELS_H
#define CHANNEL_CHANNELS_H

#include <strata/sdk/btl.h>
#include "framework/base/context.h"

/* Joins the worker, before any peer can send. STRATA_ERR_NOMEM. */
int st_channels_create(strata_t *s);
/* No peer sends any more: frees what is left. */
void st_channels_destroy(strata_t *s);

/* Memory of channels beside their rings. With the lock held. */
void st_channels_mem_report(const strata_t *s, st_mem_line_fn line, void *arg);

#endif
