/* Settings: table, parsing, comparison of both sides. */
#include "config.h"
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "names.h"

enum { OPS_ROW, TRANSPORTS_ROW, VALUES_ROW, SIZES_ROW };

const struct setting miba_settings[] = {
    {"op", "NAMES", "Operations: send, write, read, write_imm, fetch_add, compare_swap (all that a test has)", true},
    {"transport", "NAMES", "Transports: RC, UC, UD (all that a test has)", true},
    {"values", "LIST", "Values of what a test varies, such as sizes: 8,4k,1m (each test has its own)", true},
    {"size", "LIST", "Bytes of a message in tests that vary something else (each test has its own)", true},
    {"samples", "N", "Samples of each figure at most (51)", true},
    {"time", "MS", "Milliseconds for the samples of one case, as far as five samples allow (60)", true},
    {"count", "N", "Operations of the larger batch, as far as a test has so many; 0: as many as fit into the time (0)",
     true},
    {"window", "N", "Messages in flight in tests that do not vary it (64)", true},
    {"buffers", "N",
     "Buffers that messages use in turn; in translation_2 all buffers; 0: one, or what a test varies or needs (0)",
     true},
    {"qps", "N", "Queue pairs that messages use in turn, in latency, bandwidth and both_ways (1)", true},
    {"burst", "N", "Posts in a row on one queue pair, and from one buffer, before the next one's (1)", true},
    {"mtu", "BYTES", "MTU of the path: 256, 512, 1024, 2048, 4096; 0: the port's (0)", true},
    {"sl", "N", "Service level (0)", true},
    {"pkey-index", "N", "Index of the partition key (0)", true},
    {"memfd", "0|1", "1: buffers lie in a shared memfd, which softhca writes by stores (0)", true},
    {"one-cq", "0|1", "1: in latency, sends and receives of a side complete in one queue (0)", true},
    {"stamps", "0|1", "1: the clock is read before each message of a ping-pong, and the time kept (0)", true},
    {"timeout", "S", "Seconds without an answer or a completion after which the peer counts as lost (4)", true},
    {"device", "NAME", "The device (the first)", false},
    {"port", "N", "The device's port (1)", false},
    {"gid-index", "N", "Index of the port's GID (over InfiniBand 0; over Ethernet an IPv4 one of RoCE v2, or 0)",
     false},
    {"cpu", "N", "Processor of this side (with both sides here two that differ, else the scheduler's choice)", false},
    {"cm-address", "ADDRESS", "IPv4 address for connections by librdmacm (that of the port's GID, or 127.0.0.1)",
     false},
};

unsigned miba_settings_count(void)
{
    return sizeof miba_settings / sizeof *miba_settings;
}

/* Rows that are one number: where it is, and its range. */
static int *number_of(struct settings *s, unsigned row, int *least, int *most)
{
    const struct {
        int *at, least, most;
    } of[] = {
        {&s->samples, 1, 1001},   {&s->time_ms, 1, 600000}, {&s->count, 0, 1 << 20},
        {&s->window, 1, 8192},    {&s->buffers, 0, 65536},  {&s->qps, 1, 64},
        {&s->burst, 1, 8192},     {&s->mtu, 0, 4096},       {&s->sl, 0, 15},
        {&s->pkey_index, 0, 127}, {&s->memfd, 0, 1},        {&s->one_cq, 0, 1},
        {&s->stamps, 0, 1},       {&s->timeout_s, 1, 3600}, {NULL, 0, 0},
        {&s->port, 1, 255},       {&s->gid_index, -1, 255}, {&s->cpu, -1, 1023},
    };

    if (row <= SIZES_ROW || row - SIZES_ROW > sizeof of / sizeof *of)
        return NULL;
    *least = of[row - SIZES_ROW - 1].least;
    *most = of[row - SIZES_ROW - 1].most;
    return of[row - SIZES_ROW - 1].at;
}

void settings_defaults(struct settings *s)
{
    *s = (struct settings){.ops = ~0u,
                           .transports = ~0u,
                           .samples = 51,
                           .time_ms = 60,
                           .window = 64,
                           .qps = 1,
                           .burst = 1,
                           .timeout_s = 4,
                           .port = 1,
                           .gid_index = -1,
                           .cpu = -1};
}

/* "4k": the number before `end`. */
static bool take_number(const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    *value = strtoull(text, &end, 10);
    const unsigned shift = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
    if (errno || end[shift > 0] != 0 || *value > UINT64_MAX >> shift)
        return false;
    *value <<= shift;
    return true;
}

static const char *take_names(unsigned *bits, char *list, bool ops)
{
    *bits = BIT(0);
    for (char *name; (name = strsep(&list, ",")) != NULL;) {
        const unsigned n = ops ? (unsigned)miba_op_of(name) : (unsigned)miba_transport_of(name);
        if (n == 0 || n >= (ops ? (unsigned)OPS : (unsigned)TRANSPORTS))
            return ops ? "expected send, write, read, write_imm, fetch_add or compare_swap, with commas between"
                       : "expected RC, UC or UD, with commas between";
        *bits |= BIT(n);
    }
    return NULL;
}

