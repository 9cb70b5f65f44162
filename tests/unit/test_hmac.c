/* SPDX-License-Identifier: Apache-2.0 */
/* test_hmac.c: the test cases of RFC 4231. */
#include <stdio.h>
#include <string.h>

#include "server/watch/hmac.h"
#include "tests/unit/unit.h"

static void assert_mac(const void *key, size_t key_len, const void *text, size_t len,
                       const char *expected)
{
    uint8_t mac[HMAC_BYTES];
    char hex[2 * HMAC_BYTES + 1];
    hmac_sha256(key, key_len, text, len, mac);
    for (int i = 0; i < HMAC_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", mac[i]);
    assert_string_equal(hex, expected);
}

TEST(macs_are_those_of_the_standard)
{
    uint8_t key[131], text[50];
    memset(key, 0x0b, 20);
    assert_mac(key, 20, "Hi There", 8,
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_mac("Jefe", 4, "what do ya want for nothing?", 28,
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    memset(text, 0xdd, sizeof(text));
    assert_mac(key, 20, text, 50,
               "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    assert_mac(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(an_empty_key_and_text_have_a_mac)
{
    assert_mac("", 0, "", 0, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}
