/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: the last-level cache has 2 MiB, whatever the machine has. The inputs of a case on
 * the host rotate through three times the cache, and each audit fills them anew: with the 64 MiB of
 * a server, that was most of the processor time of all tests.
 */
#include <unistd.h>

long __sysconf(int name);

long sysconf(int name)
{
    return name == _SC_LEVEL3_CACHE_SIZE ? 2 << 20 : __sysconf(name);
}
