/* --devices: the transports' modules, opened by a context that joins no job. An embedder's table of two ranks of this
 * machine stands for the job, so that a transport finds a peer to open for. */
#define _GNU_SOURCE 1
#include "info.h"

#include <stdlib.h>
#include <string.h>
#include <strata/host.h>

struct devices {
    json_t *list, *unusable;
};

/* ---- the job that there is not ---- */

static int job_put(void *user, const char *key, const void *blob, size_t length)
{
    (void)user, (void)key, (void)blob, (void)length;
    return STRATA_OK;
}

static int job_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    (void)user, (void)rank, (void)key, (void)blob, (void)length;
    return STRATA_ERR_NOT_FOUND;
}

static int job_fence(void *user)
{
    (void)user;
    return STRATA_OK;
}

/* ---- what there is ---- */

static void take_device(void *arg, const struct st_info_device *d)
{
    struct devices *v = arg;
    json_t *own = json_loads(d->own, 0, NULL), *capabilities = json_array();
    const char *device = json_string_value(json_object_get(own, "device"));

    for (const char *const *c = d->capabilities; *c; c++)
        json_array_append_new(capabilities, json_string(*c));
    json_t *j = json_pack("{s:s, s:s, s:s, s:o, s:b}", "component", d->component, "summary", d->summary, "device",
                          device ? device : d->component, "capabilities", capabilities, "needs_registration",
                          (int)d->needs_registration);
    const struct {
        const char *name;
        json_int_t value;
    } numbers[] = {{"latency_ns", d->latency_ns},   {"bandwidth_mbs", d->bandwidth_mbs},
                   {"eager_limit", d->eager_limit}, {"stream_limit", d->stream_limit},
                   {"max_send", d->max_send},       {"zcopy_min", d->zcopy_min},
                   {"max_key", d->max_key},         {"rdma_min", (json_int_t)d->rdma_min},
                   {"exclusivity", d->exclusivity}, {"rdma_pipeline", (json_int_t)d->rdma_pipeline}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_object_set_new(j, numbers[i].name, json_integer(numbers[i].value));
    if (own)
        json_object_set(j, "module", own);
    json_decref(own);
    json_array_append_new(v->list, j);
}

static void look(void *arg, strata_t *s)
{
    st_info_devices(s, take_device, arg);
}

static void take_unusable(void *arg, const struct st_info_component *c)
{
    struct devices *v = arg;
    const char *reason = *c->reason ? c->reason : "the list of components (the parameter btl) does not admit it";

    if (strcmp(c->framework, "btl") != 0 ||
        (c->fate != ST_INFO_REJECTED && c->fate != ST_INFO_NOT_LOADED && c->fate != ST_INFO_EXCLUDED))
        return;
    json_t *j =
        json_pack("{s:s, s:s, s:s?}", "component", c->name, "fate", st_info_fate_text(c->fate), "reason", reason);
    json_array_append_new(v->unusable, j);
}

int devices_make(const struct options *o, struct devices **out, char *err, size_t err_size)
{
    strata_host_t job = {.size = sizeof(job), .n_ranks = 2, .put = job_put, .get = job_get, .fence = job_fence};
    strata_config_t config = STRATA_CONFIG_INIT;
    struct devices *v = calloc(1, sizeof(*v));
    struct st_mca *mca = NULL;

    *out = NULL;
    if (!v)
        return STRATA_ERR_NOMEM;
    v->list = json_array();
    v->unusable = json_array();
    job.job_id = "strata-info";
    config.host = &job;
    config.command_line = o->settings;
    config.n_command_line = o->n_settings;
    int rc = st_info_try(&config, look, v, &mca, err, err_size);
    if (!mca) {
        devices_free(v);
        return rc;
    }
    st_info_components(mca, take_unusable, v);
    st_info_destroy(mca);
    *out = v;
    return rc;
}

void devices_free(struct devices *v)
{
    if (!v)
        return;
    json_decref(v->list);
    json_decref(v->unusable);
    free(v);
}

void devices_print_json(const struct devices *v, json_t *root)
{
    json_object_set(root, "devices", v->list);
    json_object_set(root, "unusable", v->unusable);
}

/* ---- text ---- */

static long long number(const json_t *d, const char *name)
{
    return (long long)json_integer_value(json_object_get(d, name));
}

static void print_size(const char *label, const json_t *d, const char *name, const char *none)
{
    long long value = number(d, name);
    if (value)
        printf("      %-22s %lld bytes\n", label, value);
    else
        printf("      %-22s %s\n", label, none);
}

static void print_device(const json_t *d)
{
    const json_t *capability;
    size_t i;

    printf("  %s  %s\n      %s\n", json_string_value(json_object_get(d, "component")),
           json_string_value(json_object_get(d, "device")), json_string_value(json_object_get(d, "summary")));
    printf("      %-22s %lld ns\n", "latency", number(d, "latency_ns"));
    printf("      %-22s %lld MB/s\n", "bandwidth", number(d, "bandwidth_mbs"));
    printf("      %-22s", "capabilities");
    json_array_foreach(json_object_get(d, "capabilities"), i, capability)
        printf("%s %s", i ? "," : "", json_string_value(capability));
    printf("%s\n", i ? "" : " messages only");
    print_size("eager limit", d, "eager_limit", "0 bytes");
    print_size("stream limit", d, "stream_limit", "0 bytes");
    print_size("largest fragment", d, "max_send", "0 bytes");
    print_size("sent without copy from", d, "zcopy_min", "never");
    print_size("get or put from", d, "rdma_min", "never");
    printf("      %-22s %s\n", "registration",
           json_is_true(json_object_get(d, "needs_registration")) ? "needed" : "not needed");
    print_size("largest key", d, "max_key", "no keys");
}

void devices_print_text(const struct devices *v)
{
    const json_t *d;
    size_t i;

    printf("Transports and devices here; latency and bandwidth as the transport states them:\n");
    json_array_foreach(v->list, i, d) print_device(d);
    if (!json_array_size(v->list))
        printf("  none\n");
    if (json_array_size(v->unusable))
        printf("Not usable here:\n");
    json_array_foreach(v->unusable, i, d)
        printf("  %s  %s: %s\n", json_string_value(json_object_get(d, "component")),
               json_string_value(json_object_get(d, "fate")), json_string_value(json_object_get(d, "reason")));
}
