/* A thread is slow to come back from munmap: another has mapped memory at the same place, and registered it, before the
 * kernel tells softhca of the unmapping, which was that of the old memory. The new region is good; and it is watched:
 * once it is unmapped in its turn, its use is refused. The slow thread is held up by a userfaultfd of our own, which
 * watches what lies before the region: the kernel tells one after the other, and waits until each has read. Run it with
 * libsofthca preloaded. Exit status 77: no userfaultfd here. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "side.h"

#define PART     (64u << 10)
#define HELD_UP  20000 /* microseconds */
#define ANY_MODE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static int ours; /* the userfaultfd */
static char *place;

static char *map(char *at, size_t n, int how)
{
    return mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0);
}

/* Of what is unmapped, we are told first. */
static void hold_up(void)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_EVENT_UNMAP};
    struct uffdio_register r = {.range = {(uintptr_t)place, PART}, .mode = UFFDIO_REGISTER_MODE_MISSING};

    ours = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (ours < 0 || ioctl(ours, UFFDIO_API, &api) != 0) {
        printf("userfaultfd: %s\n", strerror(errno));
        exit(77);
    }
    NEED(ioctl(ours, UFFDIO_REGISTER, &r) == 0);
}

static void *unmap_all(void *arg)
{
    (void)arg;
    NEED(munmap(place, 2 * PART) == 0);
    return NULL;
}

static void *let_go(void *arg)
{
    struct uffd_msg m;

    (void)arg;
    usleep(HELD_UP);
    NEED(read(ours, &m, sizeof m) == sizeof m && m.event == UFFD_EVENT_UNMAP);
    return NULL;
}

/* Writes from a region to the memory of the other side. */
static enum ibv_wc_status use(struct side *s, const struct ibv_mr *mr, const struct side *other)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)memory, other->address.rkey}},
                       *bad;
    struct ibv_wc wc;
    int n;

    NEED(ibv_post_send(s->qp, &wr, &bad) == 0);
    while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
        ;
    NEED(n == 1);
    return wc.status;
}

static bool expect(const char *what, enum ibv_wc_status status, enum ibv_wc_status wanted)
{
    if (status != wanted)
        printf("%s: %s\n", what, ibv_wc_status_str(status));
    return status == wanted;
}

static bool remapped(struct side *s, const struct side *other)
{
    struct ibv_mr *old, *anew;
    pthread_t slow, reader;
    char *at;

    NEED((place = map(NULL, 2 * PART, 0)) != MAP_FAILED);
    NEED(old = ibv_reg_mr(s->qp->pd, place + PART, PART, ANY_MODE));
    hold_up();
    NEED(pthread_create(&slow, NULL, unmap_all, NULL) == 0);
    while ((at = map(place + PART, PART, MAP_FIXED_NOREPLACE)) == MAP_FAILED)
        NEED(errno == EEXIST && usleep(100) == 0);
    NEED(pthread_create(&reader, NULL, let_go, NULL) == 0);
    NEED(ibv_dereg_mr(old) == 0 && (anew = ibv_reg_mr(s->qp->pd, at, PART, ANY_MODE)));
    bool right = expect("the new region, at once", use(s, anew, other), IBV_WC_SUCCESS);
    NEED(pthread_join(reader, NULL) == 0 && pthread_join(slow, NULL) == 0);
    right = right && expect("the new region, when the other is back", use(s, anew, other), IBV_WC_SUCCESS);
    NEED(munmap(at, PART) == 0 && map(at, PART, MAP_FIXED_NOREPLACE) == at);
    return right && expect("what was unmapped later", use(s, anew, other), IBV_WC_LOC_PROT_ERR);
}

int main(void)
{
    struct side s = {0}, other = {0};

    NEED((memory = map(NULL, BYTES, 0)) != MAP_FAILED);
    make(&s, NULL);
    make(&other, s.cq);
    join(&s, &other.address);
    join(&other, &s.address);
    if (!remapped(&s, &other))
        return 1;
    printf("the new region is good, and watched\n");
    return 0;
}
