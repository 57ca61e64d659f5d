/* Mapping a part of a process's shared file by its name: another mapping of the same memory; names and files that lie.
 */
#define _GNU_SOURCE 1
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <strata/sdk/shared_file.h>
#include <strata/sdk/shared_map.h>
#include "support/run_suite.h"

enum { AT = 5000, LENGTH = 9000 };

static struct st_shared_file file;
static struct st_shared_piece first, piece;
static struct st_shared_name name;
static struct st_shared_mapping mapping;

static void begin(void)
{
    file = (struct st_shared_file){.fd = -1};
    mapping = (struct st_shared_mapping){0};
    ck_assert_int_eq(st_shared_alloc(&file, 1, &first), STRATA_OK);
    ck_assert_int_eq(st_shared_alloc(&file, AT + LENGTH, &piece), STRATA_OK);
    ck_assert_int_eq(st_shared_name_make(file.fd, piece.offset + AT, LENGTH, &name), STRATA_OK);
}
static void end(void)
{
    st_shared_unmap(&mapping);
    st_shared_free(&file, &first);
    st_shared_free(&file, &piece);
    st_shared_close(&file);
}
static int map(void)
{
    return st_shared_map((uint32_t)getpid(), &name, &mapping);
}

START_TEST(the_same_memory)
{
    char *mine = (char *)piece.memory + AT;
    ck_assert_int_eq(map(), STRATA_OK);
    ck_assert_ptr_ne(mapping.memory, mine);
    memset(mapping.memory, 3, LENGTH);
    ck_assert_int_eq(mine[-1], 0);
    ck_assert_int_eq(mine[0], 3);
    ck_assert_int_eq(mine[LENGTH - 1], 3);
    ck_assert_int_eq(mine[LENGTH], 0);
    st_shared_unmap(&mapping);
    ck_assert_ptr_null(mapping.memory);
    st_shared_unmap(&mapping);
}
END_TEST

/* The owner has closed its file, or ended: what is mapped stays. */
START_TEST(the_owner_may_go)
{
    int ready[2], go[2], status;
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        struct st_shared_file theirs = {.fd = -1};
        struct st_shared_piece p;
        struct st_shared_name n;
        if (st_shared_alloc(&theirs, LENGTH, &p) != STRATA_OK ||
            st_shared_name_make(p.fd, p.offset, LENGTH, &n) != STRATA_OK)
            _exit(1);
        memset(p.memory, 9, LENGTH);
        _exit(write(ready[1], &n, sizeof n) != sizeof n || read(go[0], &byte, 1) != 1);
    }
    ck_assert_int_eq((int)read(ready[0], &name, sizeof name), sizeof name);
    ck_assert_int_eq(st_shared_map((uint32_t)child, &name, &mapping), STRATA_OK);
    ck_assert_int_eq((int)write(go[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(mapping.memory[LENGTH - 1], 9);
    memset(mapping.memory, 1, LENGTH);
    struct st_shared_mapping again;
    ck_assert_int_eq(st_shared_map((uint32_t)child, &name, &again), STRATA_ERR_UNSUPPORTED);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}
END_TEST

START_TEST(names_that_lie)
{
    struct st_shared_name good = name;
    ck_assert_int_eq(st_shared_name_make(file.fd, 0, 0, &name), STRATA_ERR_ARG);
    ck_assert_int_eq(st_shared_name_make(file.fd, 0, ST_SHARED_MAP_MOST + 1, &name), STRATA_ERR_ARG);
    ck_assert_int_eq(st_shared_name_make(-1, 0, 1, &name), STRATA_ERR_ARG);
#define LIE(field, value)                                                                                              \
    do {                                                                                                               \
        name = good;                                                                                                   \
        name.field = (value);                                                                                          \
        ck_assert_int_eq(map(), STRATA_ERR_UNSUPPORTED);                                                               \
        ck_assert_ptr_null(mapping.memory);                                                                            \
    } while (0)
    LIE(length, 0);
    LIE(length, file.size);
    LIE(length, UINT64_MAX);
    LIE(length, ST_SHARED_MAP_MOST + 1);
    LIE(offset, file.size);
    LIE(offset, UINT64_MAX);
    LIE(offset, UINT64_MAX - LENGTH + 1);
    LIE(inode, good.inode + 1);
    LIE(fd, 900);
    LIE(fd, -1);
#undef LIE
    name = good;
    ck_assert_int_eq(st_shared_map(UINT32_MAX, &name, &mapping), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(map(), STRATA_OK);
}
END_TEST

/* A descriptor of anything else: a pipe whose opening could block, a device, a file, a memfd that can be made shorter.
 */
START_TEST(files_that_lie)
{
    int other[4], ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    other[0] = ends[0];
    other[1] = open("/dev/zero", O_RDWR | O_CLOEXEC);
    other[2] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    other[3] = memfd_create("strata-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(other[3], 1 << 20), 0);
    for (int i = 0; i < 4; i++) {
        struct stat st;
        ck_assert_int_eq(fstat(other[i], &st), 0);
        name = (struct st_shared_name){.length = 1, .inode = (uint32_t)st.st_ino, .fd = other[i]};
        ck_assert_int_eq(map(), STRATA_ERR_UNSUPPORTED);
    }
    ck_assert_int_eq(fcntl(other[3], F_ADD_SEALS, F_SEAL_SHRINK), 0);
    ck_assert_int_eq(map(), STRATA_OK);
    for (int i = 0; i < 4; i++)
        close(other[i]);
    close(ends[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shared_map");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, the_same_memory);
    tcase_add_test(t, the_owner_may_go);
    tcase_add_test(t, names_that_lie);
    tcase_add_test(t, files_that_lie);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