static const char *take_list(uint64_t values[MOST_VALUES], unsigned *n, char *list)
{
    *n = 0;
    for (char *one; (one = strsep(&list, ",")) != NULL;) {
        if (*n == MOST_VALUES)
            return "more than 32 values";
        if (!take_number(one, &values[*n]))
            return "expected numbers, with k, m or g for their powers of 1024, and commas between";
        ++*n;
    }
    return NULL;
}

static const char *take_sizes(struct settings *s, char *list)
{
    const char *wrong = take_list(s->sizes, &s->n_sizes, list);

    for (unsigned i = 0; i < s->n_sizes && !wrong; i++)
        if (s->sizes[i] == 0 || s->sizes[i] > 1u << 30)
            wrong = "expected sizes of 1 byte to 1 GiB";
    return wrong;
}

static const char *take_one(int *at, int least, int most, const char *text)
{
    static char wrong[64];
    uint64_t value;

    if (!take_number(text, &value) || value > (uint64_t)most || (int)value < least) {
        snprintf(wrong, sizeof wrong, "expected a number from %d to %d", least < 0 ? 0 : least, most);
        return wrong;
    }
    *at = (int)value;
    return NULL;
}

const char *settings_set(struct settings *s, unsigned row, const char *text)
{
    const char *wrong = NULL;
    int least, most, *at = number_of(s, row, &least, &most);
    char *copy = strdup(text);

    if (!copy)
        return "no memory";
    if (row == OPS_ROW)
        wrong = take_names(&s->ops, copy, true);
    else if (row == TRANSPORTS_ROW)
        wrong = take_names(&s->transports, copy, false);
    else if (row == VALUES_ROW)
        wrong = take_list(s->values, &s->n_values, copy);
    else if (row == SIZES_ROW)
        wrong = take_sizes(s, copy);
    else if (at)
        wrong = take_one(at, least, most, text);
    else if (strcmp(miba_settings[row].name, "device") == 0)
        s->device = text;
    else
        s->cm_address = text;
    free(copy);
    if (!wrong && at == &s->mtu && s->mtu && (s->mtu < 256 || (s->mtu & (s->mtu - 1))))
        wrong = "expected 256, 512, 1024, 2048, 4096, or 0 for the port's";
    if (!wrong)
        s->given |= UINT64_C(1) << row;
    return wrong;
}

static void names_text(unsigned bits, bool ops, char *text, size_t size)
{
    const unsigned end = ops ? (unsigned)OPS : (unsigned)TRANSPORTS;
    size_t n = 0;

    *text = 0;
    for (unsigned i = 1; i < end && n < size; i++)
        if (bits & BIT(i))
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "," : "",
                                  ops ? miba_op_name((enum miba_op)i) : miba_transport_name((enum miba_transport)i));
}

static void list_text(const uint64_t *values, unsigned count, char *text, size_t size)
{
    size_t n = 0;

    for (unsigned i = 0; i < count && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%llu", n ? "," : "", (unsigned long long)values[i]);
}

void settings_text(const struct settings *s, unsigned row, char *text, size_t size)
{
    struct settings copy = *s;
    int least, most, *at = number_of(&copy, row, &least, &most);

    *text = 0;
    if (row == OPS_ROW)
        names_text(s->ops, true, text, size);
    else if (row == TRANSPORTS_ROW)
        names_text(s->transports, false, text, size);
    else if (row == VALUES_ROW)
        list_text(s->values, s->n_values, text, size);
    else if (row == SIZES_ROW)
        list_text(s->sizes, s->n_sizes, text, size);
    else if (at)
        snprintf(text, size, "%d", *at);
    else if (strcmp(miba_settings[row].name, "device") == 0)
        snprintf(text, size, "%s", s->device ? s->device : "");
    else
        snprintf(text, size, "%s", s->cm_address ? s->cm_address : "");
}

json_t *settings_json(const struct settings *s, bool compared_only)
{
    json_t *all = json_object();
    char text[1024];

    for (unsigned row = 0; row < miba_settings_count(); row++) {
        if (compared_only && !miba_settings[row].compared)
            continue;
        settings_text(s, row, text, sizeof text);
        json_object_set_new(all, miba_settings[row].name, json_string(text));
    }
    return all;
}

enum miba_status settings_agree(struct settings *own, const json_t *peer, struct miba_why *why)
{
    char text[1024];

    for (unsigned row = 0; row < miba_settings_count(); row++) {
        const struct setting *r = &miba_settings[row];
        if (!r->compared)
            continue;
        const char *theirs = json_string_value(json_object_get(peer, r->name));
        if (!theirs)
            return miba_fail(why, MIBA_BROKEN, "the client does not say its --%s: it is of another version", r->name);
        settings_text(own, row, text, sizeof text);
        if (strcmp(text, theirs) == 0)
            continue;
        if (own->given >> row & 1)
            return miba_fail(why, MIBA_BROKEN, "the settings differ: --%s is %s at the server and %s at the client",
                             r->name, *text ? text : "each test's own", *theirs ? theirs : "each test's own");
        if (*theirs == 0 && (row == VALUES_ROW || row == SIZES_ROW))
            continue;
        const uint64_t given = own->given;
        const char *wrong = settings_set(own, row, theirs);
        own->given = given;
        if (wrong)
            return miba_fail(why, MIBA_BROKEN, "the client's --%s is \"%s\": %s", r->name, theirs, wrong);
    }
    return MIBA_OK;
}
