/* Reports of the PML: memory that it holds, messages that it has sent. */
#include "comm.h"
#include "match.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "report.h"

static void ob1_report_add(st_mem_line_fn line, void *arg, const char *category, size_t bytes)
{
    strata_mem_line_t l = {.component = "pml_ob1", .category = category, .bytes = bytes};

    if (bytes)
        line(arg, &l);
}

void ob1_mem_report(struct st_pml *head, st_mem_line_fn line, void *arg)
{
    struct ob1 *pml = (struct ob1 *)head;
    size_t peers = pml->n_peers * sizeof(struct ob1_peer) + st_slab_bytes(&pml->cpeers);
    size_t other = sizeof(*pml) + pml->ids.n * sizeof(struct st_wire_id) + pml->n_tables * sizeof(struct ob1_table);

    for (uint32_t i = 0; pml->comms && i <= pml->comms_mask; i++) {
        for (struct ob1_comm *c = pml->comms[i]; c; c = c->next) {
            peers += st_rank_table_bytes(&c->peers);
            other += ob1_match_bytes(&c->match);
        }
    }
    ob1_report_add(line, arg, "peers", peers);
    ob1_report_add(line, arg, "requests",
                   st_slab_bytes(&pml->requests) + st_slab_bytes(&pml->tasks) + st_slab_bytes(&pml->pieces) +
                       st_slab_bytes(&pml->controls));
    ob1_report_add(line, arg, "unexpected",
                   st_slab_bytes(&pml->messages) + st_slab_bytes(&pml->streams) + pml->unexpected_bytes +
                       pml->payloads.bytes + pml->payloads.slack);
    ob1_report_add(line, arg, "other", other);
}

void ob1_traffic_add(struct st_pml_traffic *sum, const struct ob1_cpeer *p)
{
    sum->messages_sent += p->send_seq;
    sum->bytes_sent += p->bytes_sent;
    sum->messages_received += p->recv_seq;
    sum->bytes_received += p->bytes_received;
}

bool ob1_traffic(struct st_pml *head, int rank, struct st_pml_traffic *out)
{
    const struct st_peer *shared = st_worker_peer_known(head->worker, rank);
    const struct ob1_peer *peer = shared ? ob1_peer_of(shared) : NULL;

    if (!peer)
        return false;
    *out = peer->gone ? *peer->gone : (struct st_pml_traffic){0};
    out->heard_by = peer->heard_by;
    for (uint32_t i = 0; i < peer->n_members; i++)
        ob1_traffic_add(out, ob1_peer_member(peer, i));
    return true;
}

enum {
    SENT,
    RECEIVED,
    UNEXPECTED,
    POSTED,
    UNEXPECTED_BYTES,
    PATHS_FAILED,
    COALESCED,
    PROTOCOL /* and one for each */
};
const struct st_counter ob1_counters[OB1_N_COUNTERS] = {
    [SENT] = {"messages_sent", "messages", STRATA_COUNT, "This rank has sent so many messages."},
    [RECEIVED] = {"messages_received", "messages", STRATA_COUNT, "So many messages have arrived at this rank."},
    [UNEXPECTED] = {"unexpected", "messages", STRATA_LEVEL,
                    "So many messages have arrived and no receive has taken them."},
    [POSTED] = {"posted", "receives", STRATA_LEVEL, "So many receives wait for a message."},
    [UNEXPECTED_BYTES] = {"unexpected_bytes", "bytes", STRATA_LEVEL,
                          "The copies of unexpected messages have so many bytes."},
    [PATHS_FAILED] = {"paths_failed", "paths", STRATA_COUNT,
                      "A connection was lost while the peer was reached by another."},
    [COALESCED] = {"coalesced", "messages", STRATA_COUNT,
                   "A message of those by_eager went together with others as one fragment."},
#define PROTOCOL_ROW(protocol, name, help) [PROTOCOL + (protocol)] = {name, "messages", STRATA_COUNT, help}
    PROTOCOL_ROW(OB1_P_EAGER, "by_eager",
                 "A message went as one fragment by a request; those that leave at once are not counted."),
    PROTOCOL_ROW(OB1_P_EAGER_SYNC, "by_eager_sync", "A message went as one fragment that the receiver answers."),
    PROTOCOL_ROW(OB1_P_STREAM, "by_stream", "A message went as several fragments that do not wait for the receiver."),
    PROTOCOL_ROW(OB1_P_RNDV, "by_rendezvous", "A message was announced to the receiver by its length."),
    PROTOCOL_ROW(OB1_P_RNDV_EXPOSED, "by_rendezvous_address", "A message was announced with the address of its data."),
    PROTOCOL_ROW(OB1_P_RNDV_KEY, "by_rendezvous_key", "A message was announced with the key of its registered data."),
    PROTOCOL_ROW(OB1_P_NOTHING, "answered_nothing", "An announced message came of which no byte was wanted."),
    PROTOCOL_ROW(OB1_P_GET, "answered_get", "This rank fetched a range of an announced message."),
    PROTOCOL_ROW(OB1_P_PUT, "answered_put", "The sender was asked to put a range of an announced message."),
    PROTOCOL_ROW(OB1_P_SPLIT, "answered_split", "A range of an announced message was fetched and put, half each."),
    PROTOCOL_ROW(OB1_P_PIPELINE, "answered_pipeline",
                 "The sender was asked to send a range of an announced message as fragments."),
#undef PROTOCOL_ROW
};
_Static_assert(PROTOCOL + OB1_P_COUNT == OB1_N_COUNTERS, "a row for each protocol");

/* Nothing is counted on the hot paths for this: the sequence numbers of all members are the number of messages. */
void ob1_count(const struct st_counting *counting, uint64_t *value)
{
    struct ob1 *pml = ST_CONTAINER(counting, struct ob1, counting);

    value[SENT] += pml->n_sent;
    value[RECEIVED] += pml->n_received;
    value[UNEXPECTED] += pml->n_early;
    value[UNEXPECTED_BYTES] += pml->unexpected_bytes;
    value[PATHS_FAILED] += pml->head.worker->n_paths_failed;
    value[COALESCED] += pml->n_coalesced;
    for (int p = 0; p < OB1_P_COUNT; p++)
        value[PROTOCOL + p] += pml->by_protocol[p];
    for (uint32_t i = 0; pml->comms && i <= pml->comms_mask; i++) {
        for (struct ob1_comm *c = pml->comms[i]; c; c = c->next) {
            value[UNEXPECTED] += c->match.n_unexpected;
            value[POSTED] += c->match.n_posted;
            for (int64_t r = 0; (r = st_rank_table_next(&c->peers, (uint32_t)r)) >= 0; r++) {
                const struct ob1_cpeer *p = st_rank_table_get(&c->peers, (uint32_t)r);
                value[SENT] += p->send_seq;
                value[RECEIVED] += p->recv_seq;
            }
        }
    }
}

void ob1_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted)
{
    const struct ob1_comm *c = (const struct ob1_comm *)comm;

    if (unexpected)
        *unexpected = c->match.n_unexpected;
    if (posted)
        *posted = c->match.n_posted;
}
