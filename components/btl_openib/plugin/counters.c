/* The rows of what struct ib_counts counts. */
#include "params.h"

#define COUNT_ROW(name, unit, help)                                                                                    \
    {                                                                                                                  \
        name, unit, STRATA_COUNT, help                                                                                 \
    }
const struct st_counter ib_counters[IB_N_COUNTERS] = {
    COUNT_ROW("buffered", "messages",
              "A message was copied to a registered buffer and went over the queue for short ones."),
    COUNT_ROW("low", "messages", "A message was copied to a registered buffer and went over the queue for long ones."),
    COUNT_ROW("zcopy", "messages", "The device took a message from where the program has it."),
    COUNT_ROW("listed", "messages", "A message was handed to the device together with others, by one call."),
    COUNT_ROW("imm_heads", "messages", "The head of a message was immediate data, which saved a packet."),
    COUNT_ROW("rdma", "operations", "This rank has begun a put or a get."),
    COUNT_ROW("put_notify", "operations", "This rank has begun a put with notice, which counts as a put as well."),
    COUNT_ROW("again", "times",
              "A connection was not up, or had no credits or no room, and the send was tried again later."),
    COUNT_ROW("credit_messages", "messages", "A message was sent for no other reason than to give credits back."),
    COUNT_ROW("grown", "times", "A shared receive queue ran low and was given more buffers."),
    COUNT_ROW("registered", "registrations",
              "Memory was registered with the device; the transport's own buffers are not counted."),
    COUNT_ROW("connect_requests", "messages", "This rank asked a peer for a connection."),
    COUNT_ROW("connect_replies", "messages", "This rank answered a peer that asked for a connection."),
    COUNT_ROW("connect_repeats", "messages",
              "A message about a connection was repeated because the first may have been lost."),
    COUNT_ROW("connect_duplicates", "messages",
              "A message about a connection came that had been taken before; it was answered, and no more."),
    COUNT_ROW("connect_refused", "messages",
              "A message about a connection was dropped because it fits no attempt, or not this job."),
    COUNT_ROW("connected", "connections", "A connection was made, whichever end had asked for it."),
    COUNT_ROW("torn_down", "connections",
              "A connection was taken down before the end, because it was idle or had failed."),
    COUNT_ROW("forced", "connections",
              "A connection was made above the limit, because no idle one could be taken down in time."),
    COUNT_ROW("moved", "peers", "A peer was heard of under another address than was known."),
    COUNT_ROW("probes", "messages", "A message was sent to a silent peer to learn whether it lives."),
    COUNT_ROW("eager_rdma", "messages", "A message went by RDMA into a ring at its receiver."),
    COUNT_ROW(
        "eager_rdma_around", "messages",
        "A message to a peer with a ring went by send and receive: it was too long, or the ring or the send queue "
        "was full, or a message of low priority was in flight."),
    COUNT_ROW("rings_granted", "rings", "A peer was granted a ring of eager RDMA."),
    COUNT_ROW("rings_revoked", "rings",
              "A ring of eager RDMA was taken away, for a hotter peer or before a long sleep."),
    COUNT_ROW("eager_rdma_kept", "messages", "A message without a receive was kept in its slots of a ring."),
    COUNT_ROW("eager_rdma_copied", "messages",
              "A message that was kept in a ring was copied after all: the ring needed the slots, or ended."),
    {"connected_now", "connections", STRATA_LEVEL,
     "So many connections have queue pairs, those in the making included."},
};
#undef COUNT_ROW
