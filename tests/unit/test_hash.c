/* Tests of base/hash: the numbers of xxhsum -H128, whatever the pieces. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* what is in a state */
#include <xxhash.h>

#include <cmocka.h>

/* XXH3's own: of nothing; and of "abc". */
static void known_texts_have_their_known_sums(void **state)
{
    (void)state;
    assert_string_equal(pl_hash_of("", 0).text,
                        "99aa06d3014798d86001c324468d497f");
    assert_string_equal(pl_hash_of("abc", 3).text,
                        "06b05ab6733a618578af5f94892f3950");
}

static void the_pieces_do_not_matter(void **state)
{
    (void)state;
    unsigned char data[3000];
    pl_hash hash;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + i / 256);
    pl_hash_text whole = pl_hash_of(data, sizeof data);
    for (size_t piece = 1; piece < 1000; piece += 13) {
        pl_hash_begin(&hash);
        for (size_t at = 0; at < sizeof data; at += piece)
            pl_hash_add(&hash, data + at,
                        sizeof data - at < piece ? sizeof data - at : piece);
        assert_string_equal(pl_hash_end(&hash).text, whole.text);
    }
}

static void every_bit_counts(void **state)
{
    (void)state;
    unsigned char data[300] = { 0 };
    pl_hash_text whole = pl_hash_of(data, sizeof data);
    for (size_t i = 0; i < sizeof data * 8; i++) {
        data[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_string_not_equal(pl_hash_of(data, sizeof data).text, whole.text);
        data[i / 8] ^= (unsigned char)(1u << i % 8);
    }
}

/* As it arrives from another process, where the library's table lies elsewhere.
 */
static void another_process_goes_on(void **state)
{
    (void)state;
    unsigned char data[5000], sent[sizeof(pl_hash)];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 41 + i / 256);
    const pl_hash_text whole = pl_hash_of(data, sizeof data);
    for (size_t at = 0; at <= sizeof data; at += 613) {
        pl_hash hash;
        pl_hash_begin(&hash);
        pl_hash_add(&hash, data, at);
        memcpy(sent, &hash, sizeof sent);
        memset(&hash, 0xa5, sizeof hash);
        memcpy(&hash, sent, sizeof hash);
        ((XXH3_state_t *)(void *)&hash)->extSecret = data;
        pl_hash_adopt(&hash);
        pl_hash_add(&hash, data + at, sizeof data - at);
        assert_string_equal(pl_hash_end(&hash).text, whole.text);
    }
    assert_int_equal(pl_hash_version(), XXH_versionNumber());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_have_their_known_sums),
        cmocka_unit_test(the_pieces_do_not_matter),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(another_process_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
