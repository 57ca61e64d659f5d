/* How messages to a peer are sent, and why. */
#include <stdio.h>
#include <stdlib.h>
#include "ob1.h"
#include "ob1_inl.h"
#include "report.h"
#include "thresholds.h"
#include "tuned.h"
#include "ways.h"

/* "window":[{"from":0,"protocol":"eager"},{"from":4097,"protocol":"rendezvous, address","answer":"get","limit":"..."}]
 */
static void describe_ways(FILE *f, const struct ob1_ways_of *of, enum ob1_class traffic)
{
    struct ob1_way_step step[OB1_WAYS_MOST];
    size_t n = ob1_ways(of, traffic, step);

    fprintf(f, "\"%s\":[", ob1_class_name(traffic));
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "%s{\"from\":%llu,\"protocol\":\"%s\"", i ? "," : "", (unsigned long long)step[i].from,
                ob1_protocol_name(step[i].start));
        if (step[i].answer != OB1_P_NOTHING)
            fprintf(f, ",\"answer\":\"%s\"", ob1_protocol_name(step[i].answer));
        if (step[i].limit)
            fprintf(f, ",\"limit\":\"%s\"", step[i].limit);
        fputc('}', f);
    }
    fputc(']', f);
}

/* Names of the parameters that stand in the place of what follows from facts. */
static void describe_settings(FILE *f, const struct ob1_config *config)
{
    const struct {
        const char *name;
        bool set;
    } wish[] = {{"eager_limit", config->eager_limit != 0}, {"stream_limit", config->stream_limit >= 0},
                {"rdma_min", config->rdma_min != 0},       {"split_min", config->split_min != 0},
                {"alone_min", config->alone_min != 0},     {"rndv", config->rndv != OB1_RNDV_AUTO}};
    const char *comma = "";

    fputs("\"parameters\":[", f);
    for (size_t i = 0; i < sizeof(wish) / sizeof(*wish); i++)
        if (wish[i].set) {
            fprintf(f, "%s\"pml_ob1_%s\"", comma, wish[i].name);
            comma = ",";
        }
    fputc(']', f);
}

static void describe_facts(FILE *f, const struct st_btl_endpoint *ep)
{
    struct st_btl_facts facts = st_btl_facts_of(ep);

    fprintf(f,
            "\"facts\":{\"latency_ns\":%u,\"bandwidth_mbs\":%u,\"ask_cost\":%u,\"zcopy_cost\":%u,\"rdma_cost\":%zu,"
            "\"split_cost\":%zu,\"alone_cost\":%u,\"alone_split_cost\":%zu}",
            facts.latency_ns, facts.bandwidth_mbs, facts.ask_cost, facts.zcopy_cost, facts.rdma_cost, facts.split_cost,
            facts.alone_cost, facts.alone_split_cost);
}

/* The longest messages of a window. */
static enum ob1_protocol describe_longest(const struct ob1_ways_of *of)
{
    struct ob1_way_step step[OB1_WAYS_MOST];
    size_t n = ob1_ways(of, OB1_WINDOW, step);

    return step[n - 1].answer != OB1_P_NOTHING ? step[n - 1].answer : step[n - 1].start;
}

char *ob1_describe(struct st_pml *head, int rank)
{
    struct ob1 *pml = (struct ob1 *)head;
    struct ob1_peer *peer;
    char *text = NULL;
    size_t size;
    FILE *f;

    if (rank < 0 || rank >= pml->size || ob1_peer_find(pml, rank, &peer) != STRATA_OK ||
        st_worker_connect(pml->head.worker, peer->shared) != STRATA_OK)
        return NULL;
    const struct st_btl_endpoint *ep = st_peer_path(peer->shared, 0);
    bool learns = peer->table && peer->table->of.learns;
    struct ob1_ways_of of = {
        .wanted = (enum ob1_rndv)pml->config.rndv, .caps = ep->caps & ~(uint32_t)peer->lost_caps, .learns = learns};
    ob1_thresholds(pml, ep, &of.limits);
    of.limits.eager_limit = peer->eager_limit;
    of.limits.stream_limit = peer->stream_limit;
    if (!ob1_peer_tune(peer) || peer->announce)
        of.limits.alone_min = peer->alone_min;
    f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f,
            "{\"pml\":\"ob1\",\"eager_limit\":%u,\"stream_limit\":%u,\"rdma_min\":%zu,\"split_min\":%zu,"
            "\"alone_min\":%u,\"stripe_min\":%zu,\"paths\":%u,\"long_messages\":\"%s\",",
            of.limits.eager_limit, of.limits.stream_limit, of.limits.rdma_min, of.limits.split_min, of.limits.alone_min,
            pml->config.stripe_min, peer->shared->bml->n_paths, ob1_protocol_name(describe_longest(&of)));
    describe_facts(f, ep);
    fputc(',', f);
    describe_settings(f, &pml->config);
    fputs(",\"ways\":{", f);
    for (int traffic = 0; traffic < (learns ? OB1_CLASSES : OB1_LATE); traffic++) {
        fputs(traffic ? "," : "", f);
        describe_ways(f, &of, (enum ob1_class)traffic);
    }
    fputc('}', f);
    if (learns)
        ob1_answers_describe(f, &peer->flow.answers);
    if (ob1_peer_tune(peer))
        ob1_tuned_describe(f, ob1_peer_tune(peer));
    fputc('}', f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}
