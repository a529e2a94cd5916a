/* rdb_text.c: prints the text in an R package's lazy-load data (Rdata.rdb).
 *
 *   rdb_text FILE.rdb > text
 *
 * Character vectors become lines, in the file's order, two blank lines after
 * each vector; other R objects are skipped. The layout, as far as it is read:
 *
 *   file     record, record, ... to the end
 *   record   u32 size of the data, then the data as one zlib stream
 *   data     "X\n", u32 version (2 or 3), u32 R version, u32 oldest reader,
 *            in version 3: u32 n, n bytes naming the native encoding,
 *            then one item
 *   item     u32 flags: type in the low byte (16 = character vector);
 *            character vector: u32 count, then count strings, then perhaps
 *            attributes, which are not read
 *   string   u32 flags: type 9, encoding in bits 13 (bytes), 14 (Latin-1),
 *            15 (UTF-8), 18 (ASCII); u32 length, 0xffffffff = NA; the bytes
 *
 * All numbers are big-endian. Owns nothing but standard output. The file is
 * not trusted: every length is checked against the bytes that are there. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    MAX_FILE_BYTES = 256 << 20,
    MAX_RECORD_BYTES = 64 << 20,
    TYPE_STRING = 9,
    TYPE_CHARACTER_VECTOR = 16,
};

#define ENC_BYTES  (UINT32_C(1) << 13)
#define ENC_LATIN1 (UINT32_C(1) << 14)
#define ENC_UTF8   (UINT32_C(1) << 15)
#define NA_LENGTH  UINT32_C(0xffffffff)

typedef struct bytes {
    const unsigned char *at;
    size_t left;
} bytes;

typedef enum found { FOUND_TEXT, FOUND_OTHER, FOUND_DAMAGE } found;

__attribute__((format(printf, 1, 2))) static found damage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("rdb_text: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return FOUND_DAMAGE;
}

/* 1 and the number, or 0 when fewer than four bytes are left. */
static int take_u32(bytes *in, uint32_t *out)
{
    if (in->left < 4)
        return 0;
    *out = (uint32_t)in->at[0] << 24 | (uint32_t)in->at[1] << 16 |
           (uint32_t)in->at[2] << 8 | (uint32_t)in->at[3];
    in->at += 4;
    in->left -= 4;
    return 1;
}

static int take_bytes(bytes *in, size_t count, const unsigned char **out)
{
    if (count > in->left)
        return 0;
    *out = in->at;
    in->at += count;
    in->left -= count;
    return 1;
}

static int is_ascii(const unsigned char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text[i] >= 0x80)
            return 0;
    return 1;
}

static void print_latin1(const unsigned char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (text[i] < 0x80) {
            putchar(text[i]);
        } else {
            putchar(0xc0 | text[i] >> 6);
            putchar(0x80 | (text[i] & 0x3f));
        }
    }
}

static found print_string(bytes *in, int native_is_utf8)
{
    uint32_t flags, length;
    const unsigned char *text;

    if (!take_u32(in, &flags) || !take_u32(in, &length))
        return damage("a string's head is cut off");
    if ((flags & 0xff) != TYPE_STRING)
        return damage("R type %u where a string should be",
                      (unsigned)(flags & 0xff));
    if (length == NA_LENGTH)
        length = 0;
    if (!take_bytes(in, length, &text))
        return damage("a string of %lu bytes where %zu are left",
                      (unsigned long)length, in->left);
    if ((flags & ENC_LATIN1) && !(flags & ENC_UTF8))
        print_latin1(text, length);
    else if (is_ascii(text, length) || (flags & ENC_UTF8) ||
             (native_is_utf8 && !(flags & ENC_BYTES)))
        fwrite(text, 1, length, stdout);
    else
        return damage("a string in an unknown encoding");
    putchar('\n');
    return FOUND_TEXT;
}

