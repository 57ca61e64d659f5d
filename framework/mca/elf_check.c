/* Looks at a shared object before the loader maps it. The loader trusts the sizes in the file: a plugin that was cut
 * short by a full disk or an interrupted copy would end the process with SIGBUS when a page beyond its end is touched.
 */
#include "framework/mca/internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef ElfW(Ehdr) ehdr_t;
typedef ElfW(Phdr) phdr_t;
typedef ElfW(Shdr) shdr_t;

/* A file, and the last part of it that was read: tables are read entry by entry, from a few parts. */
struct elf_file {
    int fd;
    uint64_t at; /* of the part, in the file */
    size_t n;    /* its bytes */
    char part[4096];
};

static bool elf_fill(struct elf_file *f, uint64_t at)
{
    ssize_t got;
    do
        got = pread(f->fd, f->part, sizeof(f->part), (off_t)at);
    while (got < 0 && errno == EINTR);
    f->at = at;
    f->n = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static bool elf_read_at(struct elf_file *f, void *buf, size_t n, uint64_t at)
{
    size_t done = 0;
    while (done < n) {
        if (at + done < f->at || at + done - f->at >= f->n)
            if (!elf_fill(f, at + done))
                return false;
        size_t skip = (size_t)(at + done - f->at), part = f->n - skip < n - done ? f->n - skip : n - done;
        memcpy((char *)buf + done, f->part + skip, part);
        done += part;
    }
    return true;
}

/* Whether [at, at + n) lies inside a file of `size` bytes. */
static bool elf_inside(uint64_t at, uint64_t n, uint64_t size)
{
    return at <= size && n <= size - at;
}

/* The header of the object that this code is in, made by the linker: it says what this process can load. */
extern const ehdr_t __ehdr_start __attribute__((visibility("hidden")));

static int elf_check_header(const ehdr_t *h, char *why, size_t why_size)
{
    const ehdr_t own = __ehdr_start;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "not a shared object (no ELF magic)");
    int wanted_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (h->e_ident[EI_CLASS] != wanted_class)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "not a %d-bit object", (int)sizeof(void *) * 8);
    if (h->e_machine != own.e_machine || h->e_ident[EI_DATA] != own.e_ident[EI_DATA])
        return st_mca_fail(STRATA_ERR_ABI, why, why_size,
                           "built for another processor (ELF machine %u, this one is %u)", h->e_machine, own.e_machine);
    if (h->e_type != ET_DYN)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "not a shared object (ELF type %u)", h->e_type);
    return STRATA_OK;
}

/* Without these two tables the loader would follow null pointers. */
static int elf_check_dynamic(struct elf_file *f, const phdr_t *p, char *why, size_t why_size)
{
    bool strings = false, symbols = false;
    for (uint64_t i = 0; i < p->p_filesz / sizeof(ElfW(Dyn)); i++) {
        ElfW(Dyn) d;
        if (!elf_read_at(f, &d, sizeof(d), p->p_offset + i * sizeof(d)))
            return st_mca_fail(STRATA_ERR_SYSTEM, why, why_size, "cannot be read: %s", strerror(errno));
        if (d.d_tag == DT_NULL)
            break;
        strings = strings || d.d_tag == DT_STRTAB;
        symbols = symbols || d.d_tag == DT_SYMTAB;
    }
    if (!strings || !symbols)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "damaged: its dynamic section has no symbols");
    return STRATA_OK;
}

