/* Frames on a socket: whole ones arrive however they are cut, and what is no frame is told as
 * early as it can be. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "framework/base/frame_line.h"
#include "support/run_suite.h"

#define MAGIC 0x54436269u
#define SIZE  72u
#define N     (8 + SIZE)

static struct frame_line *a, *b; /* two ends */

struct content {
    uint32_t number;
    uint8_t rest[SIZE - sizeof(uint32_t)];
};

static void open_both(void)
{
    int fd[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    a = frame_line_make(MAGIC, SIZE, fd[0]);
    b = frame_line_make(MAGIC, SIZE, fd[1]);
    ck_assert(a && b);
}

static void close_both(void)
{
    close(a->fd);
    close(b->fd);
    free(a);
    free(b);
}

static struct content numbered(uint32_t i)
{
    struct content c = {.number = i};

    memset(c.rest, (int)i, sizeof c.rest);
    return c;
}

/* Frames cut at every place. */
START_TEST(cut_anywhere)
{
    struct content one = numbered(1), two = numbered(2);
    uint8_t bytes[2 * N];

    ck_assert(frame_line_queue(a, &one) && frame_line_queue(a, &two));
    ck_assert_uint_eq(a->n_out, 2 * N);
    memcpy(bytes, frame_line_out(a), sizeof bytes);
    ck_assert_int_eq(send(a->fd, bytes, (size_t)_i, 0), _i);
    if ((uint32_t)_i < N)
        ck_assert_int_eq(frame_line_read(b), FRAME_NOTHING);
    ck_assert_int_eq(send(a->fd, bytes + _i, 2 * N - (size_t)_i, 0), (int)(2 * N) - _i);
    ck_assert_int_eq(frame_line_read(b), FRAME_WHOLE);
    ck_assert_int_eq(memcmp(frame_line_frame(b), &one, sizeof one), 0);
    ck_assert_int_eq(frame_line_read(b), FRAME_WHOLE);
    ck_assert_int_eq(memcmp(frame_line_frame(b), &two, sizeof two), 0);
    ck_assert_int_eq(frame_line_read(b), FRAME_NOTHING);
    close(a->fd);
    ck_assert_int_eq(frame_line_read(b), FRAME_ENDED);
    a->fd = -1;
}
END_TEST

/* What waits to go is bounded, and goes in order when there is room. */
START_TEST(queue_is_bounded)
{
    struct content c;
    uint32_t sent = 0, got = 0, refused = 0;

    while (refused < 100) {
        c = numbered(sent);
        if (frame_line_queue(a, &c)) {
            sent++;
            ck_assert(frame_line_write(a));
        } else {
            refused++;
        }
        ck_assert_uint_le(a->n_out, FRAME_LINE_QUEUED * N);
    }
    ck_assert_uint_gt(sent, FRAME_LINE_QUEUED); /* the socket's buffer is full */
    while (got < sent) {
        enum frame_news news = frame_line_read(b);
        if (news == FRAME_WHOLE)
            ck_assert_uint_eq(((const struct content *)frame_line_frame(b))->number, got++);
        else
            ck_assert_int_eq(news, FRAME_NOTHING);
        ck_assert(frame_line_write(a));
    }
    ck_assert_uint_eq(a->n_out, 0);
    close(b->fd);
    ck_assert(frame_line_queue(a, &c));
    ck_assert(!frame_line_write(a)); /* and no signal */
    b->fd = -1;
}
END_TEST

/* As soon as four bytes are there that are not the magic, or eight with another length. */
START_TEST(no_frames)
{
    static const uint32_t lengths[] = {
        0, 1, sizeof(struct content) - 1, sizeof(struct content) + 1, 0x7fffffff, 0x80000000u, 0xffffffffu};
    uint32_t head[2] = {MAGIC, lengths[_i % 7]};

    if (_i >= 7) {
        head[0] ^= 1u << (_i - 7);
        head[1] = sizeof(struct content);
    }
    for (size_t i = 0; i < sizeof head; i++) {
        ck_assert_int_eq(send(a->fd, (uint8_t *)head + i, 1, 0), 1);
        if (i < (_i < 7 ? 7 : 3))
            ck_assert_int_eq(frame_line_read(b), FRAME_NOTHING);
        else
            ck_assert_int_eq(frame_line_read(b), FRAME_INVALID);
        if (i == 3 && _i >= 7)
            return;
    }
}
END_TEST

START_TEST(random_bytes)
{
    srand(11);
    for (int round = 0; round < 2000; round++) {
        uint8_t bytes[3 * N];
        size_t n = 1 + (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)rand();
        if (round % 2) /* a good beginning */
            memcpy(bytes, &(uint32_t){MAGIC}, 4);
        close_both();
        open_both();
        ck_assert_int_eq(send(a->fd, bytes, n, 0), (long)n);
        enum frame_news news = frame_line_read(b);
        ck_assert(news == FRAME_INVALID || (news == FRAME_NOTHING && n < 8));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frames on sockets");
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, open_both, close_both);
    tcase_add_loop_test(t, cut_anywhere, 0, (int)(2 * N) + 1);
    tcase_add_test(t, queue_is_bounded);
    tcase_add_loop_test(t, no_frames, 0, 7 + 32);
    tcase_add_test(t, random_bytes);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
