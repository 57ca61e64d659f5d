/* The report about transports as lines of text, made of its JSON. */
#include "framework/pml/report.h"

#include <stdio.h>
#include <string.h>

#include <strata/sdk/btl_rdma.h>
#include "framework/base/context.h"
#include "framework/base/log.h"

/* A threshold that no message reaches is a way of switching something off. */
#define NEVER ((json_int_t)ST_BTL_RDMA_NEVER)

/* One member of an object as "name value", nested objects flattened by their names. */
static void report_text_append_member(char *out, size_t size, const char *name, const json_t *value)
{
    size_t n = strlen(out);
    char *at = out + n;
    size_t room = size - n;
    if (json_is_string(value) && json_string_length(value) == 0)
        return;
    if (json_is_string(value))
        snprintf(at, room, ", %s %s", name, json_string_value(value));
    else if (json_is_integer(value) && json_integer_value(value) >= NEVER)
        snprintf(at, room, ", %s never", name);
    else if (json_is_integer(value))
        snprintf(at, room, ", %s %lld", name, (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(at, room, ", %s %.2f", name, json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(at, room, ", %s %s", name, json_is_true(value) ? "yes" : "no");
}

static void report_text_append_object(char *out, size_t size, json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        if (strcmp(name, "transport") == 0)
            continue;
        if (json_is_object(value))
            report_text_append_object(out, size, value);
        else
            report_text_append_member(out, size, name, value);
    }
}

static const char *report_text_string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static unsigned long long report_text_number(const json_t *object, const char *name)
{
    return (unsigned long long)json_integer_value(json_object_get(object, name));
}

/* "sent 3 messages, 24 bytes; received 1 message, 8 bytes" */
static void report_text_traffic(char *out, size_t size, const json_t *row)
{
    unsigned long long sent = report_text_number(row, "messages_sent"),
                       received = report_text_number(row, "messages_received");
    snprintf(out, size, "sent %llu message%s, %llu bytes; received %llu message%s, %llu bytes", sent,
             sent == 1 ? "" : "s", report_text_number(row, "bytes_sent"), received, received == 1 ? "" : "s",
             report_text_number(row, "bytes_received"));
}

/* Begins a line: who speaks. */
static size_t report_text_begin(const strata_t *s, char *line, size_t size)
{
    return (size_t)snprintf(line, size, "strata[%s:%d]: ", s->rte->host, s->rte->rank);
}

/* "window: eager, from 4097 stream (eager_limit), from 65537 rendezvous, address then get (stream_limit); alone: ..."
 */
static void report_text_append_ways(char *out, size_t size, json_t *ways)
{
    const char *traffic, *between = " ";
    json_t *steps, *step;
    size_t i, n = strlen(out);

    json_object_foreach(ways, traffic, steps)
    {
        if (n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s: ", between, traffic);
        json_array_foreach(steps, i, step)
        {
            const char *answer = report_text_string(step, "answer"), *limit = report_text_string(step, "limit");
            if (n < size && i)
                n += (size_t)snprintf(out + n, size - n, ", from %llu ", report_text_number(step, "from"));
            if (n < size)
                n += (size_t)snprintf(out + n, size - n, "%s%s%s%s%s%s", report_text_string(step, "protocol"),
                                      *answer ? " then " : "", answer, *limit ? " (" : "", limit, *limit ? ")" : "");
        }
        between = "; ";
    }
}

static void report_text_peer(const strata_t *s, json_t *peer)
{
    char line[2048], traffic[192];
    json_t *paths = json_object_get(peer, "paths"), *path, *protocols = json_object_get(peer, "protocols");
    unsigned long long rank = report_text_number(peer, "rank");
    const char *by = report_text_string(peer, "by");
    size_t i, at = report_text_begin(s, line, sizeof(line));

    report_text_traffic(traffic, sizeof(traffic), peer);
    snprintf(line + at, sizeof(line) - at, "peer %llu on %s: %s%s%s", rank, report_text_string(peer, "host"), traffic,
             *by ? " by " : "", by);
    st_log_plain(s, line);
    json_array_foreach(paths, i, path)
    {
        snprintf(line + at, sizeof(line) - at, "peer %llu on %s: path %zu of %zu by %s", rank,
                 report_text_string(peer, "host"), i + 1, json_array_size(paths),
                 report_text_string(path, "transport"));
        report_text_append_object(line, sizeof(line), path);
        st_log_plain(s, line);
    }
    if (!protocols)
        return;
    snprintf(line + at, sizeof(line) - at, "peer %llu: protocols", rank);
    report_text_append_object(line, sizeof(line), protocols);
    st_log_plain(s, line);
    if (!json_is_object(json_object_get(protocols, "ways")))
        return;
    snprintf(line + at, sizeof(line) - at, "peer %llu: ways by class of traffic:", rank);
    report_text_append_ways(line, sizeof(line), json_object_get(protocols, "ways"));
    st_log_plain(s, line);
}

void st_report_transports_text(strata_t *s, json_t *report)
{
    char line[1536], traffic[192];
    const char *by;
    json_t *row;
    size_t i, at = report_text_begin(s, line, sizeof(line));

    json_array_foreach(json_object_get(report, "peers"), i, row) report_text_peer(s, row);
    json_object_foreach(json_object_get(report, "traffic"), by, row)
    {
        unsigned long long peers = report_text_number(row, "peers");
        report_text_traffic(traffic, sizeof(traffic), row);
        snprintf(line + at, sizeof(line) - at, "all %llu peer%s by %s: %s", peers, peers == 1 ? "" : "s",
                 *by ? by : "no transport", traffic);
        st_log_plain(s, line);
    }
    json_array_foreach(json_object_get(report, "transports"), i, row)
    {
        snprintf(line + at, sizeof(line) - at,
                 "transport %s: %llu fragments, puts and gets begun, %llu bytes sent or put, %llu bytes fetched by get",
                 report_text_string(row, "transport"), report_text_number(row, "messages_sent"),
                 report_text_number(row, "bytes_sent"), report_text_number(row, "bytes_got"));
        st_log_plain(s, line);
    }
    row = json_object_get(report, "registrations");
    if (!row)
        return;
    snprintf(line + at, sizeof(line) - at, "registrations");
    report_text_append_object(line, sizeof(line), row);
    st_log_plain(s, line);
}