static int elf_check_segments(struct elf_file *f, const ehdr_t *h, uint64_t size, char *why, size_t why_size)
{
    if (h->e_phnum == 0 || h->e_phentsize != sizeof(phdr_t))
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "damaged: no program headers");
    if (!elf_inside(h->e_phoff, (uint64_t)h->e_phnum * sizeof(phdr_t), size))
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "truncated: program headers lie beyond its %llu bytes",
                           (unsigned long long)size);
    phdr_t dynamic = {.p_type = PT_NULL};
    for (unsigned i = 0; i < h->e_phnum; i++) {
        phdr_t p;
        if (!elf_read_at(f, &p, sizeof(p), h->e_phoff + (uint64_t)i * sizeof(p)))
            return st_mca_fail(STRATA_ERR_SYSTEM, why, why_size, "cannot be read: %s", strerror(errno));
        if ((p.p_type == PT_LOAD || p.p_type == PT_DYNAMIC) && !elf_inside(p.p_offset, p.p_filesz, size))
            return st_mca_fail(STRATA_ERR_ABI, why, why_size,
                               "truncated: segment %u ends at byte %llu, the file at %llu", i,
                               (unsigned long long)(p.p_offset + p.p_filesz), (unsigned long long)size);
        if (p.p_type == PT_DYNAMIC)
            dynamic = p;
    }
    if (dynamic.p_type == PT_NULL)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "damaged: no dynamic section");
    return elf_check_dynamic(f, &dynamic, why, why_size); /* elsewhere in the file than the headers */
}

/* The section table is the last thing in a file that the usual linkers write: a file without its end shows here. */
static int elf_check_sections(struct elf_file *f, const ehdr_t *h, uint64_t size, char *why, size_t why_size)
{
    if (h->e_shoff == 0)
        return STRATA_OK; /* stripped of it: allowed, the loader does not need it */
    if (h->e_shentsize != sizeof(shdr_t) || !elf_inside(h->e_shoff, (uint64_t)h->e_shnum * sizeof(shdr_t), size))
        return st_mca_fail(
            STRATA_ERR_ABI, why, why_size, "truncated: its section table ends at byte %llu, the file at %llu",
            (unsigned long long)(h->e_shoff + (uint64_t)h->e_shnum * sizeof(shdr_t)), (unsigned long long)size);
    for (unsigned i = 0; i < h->e_shnum; i++) {
        shdr_t s;
        if (!elf_read_at(f, &s, sizeof(s), h->e_shoff + (uint64_t)i * sizeof(s)))
            return st_mca_fail(STRATA_ERR_SYSTEM, why, why_size, "cannot be read: %s", strerror(errno));
        if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS && !elf_inside(s.sh_offset, s.sh_size, size))
            return st_mca_fail(STRATA_ERR_ABI, why, why_size,
                               "truncated: section %u ends at byte %llu, the file at %llu", i,
                               (unsigned long long)(s.sh_offset + s.sh_size), (unsigned long long)size);
        /* A copy that was interrupted after its space had been reserved has the right size and ends in zeros. */
        if (i == h->e_shstrndx && i != SHN_UNDEF && s.sh_type != SHT_STRTAB)
            return st_mca_fail(STRATA_ERR_ABI, why, why_size, "damaged: its section table is blank or overwritten");
    }
    return STRATA_OK;
}

static int elf_check_open(struct elf_file *f, char *why, size_t why_size)
{
    struct stat st;
    ehdr_t h;
    if (fstat(f->fd, &st))
        return st_mca_fail(STRATA_ERR_SYSTEM, why, why_size, "cannot be examined: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "not a regular file");
    uint64_t size = (uint64_t)st.st_size;
    if (size == 0)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "truncated: the file is empty");
    if (size < sizeof(h))
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "truncated: %llu bytes are less than an ELF header",
                           (unsigned long long)size);
    if (!elf_read_at(f, &h, sizeof(h), 0))
        return st_mca_fail(STRATA_ERR_SYSTEM, why, why_size, "cannot be read: %s", strerror(errno));
    int rc = elf_check_header(&h, why, why_size);
    if (!rc)
        rc = elf_check_segments(f, &h, size, why, why_size);
    if (!rc)
        rc = elf_check_sections(f, &h, size, why, why_size);
    return rc;
}

int st_elf_check(const char *path, char *why, size_t why_size)
{
    struct elf_file f;
    f.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    f.at = f.n = 0;
    if (f.fd < 0)
        return st_mca_fail(STRATA_ERR_SYSTEM, why, why_size, "cannot be opened: %s", strerror(errno));
    int rc = elf_check_open(&f, why, why_size);
    close(f.fd);
    return rc;
}
