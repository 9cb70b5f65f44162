/* test_pages.c: what sendmsg() sends is what was put, also when it was given up meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/http/pages.h"

#define HEAD "HTTP/1.1 200 OK\r\n\r\n"
#define HEAD_BYTES (sizeof(HEAD) - 1)

static bool huge_pages; /* for files in memory, as the system tells it */

/* Found by pages.c instead of the C library's. */
int fstat(int fd, struct stat *st)
{
    int rc = fstatat(fd, "", st, AT_EMPTY_PATH);
    if (rc == 0 && huge_pages)
        st->st_blksize = 2 << 20;
    return rc;
}

static int set_up(void **state)
{
    (void)state;
    huge_pages = false;
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    pages_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pages_close();
    return 0;
}

/* Bytes that tell their place, and one body from another. */
static char *make_body(size_t n, unsigned seed)
{
    char *body = malloc(n);
    assert_non_null(body);
    for (size_t i = 0; i < n; i++)
        body[i] = (char)(seed + i * 7 + i / 251);
    return body;
}

static void *put(size_t n, unsigned seed)
{
    char *body = make_body(n, seed);
    void *kept = pages_put(body, n);
    free(body);
    return kept;
}

static ssize_t send_both(int fd, void *body, size_t n)
{
    struct iovec pieces[] = {{(void *)(uintptr_t)HEAD, HEAD_BYTES}, {body, n}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* Reads `n` bytes of what was sent: the head, then the body. */
static void assert_received(int fd, size_t n, unsigned seed)
{
    char *got = malloc(n), *body = make_body(n, seed);
    size_t have = 0;
    assert_non_null(got);
    while (have < n) {
        ssize_t more = read(fd, got + have, n - have);
        assert_true(more > 0);
        have += (size_t)more;
    }
    assert_memory_equal(got, HEAD, HEAD_BYTES);
    assert_memory_equal(got + HEAD_BYTES, body, n - HEAD_BYTES);
    free(got);
    free(body);
}

static void open_pair(int fd[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0); /* as libmicrohttpd's are */
}

static void close_pair(const int fd[2])
{
    close(fd[0]);
    close(fd[1]);
}

/* How many bytes this process has had sendfile() and read() take from files. */
static unsigned long long bytes_of_files(void)
{
    unsigned long long n = 0;
    FILE *file = fopen("/proc/self/io", "r");
    if (!file)
        skip();
    assert_int_equal(fscanf(file, "rchar: %llu", &n), 1);
    fclose(file);
    return n;
}

static void test_sent_as_pages(void **state)
{
    (void)state;
    static const size_t sizes[] = {PAGES_MIN_BODY, 28001, 65536};
    int fd[2];
    open_pair(fd);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *body = put(sizes[i], (unsigned)i);
        assert_non_null(body);
        unsigned long long before = bytes_of_files();
        assert_int_equal(send_both(fd[0], body, sizes[i]), HEAD_BYTES + sizes[i]);
        assert_true(bytes_of_files() - before >= sizes[i]);
        assert_received(fd[1], HEAD_BYTES + sizes[i], (unsigned)i);
        pages_free(body);
    }
    close_pair(fd);
}

/* Any other memory goes out as before. */
static void test_other_memory(void **state)
{
    (void)state;
    int fd[2];
    char *body = make_body(20000, 5);
    open_pair(fd);
    assert_int_equal(send_both(fd[0], body, 20000), HEAD_BYTES + 20000);
    assert_received(fd[1], HEAD_BYTES + 20000, 5);
    free(body);
    close_pair(fd);
}

/* The network holds the pages of a body that was given up, and its slot has got another. */
static void test_freed_before_it_is_read(void **state)
{
    (void)state;
    size_t n = 40000;
    int fd[2];
    open_pair(fd);
    void *first = put(n, 1);
    assert_int_equal(send_both(fd[0], first, n), HEAD_BYTES + n);
    pages_free(first);
    void *second = put(n, 2);
    assert_ptr_equal(second, first); /* the slot that became free last */
    assert_received(fd[1], HEAD_BYTES + n, 1);
    assert_int_equal(send_both(fd[0], second, n), HEAD_BYTES + n);
    assert_received(fd[1], HEAD_BYTES + n, 2);
    pages_free(second);
    close_pair(fd);
}

/* A client that does not read: what was taken is said, and the rest is to be sent as plain memory.
 */
static void test_taken_in_part(void **state)
{
    (void)state;
    size_t n = PAGES_MAX_BODY;
    int fd[2], small = 8192;
    open_pair(fd);
    assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    char *body = put(n, 9);
    ssize_t sent = send_both(fd[0], body, n);
    assert_true(sent >= (ssize_t)HEAD_BYTES && (size_t)sent < HEAD_BYTES + n);
    assert_received(fd[1], (size_t)sent, 9);
    char *expected = make_body(n, 9);
    assert_memory_equal(body + sent - HEAD_BYTES, expected + sent - HEAD_BYTES,
                        n + HEAD_BYTES - (size_t)sent);
    /* Until not even the head has room; what was said to be taken is what comes out. */
    size_t n_said = 0, n_came = 0;
    for (ssize_t more; (more = send_both(fd[0], body, n)) > 0;)
        n_said += (size_t)more;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(fd[1], F_SETFL, O_NONBLOCK), 0);
    for (ssize_t more; (more = read(fd[1], expected, n)) > 0;)
        n_came += (size_t)more;
    assert_int_equal(n_came, n_said);
    free(expected);
    pages_free(body);
    close(fd[1]);
    body = put(n, 9);
    assert_int_equal(send_both(fd[0], body, n), -1);
    assert_int_equal(errno, EPIPE);
    pages_free(body);
    close(fd[0]);
}

static void test_sizes_and_room(void **state)
{
    (void)state;
    static void *kept[4096];
    size_t n = 0;
    assert_null(put(PAGES_MIN_BODY - 1, 0));
    assert_null(put(PAGES_MAX_BODY + 1, 0));
    while (n < 4096 && (kept[n] = put(PAGES_MIN_BODY, (unsigned)n)) != NULL)
        n++;
    assert_in_range(n, 100, 4095); /* there is an end */
    for (size_t i = 0; i < n; i++) {
        char *body = make_body(PAGES_MIN_BODY, (unsigned)i);
        assert_memory_equal(kept[i], body, PAGES_MIN_BODY);
        free(body);
        pages_free(kept[i]);
    }
    for (size_t i = 0; i < n; i++)
        assert_non_null(kept[i] = put(PAGES_MIN_BODY, 0));
    for (size_t i = 0; i < n; i++)
        pages_free(kept[i]);
}

/* Where there is no such memory, nothing is kept in it and sendmsg() still sends. */
static void test_without(void **state)
{
    pages_close();
    assert_null(put(PAGES_MIN_BODY, 0));
    test_other_memory(state);
    pages_open();
}

/* The system may be told to make them, and not to, while the server runs. */
static void test_huge_pages(void **state)
{
    (void)state;
    huge_pages = true;
    assert_null(put(PAGES_MIN_BODY, 0));
    huge_pages = false;
    void *body = put(PAGES_MIN_BODY, 0);
    assert_non_null(body);
    pages_free(body);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_sent_as_pages), TEST(test_other_memory),   TEST(test_freed_before_it_is_read),
        TEST(test_taken_in_part), TEST(test_sizes_and_room), TEST(test_without),
        TEST(test_huge_pages),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
