/* The block of a bcast by leaders in pieces: a leader passes on those that are here while others come. A piece that is
 * put has a notice of its own, which names it, since notices keep no order. Of what comes by messages a leader passes
 * on all up to the first gap. */
#include "op.h"

enum { LINE = 64 };

size_t arrival_piece(size_t bytes, size_t least)
{
    size_t piece = (bytes + PIECES_MOST - 1) / PIECES_MOST;
    if (least == 0 || bytes <= least)
        return 0;
    piece = (piece + LINE - 1) / LINE * LINE;
    return piece > least ? piece : least;
}

/* Bytes of the piece of that number; 0: there is none. */
static size_t piece_bytes(const struct op *op, int m, size_t number)
{
    size_t bytes = op_in_bytes(op, m), at = number * op->piece;
    if (number >= PIECES_MOST || at >= bytes)
        return 0;
    return bytes - at < op->piece ? bytes - at : op->piece;
}

/* Pieces that were put count as soon as all before them are here. */
static void pieces_join(struct op *op, int m)
{
    struct in *in = &op->in[m];
    while (op->piece > 0 && in->here % op->piece == 0 && in->landed >> (in->here / op->piece) & 1u)
        in->here += piece_bytes(op, m, in->here / op->piece);
}

void arrival_puts_end(struct op *op, int m, size_t n)
{
    struct in *in = &op->in[m];
    if (n < in->n_puts)
        in->n_puts = (uint8_t)n;
    if (__builtin_popcount(in->landed) >= in->n_puts)
        in->put = false;
}

bool arrival_piece_landed(struct op *op, int m, unsigned number)
{
    struct slot *s = op->slot;
    struct in *in = &op->in[m];
    size_t bytes = piece_bytes(op, m, number);
    if (bytes == 0 || in->landed >> number & 1u)
        return false;
    in->landed = (uint16_t)(in->landed | 1u << number);
    s->member[m].came[s->epoch & 1u].got += bytes;
    pieces_join(op, m);
    arrival_puts_end(op, m, in->n_puts);
    return true;
}

void arrival_part_came(struct op *op, int m, size_t at, size_t bytes)
{
    struct in *in = &op->in[m];
    size_t room = op_in_bytes(op, m);
    if (at == in->here && at < room)
        in->here += bytes < room - at ? bytes : room - at;
    pieces_join(op, m);
    arrival_puts_end(op, m, op->piece > 0 ? at / op->piece : 0);
}

bool arrival_piece_range(struct op *op, int m, bool put)
{
    struct out *o = &op->out[m];
    size_t bytes = op_out_bytes(op, m), here = bytes;
    if (op->relays && !op->in[op->source].done)
        here = op->in[op->source].here;
    o->sent = o->gone;
    o->end = !put ? here : bytes - o->gone < op->piece ? bytes : (size_t)o->gone + op->piece;
    if (o->end > here || o->end == o->gone)
        return false;
    op->slot->a->counted[COUNT_PIECES_RELAYED] += here < bytes;
    return true;
}