/* Prints one record's data, if it is a character vector. */
static found print_data(bytes in)
{
    uint32_t version, ignored, length, flags, count;
    const unsigned char *text;
    int native_is_utf8 = 0;

    if (!take_bytes(&in, 2, &text) || memcmp(text, "X\n", 2) != 0)
        return damage("not R's XDR format");
    if (!take_u32(&in, &version) || !take_u32(&in, &ignored) ||
        !take_u32(&in, &ignored))
        return damage("the head is cut off");
    if (version != 2 && version != 3)
        return damage("format version %lu; 2 and 3 are known",
                      (unsigned long)version);
    if (version == 3) {
        if (!take_u32(&in, &length) || !take_bytes(&in, length, &text))
            return damage("the encoding's name is cut off");
        native_is_utf8 = length == 5 && memcmp(text, "UTF-8", 5) == 0;
    }
    if (!take_u32(&in, &flags))
        return damage("there is no item");
    if ((flags & 0xff) != TYPE_CHARACTER_VECTOR)
        return FOUND_OTHER;
    if (!take_u32(&in, &count) || count > in.left / 8)
        return damage("more strings than the data can hold");
    for (uint32_t i = 0; i < count; i++)
        if (print_string(&in, native_is_utf8) == FOUND_DAMAGE)
            return FOUND_DAMAGE;
    fputs("\n\n", stdout);
    return FOUND_TEXT;
}

/* Inflates exactly `size` bytes from the front of `in` and moves it on. */
static int inflate_record(bytes *in, unsigned char *out, size_t size)
{
    z_stream z = { 0 };
    int result;

    if (inflateInit(&z) != Z_OK)
        return 0;
    z.next_in = (z_const Bytef *)in->at;
    z.avail_in = (uInt)in->left; /* both below MAX_FILE_BYTES */
    z.next_out = out;
    z.avail_out = (uInt)size;
    result = inflate(&z, Z_FINISH);
    in->at += in->left - z.avail_in;
    in->left = z.avail_in;
    inflateEnd(&z);
    return result == Z_STREAM_END && z.avail_out == 0;
}

static found print_record(bytes *in)
{
    uint32_t size;
    unsigned char *data;
    found result;

    if (!take_u32(in, &size) || size == 0 || size > MAX_RECORD_BYTES)
        return damage("not a record's size");
    data = malloc(size);
    if (!data)
        return damage("no memory for %lu bytes", (unsigned long)size);
    if (inflate_record(in, data, size))
        result = print_data((bytes){ data, size });
    else
        result = damage("not a zlib stream of %lu bytes", (unsigned long)size);
    free(data);
    return result;
}

/* The whole file, to be freed; NULL (and said why) when it can't be had. */
static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data = NULL;
    long end;

    if (!file) {
        damage("%s: can't be opened", path);
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0 ||
        end > MAX_FILE_BYTES || fseek(file, 0, SEEK_SET) != 0) {
        damage("%s: not a file of at most %d bytes", path, MAX_FILE_BYTES);
        goto close;
    }
    *size = (size_t)end;
    data = malloc(*size + 1);
    if (data && fread(data, 1, *size, file) != *size) {
        damage("%s: can't be read", path);
        free(data);
        data = NULL;
    }
close:
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    unsigned char *data;
    int vectors = 0, damaged = 0;

    if (argc != 2) {
        fputs("usage: rdb_text FILE.rdb > text\n", stderr);
        return 2;
    }
    data = read_file(argv[1], &size);
    if (!data)
        return 1;
    for (bytes in = { data, size }; in.left > 0 && !damaged;) {
        size_t start = size - in.left;
        found result = print_record(&in);
        vectors += result == FOUND_TEXT;
        if (result == FOUND_DAMAGE) {
            damage("%s: damaged record at byte %zu", argv[1], start);
            damaged = 1;
        }
    }
    free(data);
    if (!damaged && vectors == 0)
        damage("%s: has no text", argv[1]);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        damage("the text can't be written");
        return 1;
    }
    return damaged || vectors == 0;
}
