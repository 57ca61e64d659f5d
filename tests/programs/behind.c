/* A short message sent while a long one, not in one piece, is on its way: `behind FILE`, two ranks. Rank 1 reads
 * nothing from when it has 4 MiB of the long one, and says so by FILE.still, until FILE exists, which rank 0 makes when
 * its transport takes no more of it and the short one is sent. Rank 1 prints how many bytes of the long one that had
 * been packed before the short one was sent had not been unpacked when that arrived: "passed N bytes". All bytes of
 * both are checked. */
#include <fcntl.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { LONG = 64 << 20, FIRST = 4 << 20, STILL = 20000, TAG_LONG = 1, TAG_SHORT = 2 };

static size_t moved; /* of the long message: packed, or unpacked */

static char byte_of(size_t at)
{
    return (char)(at * 7 + at / 4096);
}

static void note(size_t end)
{
    moved = end > moved ? end : moved;
}

static ptrdiff_t pack(void *user, size_t offset, void *dst, size_t length)
{
    (void)user;
    for (size_t i = 0; i < length; i++)
        ((char *)dst)[i] = byte_of(offset + i);
    note(offset + length);
    return (ptrdiff_t)length;
}

static ptrdiff_t unpack(void *user, size_t offset, const void *src, size_t length)
{
    (void)user;
    for (size_t i = 0; i < length; i++)
        CHECK(((const char *)src)[i] == byte_of(offset + i));
    moved += length;
    return (ptrdiff_t)length;
}

static void make_file(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY, 0600);

    CHECK(fd >= 0);
    close(fd);
}

/* The long one is sent until nothing more is taken, then the short one, which says how much had been packed. */
static void sender(strata_t *s, strata_comm_t *world, const strata_data_t *data, const char *file, const char *is_still)
{
    strata_request_t *q[2];
    size_t before = 0, packed;

    CHECK_OK(strata_isend_data(world, data, 1, TAG_LONG, STRATA_STANDARD, &q[0]));
    while (access(is_still, F_OK) != 0)
        strata_progress(s);
    for (int still = 0; still < STILL; still = moved == before ? still + 1 : 0) {
        before = moved;
        strata_progress(s);
    }
    CHECK(moved < LONG);
    packed = moved;
    CHECK_OK(strata_isend(world, &packed, sizeof packed, 1, TAG_SHORT, &q[1]));
    strata_progress(s);
    make_file(file);
    CHECK_OK(strata_waitall(2, q, NULL));
}

static void receiver(strata_t *s, strata_comm_t *world, const strata_data_t *data, const char *file,
                     const char *is_still)
{
    strata_request_t *q[2];
    size_t packed = 0;
    int done = 0;

    CHECK_OK(strata_irecv_data(world, data, 0, TAG_LONG, &q[0]));
    CHECK_OK(strata_irecv(world, &packed, sizeof packed, 0, TAG_SHORT, &q[1]));
    while (moved < FIRST)
        strata_progress(s);
    make_file(is_still);
    while (access(file, F_OK) != 0)
        usleep(1000);
    while (!done)
        CHECK_OK(strata_test(&q[1], &done, NULL));
    printf("passed %zu bytes\n", packed > moved ? packed - moved : 0);
    CHECK_OK(strata_wait(&q[0], NULL));
    CHECK_EQ(moved, LONG);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    const strata_data_t data = {.kind = STRATA_GENERIC, .length = LONG, .u.convert = {.pack = pack, .unpack = unpack}};
    char is_still[4096];
    strata_t *s;

    CHECK(argc > 1);
    snprintf(is_still, sizeof is_still, "%s.still", argv[1]);
    CHECK_OK(strata_init(NULL, &s));
    CHECK_EQ(strata_size(s), 2);
    watchdog_name_thread(strata_rank(s));
    if (strata_rank(s) == 0)
        sender(s, strata_world(s), &data, argv[1], is_still);
    else
        receiver(s, strata_world(s), &data, argv[1], is_still);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
