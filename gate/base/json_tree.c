/* json_tree.c: see json_tree.h. */
#include "base/json_tree.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_BYTES ((size_t)1 << 20)
#define N_KEYS (sizeof(((struct json_pool *)NULL)->keys) / sizeof(char *))

/* ---- memory ---- */

/* Straight from the system, which gets all of it back at the end, whichever thread that is on. */
struct json_block {
    struct json_block *next;
    size_t size; /* with this head */
    max_align_t bytes[];
};

static void use_block(struct json_pool *pool, struct json_block *block)
{
    pool->blocks = block;
    pool->at = (char *)block->bytes;
    pool->end = (char *)block + block->size;
}

static bool add_block(struct json_pool *pool, size_t least)
{
    size_t size = sizeof(struct json_block) + least;
    if (size < BLOCK_BYTES)
        size = BLOCK_BYTES;
    if (pool->max_bytes > 0 && size > pool->max_bytes - pool->bytes) {
        pool->full = true;
        return false;
    }
    struct json_block *block =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return false;
    block->next = pool->blocks;
    block->size = size;
    pool->bytes += size;
    use_block(pool, block);
    return true;
}

/* Each size is rounded up, so what follows is aligned for a node. */
void *json_pool_take(struct json_pool *pool, size_t n)
{
    n = (n + _Alignof(cJSON) - 1) / _Alignof(cJSON) * _Alignof(cJSON);
    if ((size_t)(pool->end - pool->at) < n && !add_block(pool, n))
        return NULL;
    void *bytes = pool->at;
    pool->at += n;
    return bytes;
}

static void drop_blocks(struct json_pool *pool, struct json_block *kept)
{
    while (pool->blocks != kept) {
        struct json_block *block = pool->blocks;
        pool->blocks = block->next;
        pool->bytes -= block->size;
        munmap(block, block->size);
    }
}

void json_pool_release(struct json_pool *pool)
{
    drop_blocks(pool, NULL);
    *pool = (struct json_pool){.max_bytes = pool->max_bytes, .full = pool->full};
}

void json_pool_clear(struct json_pool *pool)
{
    struct json_block *first = pool->blocks;
    while (first && first->next)
        first = first->next;
    drop_blocks(pool, first);
    if (first)
        use_block(pool, first);
    memset(pool->keys, 0, sizeof(pool->keys));
}

/* ---- nodes ---- */

cJSON *json_new_node(struct json_pool *pool)
{
    cJSON *node = pool ? json_pool_take(pool, sizeof(*node)) : cJSON_malloc(sizeof(*node));
    if (node)
        *node = (cJSON){0};
    return node;
}

/* As cJSON does it: the first child's `prev` is the last one. */
cJSON *json_add_node(struct json_pool *pool, cJSON *parent)
{
    cJSON *node = json_new_node(pool);
    if (!node)
        return NULL;
    if (!parent->child) {
        parent->child = node->prev = node;
        return node;
    }
    node->prev = parent->child->prev;
    node->prev->next = node;
    parent->child->prev = node;
    return node;
}

char *json_keep(struct json_pool *pool, const char *s, size_t len)
{
    char *copy = pool ? json_pool_take(pool, len + 1) : cJSON_malloc(len + 1);
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *json_keep_key(struct json_pool *pool, struct json_name name)
{
    char **key = pool ? &pool->keys[name.hash % N_KEYS] : NULL;
    if (key && *key && strcmp(*key, name.text) == 0)
        return *key;
    char *copy = json_keep(pool, name.text, name.len);
    if (key && copy)
        *key = copy;
    return copy;
}

/* ---- values ---- */

void json_set_number(cJSON *node, double value)
{
    node->type = cJSON_Number;
    node->valuedouble = value;
    node->valueint = value >= INT_MAX ? INT_MAX : value <= INT_MIN ? INT_MIN : (int)value;
}

void json_set_word(cJSON *node, int type)
{
    node->type = type;
    node->valueint = type == cJSON_True;
}

/*
 * A number of up to 15 digits, and a power of ten of up to 22, are doubles both, so one operation
 * on them rounds once, as strtod() does, which takes five times as long.
 */
static bool small_number(const char *p, const char *end, double *value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool negative = *p == '-', behind_point = false;
    uint64_t digits = 0;
    unsigned n = 0, decimals = 0;
    for (p += negative; p < end; p++) {
        if (*p == '.') {
            behind_point = true;
            continue;
        }
        if (*p < '0' || *p > '9' || ++n > 15)
            return false;
        digits = digits * 10 + (uint64_t)(*p - '0');
        decimals += behind_point;
    }
    *value = (negative ? -1.0 : 1.0) * (double)digits / powers[decimals];
    return true;
}

double json_number_value(const char *text, size_t len)
{
    char copy[64];
    double value;
    if (small_number(text, text + len, &value))
        return value;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return strtod(copy, NULL);
}
