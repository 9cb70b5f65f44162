/* pages.c: see pages.h. */
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/log.h"

/* A body has a slot of the file, of which only the pages that it fills exist. */
#define SLOT_BYTES PAGES_MAX_BODY
#define N_SLOTS 512u
#define FILE_BYTES (N_SLOTS * SLOT_BYTES)

static struct {
    int fd;     /* of the file, which has no name */
    char *base; /* where all of it can be read; NULL: there is none */
    pthread_mutex_t mutex;
    unsigned n_free; /* of what follows */
    uint16_t free[N_SLOTS];
} pages = {.fd = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};

void pages_open(void)
{
    pages.fd = memfd_create("gate-server-bodies", MFD_CLOEXEC);
    void *base = MAP_FAILED;
    if (pages.fd >= 0 && ftruncate(pages.fd, (off_t)FILE_BYTES) == 0)
        base = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, pages.fd, 0);
    if (base == MAP_FAILED) {
        log_message(LOG_LEVEL_WARNING,
                    "kept answers are copied when they are sent: no file in memory: %s",
                    strerror(errno));
        pages_close();
        return;
    }
    madvise(base, FILE_BYTES, MADV_NOHUGEPAGE); /* none are made of small ones later */
    for (unsigned i = 0; i < N_SLOTS; i++)
        pages.free[i] = (uint16_t)(N_SLOTS - 1 - i);
    pages.n_free = N_SLOTS;
    pages.base = base;
}

void pages_close(void)
{
    if (pages.base)
        munmap(pages.base, FILE_BYTES);
    if (pages.fd >= 0)
        close(pages.fd);
    pages.base = NULL;
    pages.fd = -1;
    pages.n_free = 0;
}

/* Where a piece of memory lies in the file; -1: it does not. */
static off_t offset_of(const void *bytes)
{
    uintptr_t base = (uintptr_t)pages.base, at = (uintptr_t)bytes;
    return base != 0 && at >= base && at < base + FILE_BYTES ? (off_t)(at - base) : -1;
}

/*
 * A huge page is not taken from the file with a slot, but emptied in its place and used again, also
 * while the network holds it. Whether the system makes such ones for files in memory may change at
 * any time (transparent_hugepage/shmem_enabled), and is what it says of the size of a block.
 */
static bool has_huge_pages(void)
{
    struct stat st;
    return fstat(pages.fd, &st) < 0 || st.st_blksize > sysconf(_SC_PAGESIZE);
}

static void give_slot(unsigned slot)
{
    pthread_mutex_lock(&pages.mutex);
    pages.free[pages.n_free++] = (uint16_t)slot;
    pthread_mutex_unlock(&pages.mutex);
}

void *pages_put(const void *bytes, size_t n)
{
    if (n < PAGES_MIN_BODY || n > PAGES_MAX_BODY || has_huge_pages())
        return NULL;
    pthread_mutex_lock(&pages.mutex);
    bool room = pages.n_free > 0;
    unsigned slot = room ? pages.free[--pages.n_free] : 0;
    pthread_mutex_unlock(&pages.mutex);
    if (!room)
        return NULL;
    off_t at = (off_t)(slot * SLOT_BYTES);
    if (pwrite(pages.fd, bytes, n, at) == (ssize_t)n)
        return pages.base + at;
    pages_free(pages.base + at);
    return NULL;
}

/*
 * The network may still hold pages of the body, which must not get other bytes: the slot is
 * emptied, and has new pages when it is written to. One that cannot be emptied is not used again.
 */
void pages_free(void *body)
{
    off_t at = offset_of(body);
    if (fallocate(pages.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)SLOT_BYTES) == 0)
        give_slot((unsigned)((size_t)at / SLOT_BYTES));
}

/* The head's bytes are kept back by the network until the body's come. What of the body is not
 * taken now is the caller's to send, as after any send that takes a part. */
static ssize_t send_pages(int fd, const struct iovec *head, const struct iovec *body, off_t at,
                          int flags)
{
    ssize_t n = send(fd, head->iov_base, head->iov_len, flags | MSG_MORE);
    if (n < 0 || (size_t)n < head->iov_len)
        return n;
    ssize_t more = sendfile(fd, pages.fd, &at, body->iov_len);
    return more > 0 ? n + more : n;
}

/* Found by libmicrohttpd instead of the C library's. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (message->msg_iovlen == 2) {
        const struct iovec *pieces = message->msg_iov;
        off_t at = offset_of(pieces[1].iov_base);
        if (at >= 0)
            return send_pages(fd, &pieces[0], &pieces[1], at, flags);
    }
    return syscall(SYS_sendmsg, fd, message, flags);
}
