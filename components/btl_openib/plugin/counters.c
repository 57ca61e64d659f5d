/* The rows of what struct ib_counts counts. */
#include "params.h"

#define COUNT_ROW(name, unit, help)                                                                                    \
    {                                                                                                                  \
        name, unit, STRATA_COUNT, help                                                                                 \
    }
const struct st_counter ib_counters[IB_N_COUNTERS] = {
    COUNT_ROW("buffered", "messages",
              "A message was copied to a registered buffer and sent over the queue pair of high priority."),
    COUNT_ROW("low", "messages",
              "A message was copied to a registered buffer and sent over the queue pair of low priority."),
    COUNT_ROW("zcopy", "messages", "The device read a message from the program's memory."),
    COUNT_ROW("listed", "messages", "A message was passed to the device together with others, by one call."),
    COUNT_ROW("imm_heads", "messages", "The head of a message was immediate data, which saved a packet."),
    COUNT_ROW("rdma", "operations", "This rank has begun a put or a get."),
    COUNT_ROW("put_notify", "operations", "This rank has begun a put with notice, which counts as a put as well."),
    COUNT_ROW("again", "times",
              "A connection was not up, or had no credits or no room, and the send was tried again later."),
    COUNT_ROW("credit_messages", "messages", "A message was sent only to return credits."),
    COUNT_ROW("grown", "times", "A shared receive queue ran low and got more buffers."),
    COUNT_ROW("registered", "registrations",
              "Memory was registered with the device; the transport's own buffers are not counted."),
    COUNT_ROW("connect_requests", "messages", "This rank sent a connection request."),
    COUNT_ROW("connect_replies", "messages", "This rank sent a connection reply."),
    COUNT_ROW("connect_repeats", "messages",
              "A message about a connection was repeated because the first may have been lost."),
    COUNT_ROW("connect_duplicates", "messages",
              "A connection message arrived again; it was answered and had no other effect."),
    COUNT_ROW("connect_refused", "messages",
              "A connection message was dropped because it belongs to no attempt, or to another job."),
    COUNT_ROW("connected", "connections", "A connection was made, at the request of either end."),
    COUNT_ROW("torn_down", "connections",
              "A connection was closed before finalize, because it was idle or had failed."),
    COUNT_ROW("forced", "connections",
              "A connection was made above the limit, because no idle one could be closed in time."),
    COUNT_ROW("moved", "peers", "A peer sent a message from another address than known before."),
    COUNT_ROW("probes", "messages", "A silent peer was probed."),
    COUNT_ROW("eager_rdma", "messages", "A message was written by RDMA into a ring of the receiver."),
    COUNT_ROW(
        "eager_rdma_around", "messages",
        "A message to a peer with a ring was sent by send and receive: it was too long, or the ring or the send queue "
        "was full, or a message of low priority was in flight."),
    COUNT_ROW("rings_granted", "rings", "A peer was granted a ring of eager RDMA."),
    COUNT_ROW("rings_revoked", "rings", "A ring of eager RDMA was revoked, for a hotter peer or before a long sleep."),
    {"connected_now", "connections", STRATA_LEVEL,
     "Connections that have queue pairs, including those that are being made."},
};
#undef COUNT_ROW
