/* The table and the JSON form. */
#include <jansson.h>
#include "stat.h"

static const char *const state_name[QP_STATES] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "error"};

static void print_troubles(FILE *out, const struct process_stat *s)
{
    for (unsigned d = 0; d < HCA_DEVICES; d++) {
        if (s->device_gone[d])
            fprintf(out, "  %d: soft%u is gone\n", s->pid, d);
        for (unsigned p = 0; p < HCA_PORTS; p++)
            if (s->port_down[d][p])
                fprintf(out, "  %d: soft%u port %u is down\n", s->pid, d, p + 1);
    }
    if (s->cqs_overrun)
        fprintf(out, "  %d: %u completion queues have overrun\n", s->pid, s->cqs_overrun);
    if (s->mrs_gone)
        fprintf(out, "  %d: %u memory regions have lost pages\n", s->pid, s->mrs_gone);
}

static void print_costs(FILE *out, const struct process_stat *s)
{
    for (int key = 0; key < HCA_COSTS; key++) {
        const struct cost_stat *c = &s->cost[key];
        if (c->set)
            fprintf(out, "  %d: cost %s: %llu times %.3f ns, %llu ns\n", s->pid, hca_cost_names[key],
                    (unsigned long long)c->times, (double)c->each_ps / 1000.0, (unsigned long long)c->ns);
    }
}

void stat_print_text(FILE *out, const struct process_stat *s, size_t n)
{
    struct process_stat sum = {0};
    fprintf(out, "%8s %-20s %7s", "PID", "PROGRAM", "QP");
    for (int i = 0; i < QP_STATES; i++)
        fprintf(out, " %6s", state_name[i]);
    fprintf(out, " %6s %6s %6s %15s %13s  %s\n", "SRQ", "CQ", "MR", "REGISTERED", "ADAPTER", "FABRIC");
    for (size_t i = 0; i <= n; i++) {
        const struct process_stat *row = i < n ? &s[i] : &sum;
        if (i < n)
            fprintf(out, "%8d %-20.20s %7u", row->pid, row->program, row->qps);
        else
            fprintf(out, "%8s %-20zu %7u", "sum", n, row->qps);
        for (int k = 0; k < QP_STATES; k++) {
            fprintf(out, " %6u", row->qp[k]);
            sum.qp[k] += row->qp[k];
        }
        fprintf(out, " %6u %6u %6u %15llu %13llu%s%s\n", row->srqs, row->cqs, row->mrs,
                (unsigned long long)row->bytes_registered, (unsigned long long)row->bytes_adapter, i < n ? "  " : "",
                row->place.fabric);
        sum.qps += row->qps;
        sum.srqs += row->srqs;
        sum.cqs += row->cqs;
        sum.mrs += row->mrs;
        sum.bytes_registered += row->bytes_registered;
        sum.bytes_adapter += row->bytes_adapter;
    }
    for (size_t i = 0; i < n; i++)
        print_troubles(out, &s[i]);
    for (size_t i = 0; i < n; i++)
        print_costs(out, &s[i]);
}

static json_t *qps_json(const struct process_stat *s)
{
    json_t *o = json_pack("{s:I}", "total", (json_int_t)s->qps);
    for (int i = 0; o && i < QP_STATES; i++)
        json_object_set_new(o, state_name[i], json_integer(s->qp[i]));
    return o;
}

static json_t *troubles_json(const struct process_stat *s)
{
    json_t *list = json_array();
    for (unsigned d = 0; list && d < HCA_DEVICES; d++) {
        if (s->device_gone[d])
            json_array_append_new(list, json_pack("{s:i, s:s}", "device", (int)d, "state", "gone"));
        for (unsigned p = 0; p < HCA_PORTS; p++)
            if (s->port_down[d][p])
                json_array_append_new(
                    list, json_pack("{s:i, s:i, s:s}", "device", (int)d, "port", (int)p + 1, "state", "down"));
    }
    return list;
}

static json_t *costs_json(const struct process_stat *s)
{
    json_t *o = json_object();
    for (int key = 0; o && key < HCA_COSTS; key++) {
        const struct cost_stat *c = &s->cost[key];
        if (c->set)
            json_object_set_new(o, hca_cost_names[key],
                                json_pack("{s:I, s:f, s:I}", "times", (json_int_t)c->times, "each_ns",
                                          (double)c->each_ps / 1000.0, "ns", (json_int_t)c->ns));
    }
    return o;
}

bool stat_print_json(FILE *out, const struct process_stat *s, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:i, s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "fabric",
                      s[i].place.fabric, "pid", s[i].pid, "program", s[i].program, "index", (int)s[i].place.index,
                      "queue_pairs", qps_json(&s[i]), "shared_receive_queues", (json_int_t)s[i].srqs,
                      "completion_queues", (json_int_t)s[i].cqs, "completion_queues_overrun",
                      (json_int_t)s[i].cqs_overrun, "memory_regions", (json_int_t)s[i].mrs, "memory_regions_lost",
                      (json_int_t)s[i].mrs_gone, "bytes_registered", (json_int_t)s[i].bytes_registered, "bytes_adapter",
                      (json_int_t)s[i].bytes_adapter, "troubles", troubles_json(&s[i]), "costs", costs_json(&s[i])));
    json_t *all = list ? json_pack("{s:o}", "processes", list) : NULL;
    const bool done =
        all && json_array_size(list) == n && !json_dumpf(all, out, JSON_INDENT(2)) && fputc('\n', out) != EOF;
    json_decref(all);
    return done;
}
