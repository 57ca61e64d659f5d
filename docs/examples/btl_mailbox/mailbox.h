/* btl_mailbox, the example transport of docs/write-a-btl.md: every rank owns one AF_UNIX datagram socket, its mailbox,
 * and sends by putting datagrams into the mailboxes of others. The kernel keeps them whole and in order. */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <sys/socket.h>
#include <sys/un.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/list.h>
#include <strata/sdk/rank_table.h>

/* The values of our parameters; filled by the base before open is called. See the rows in component.c. */
struct mailbox_config {
    size_t max_send;
    size_t eager_limit;
    int64_t batch;
};

/* Address of a mailbox: what each rank publishes and what a sender is recognised by. */
struct mailbox_address {
    struct sockaddr_un name;
    socklen_t length;
};

/* A peer. The first member is the part that the layers above read. */
struct mailbox_endpoint {
    struct st_btl_endpoint ep;
    struct mailbox_address address;
};

/* Our module: one socket. The first member is the part that the layers above read. */
struct mailbox {
    struct st_btl btl;
    int fd;
    int rank;
    int size;
    int batch;
    struct st_rank_table peers; /* rank -> struct mailbox_endpoint; costs nothing for ranks never spoken to */
    char *buffer;               /* buffer_size bytes: where arriving datagrams land */
    size_t buffer_size;
    struct st_counting counting; /* how the base comes by the values of our counters */
    uint64_t full, dropped;
    bool refused; /* a send, since the last arm: its room is announced by nobody */
};

/* In front of every datagram. */
struct mailbox_wire {
    uint32_t magic;
    int32_t rank; /* of the sender, who must prove it: see peer_of in transport.c */
    uint16_t am;
    uint16_t hdr_len;
    uint32_t len;
};
#define MAILBOX_MAGIC 0x6d61696cu
_Static_assert(sizeof(struct mailbox_wire) == 16, "the same on all ranks; the header behind it stays aligned");

extern const struct st_btl_ops mailbox_ops;

#define MAILBOX_N_COUNTERS 2
extern const struct st_counter mailbox_counters[MAILBOX_N_COUNTERS];
void mailbox_count(const struct st_counting *counting, uint64_t *value);

#endif
