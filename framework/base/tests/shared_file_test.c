/* Memory that peers may map: its pieces, what they hold, and what happens where there is none. */
#define _GNU_SOURCE 1
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/sdk/shared_file.h>
#include "support/run_suite.h"

static struct st_shared_file file;
static size_t page;

static void begin(void)
{
    file = (struct st_shared_file){.fd = -1};
    page = (size_t)sysconf(_SC_PAGESIZE);
}
static void end(void)
{
    st_shared_close(&file);
    ck_assert_int_eq(file.fd, -1);
}

/* As a peer has it: another mapping. */
static char *map(const struct st_shared_piece *p)
{
    char *m = mmap(NULL, p->length, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, (off_t)p->offset);
    ck_assert_ptr_ne(m, MAP_FAILED);
    return m;
}

START_TEST(pieces_are_whole_pages_of_one_file)
{
    static const size_t lengths[] = {1, 4096, 4097, 1 << 20};
    struct st_shared_piece p[4];
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(st_shared_alloc(&file, lengths[i], &p[i]), STRATA_OK);
        ck_assert_uint_ge(p[i].length, lengths[i]);
        ck_assert_uint_eq(p[i].length % page, 0);
        ck_assert_int_eq(p[i].fd, file.fd);
        ck_assert_uint_eq(p[i].offset, i ? p[i - 1].offset + p[i - 1].length : 0);
        char *far = map(&p[i]), *near = p[i].memory;
        for (size_t k = 0; k < p[i].length; k += page)
            ck_assert_int_eq(near[k], 0);
        near[0] = 5;
        far[p[i].length - 1] = 7;
        ck_assert_int_eq(far[0], 5);
        ck_assert_int_eq(near[p[i].length - 1], 7);
        munmap(far, p[i].length);
    }
    for (int i = 0; i < 4; i++)
        st_shared_free(&file, &p[i]);
}
END_TEST

START_TEST(memory_is_found_in_the_file)
{
    struct st_shared_piece p[3], found;
    char other = 0;
    ck_assert(!st_shared_find(&file, &other, 1, &found));
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(st_shared_alloc(&file, (size_t)(i + 1) * page, &p[i]), STRATA_OK);
    for (int i = 0; i < 3; i++) {
        char *m = p[i].memory;
        ck_assert(st_shared_find(&file, m + 100, 50, &found));
        ck_assert_ptr_eq(found.memory, m + 100);
        ck_assert_uint_eq(found.length, 50);
        ck_assert_uint_eq(found.offset, p[i].offset + 100);
        ck_assert_int_eq(found.fd, file.fd);
        ck_assert(st_shared_find(&file, m, p[i].length, &found));
        ck_assert(!st_shared_find(&file, m, 0, &found));
        ck_assert(!st_shared_find(&file, m + 1, p[i].length, &found));
        ck_assert(!st_shared_find(&file, m + 1, SIZE_MAX, &found));
    }
    ck_assert(!st_shared_find(&file, &other, 1, &found));
    st_shared_free(&file, &p[1]);
    ck_assert(!st_shared_find(&file, p[1].memory, 1, &found));
    ck_assert(st_shared_find(&file, p[2].memory, 1, &found));
    st_shared_free(&file, &p[0]);
    st_shared_free(&file, &p[2]);
    ck_assert(!st_shared_find(&file, p[2].memory, 1, &found));
    ck_assert_uint_eq(file.used, 0);
}
END_TEST

START_TEST(nobody_makes_it_shorter)
{
    struct st_shared_piece p;
    struct stat st;
    ck_assert_int_eq(st_shared_alloc(&file, 3 * page, &p), STRATA_OK);
    ck_assert_int_ne(ftruncate(file.fd, 0), 0);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fstat(file.fd, &st), 0);
    ck_assert_uint_ge((size_t)st.st_blocks * 512, 3 * page); /* reserved, not only promised */
    st_shared_free(&file, &p);
}
END_TEST

START_TEST(freed_memory_goes_back)
{
    struct st_shared_piece p;
    struct stat st;
    ck_assert_int_eq(st_shared_alloc(&file, 64 * page, &p), STRATA_OK);
    char *far = map(&p);
    memset(far, 1, p.length);
    st_shared_free(&file, &p);
    ck_assert_int_eq(fstat(file.fd, &st), 0);
    ck_assert_int_eq((int)st.st_blocks, 0);
    ck_assert_int_eq(far[0], 0); /* a peer that still has it may touch it */
    far[0] = 1;
    munmap(far, p.length);
}
END_TEST

START_TEST(a_child_does_not_have_it)
{
    struct st_shared_piece p;
    int status;
    ck_assert_int_eq(st_shared_alloc(&file, page, &p), STRATA_OK);
    pid_t pid = fork();
    if (pid == 0) {
        unsigned char there;
        _exit(mincore(p.memory, page, &there) == 0 || errno != ENOMEM);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    st_shared_free(&file, &p);
}
END_TEST

START_TEST(what_cannot_be_had_is_an_error)
{
    struct st_shared_piece p = {.fd = 77};
    struct rlimit lengths, files;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &lengths), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit one_page = {page, lengths.rlim_max}, no_file = {0, files.rlim_max};
    ck_assert_int_eq(st_shared_alloc(&file, 0, &p), STRATA_ERR_NOMEM);
    ck_assert_int_eq(st_shared_alloc(&file, SIZE_MAX, &p), STRATA_ERR_NOMEM);
    ck_assert_int_eq(st_shared_alloc(&file, (size_t)1 << 62, &p),
                     STRATA_ERR_NOMEM); /* and not until there is no more */
    ck_assert_int_eq(st_shared_alloc(&file, (size_t)sysconf(_SC_PHYS_PAGES) / 2 * page + 1, &p), STRATA_ERR_NOMEM);
    ck_assert_uint_eq(file.used, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &one_page), 0); /* more than that would be SIGXFSZ */
    ck_assert_int_eq(st_shared_alloc(&file, 2 * page, &p), STRATA_ERR_NOMEM);
    ck_assert_int_eq(p.fd, 77);
    ck_assert_int_eq(st_shared_alloc(&file, page, &p), STRATA_OK);
    st_shared_free(&file, &p);
    st_shared_close(&file);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &no_file), 0);
    ck_assert_int_eq(st_shared_alloc(&file, 1, &p), STRATA_ERR_NOMEM);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0); /* tools look around when the process ends */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shared_file");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, pieces_are_whole_pages_of_one_file);
    tcase_add_test(t, memory_is_found_in_the_file);
    tcase_add_test(t, nobody_makes_it_shorter);
    tcase_add_test(t, freed_memory_goes_back);
    tcase_add_test(t, a_child_does_not_have_it);
    tcase_add_test(t, what_cannot_be_had_is_an_error);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
