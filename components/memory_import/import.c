/* memory "import": the program that embeds Strata has a monitor of its own and reports by strata_host_memory_gone. */
#include <strata/sdk/memory.h>

static const _Atomic(uint64_t) never; /* there is nothing to wait for: a report is a call */

static bool vouches(struct st_memory_source *source, enum st_memory_event event)
{
    (void)source, (void)event;
    return true; /* it has promised all of them */
}

/* Process-wide, as its reports are. */
static struct st_memory_source source = {.name = "import", .pulse = &never, .vouches = vouches, .before = true};

static int import_start(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                        struct st_memory_source **out)
{
    (void)config;
    if (!host || !host->memory_watch) {
        st_reject(s, c, "%s", host ? "the embedding program has no memory monitor" : "this program embeds nothing");
        return STRATA_ERR_UNSUPPORTED;
    }
    int rc = host->memory_watch(host->user);
    if (rc != STRATA_OK) {
        st_reject(s, c, "the embedding program's memory monitor does not work: %s", strata_strerror(rc));
        return STRATA_ERR_UNSUPPORTED;
    }
    source.tested = false; /* another embedder's promise is another promise */
    *out = &source;
    return STRATA_OK;
}

static const struct st_memory_component_ops component_ops = {.start = import_start, .patches = false};

ST_COMPONENT(memory, import) = {
    ST_COMPONENT_HEAD("memory", "import", "0.1.0", "the embedding program tells when memory goes away"),
    .ops_size = sizeof(component_ops),
    .priority = 70,
    .ops = &component_ops,
};
