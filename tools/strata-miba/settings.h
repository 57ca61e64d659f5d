/* Settings: what both sides of a run have to agree on, and what each side has for itself. One table (settings.c) gives
 * their names, ranges and help; the command line, the comparison of both sides and the reports go by it. */
#ifndef MIBA_SETTINGS_H
#define MIBA_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include "status.h"

#define MOST_VALUES 32u

struct settings {
    /* compared: a value that both command lines give has to be the same */
    unsigned ops;        /* bits of enum miba_op */
    unsigned transports; /* bits of enum miba_transport */
    uint64_t values[MOST_VALUES];
    unsigned n_values; /* 0: each test has its own */
    uint64_t sizes[MOST_VALUES];
    unsigned n_sizes; /* the same */
    int samples;
    int count;   /* operations of the larger batch at most; 0: as many as fit into the time */
    int time_ms; /* for the samples of one case */
    int window;
    int buffers; /* 0: each test's own */
    int qps;     /* of latency, bandwidth, both_ways */
    int burst;   /* posts in a row on one queue pair and buffer */
    int mtu;     /* bytes; 0: the port's */
    int sl;
    int pkey_index;
    int memfd;  /* whether buffers lie in a shared memfd */
    int one_cq; /* whether a side's sends and receives of a ping-pong complete in one queue */
    int stamps; /* whether the clock is read before each message of a ping-pong */
    int timeout_s;
    /* not compared */
    const char *device; /* NULL: the first */
    int port;
    int gid_index;          /* -1: 0 over InfiniBand, the last IPv4-mapped one or 0 over Ethernet */
    const char *cm_address; /* NULL: that of the port, or this machine's own */
    int cpu;                /* -1: with both sides here the first two, else the scheduler's choice */
    uint64_t given;         /* bit of each row that the command line gave */
};

/* One row of the table. */
struct setting {
    const char *name, *arg, *help;
    bool compared;
};
extern const struct setting miba_settings[];
unsigned miba_settings_count(void);

void settings_defaults(struct settings *s);
/* Sets row `row` from text. NULL: done; else what is wrong. */
const char *settings_set(struct settings *s, unsigned row, const char *text);
/* The value of a row as text. */
void settings_text(const struct settings *s, unsigned row, char *text, size_t size);
/* All compared rows, for the peer; and all rows, for the reports. */
json_t *settings_json(const struct settings *s, bool compared_only);
/* The server's side of the comparison. What the server's command line did not give is taken from the client.
 * MIBA_BROKEN: they disagree, and the reason names the setting and both values. */
enum miba_status settings_agree(struct settings *own, const json_t *peer, struct miba_why *why);

#endif
