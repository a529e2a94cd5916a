/* cuda_image.c: see cuda_image.h. */
#include "gpu/cuda_image.h"
#include "kernels/gpu/args.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char emulated[] = "emulated cubin\n";

static const char *add(cuda_image *image, const char *name, size_t length,
                       size_t bytes)
{
    if (image->count == CUDA_IMAGE_MOST || length >= CUDA_IMAGE_NAME_BYTES)
        return "too many kernels, or too long a name";
    cuda_entry *e = &image->entries[image->count++];
    memcpy(e->name, name, length);
    e->name[length] = '\0';
    e->bytes = bytes;
    return NULL;
}

/* ---- PTX ---- */

/* Additions and multiplications without ".rn" may be contracted by the driver's
 * compiler; the others round or flush otherwise. */
static const char *inexact(const char *text)
{
    static const char *const words[] = { "add.f32", "sub.f32",  "mul.f32",
                                         "add.f64", "sub.f64",  "mul.f64",
                                         ".ftz.",   ".approx.", "div.full",
                                         "mad.f32", "fma.rz",   NULL };
    for (size_t i = 0; words[i]; i++)
        if (strstr(text, words[i]))
            return words[i];
    return NULL;
}

/* ".entry name(" and then ".b8 name_param_0[152]": one argument. */
static const char *read_text(cuda_image *image, const char *text)
{
    const char *target = strstr(text, ".target sm_");
    if (!target)
        return "PTX without a target";
    image->arch = atoi(target + 11);
    if (inexact(text))
        return inexact(text);
    for (const char *at = strstr(text, ".entry "); at;
         at = strstr(at, ".entry ")) {
        at += 7;
        const size_t length = strcspn(at, "(");
        const char *end = strchr(at, ')'), *size = strchr(at, '[');
        if (!end || !size || size > end || memchr(at, ',', (size_t)(end - at)))
            return "an entry without one argument";
        const char *wrong = add(image, at, length, strtoul(size + 1, NULL, 10));
        if (wrong)
            return wrong;
        at = end;
    }
    return NULL;
}

/* Those at the end of the list, which older cards haven't. */
enum {
#define ONE(name, items, type) +1
    tensor_kernels = 0 PL_GPU_TENSOR_KERNELS(ONE)
#undef ONE
};

size_t cuda_image_write(char *text, size_t room, int arch, int is_ptx)
{
    static const struct {
        const char *name;
        size_t bytes;
    } rows[] = {
#define ROW(name, items, type) { #name, sizeof(type) },
        PL_GPU_KERNELS(ROW) PL_GPU_TENSOR_KERNELS(ROW)
#undef ROW
    };
    const size_t count = sizeof rows / sizeof rows[0] -
                         (arch < 80 ? tensor_kernels : 0);
    size_t used = (size_t)snprintf(text, room, "%s.target sm_%d\n",
                                   is_ptx ? "" : emulated, arch);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(
            used < room ? text + used : NULL, used < room ? room - used : 0,
            ".entry %s(.param .align 8 .b8 %s_param_0[%zu])\n", rows[i].name,
            rows[i].name, rows[i].bytes);
    return used + 1;
}

/* ---- cubins ---- */

enum { FIXED_HALF = 3, SIZED = 4, PARAMETER_BYTES = 0x19 };

/* The attributes of a kernel: form, name and 16 bits, behind which stand as
 * many bytes as these say where the form is SIZED. */
static size_t parameter_bytes(const unsigned char *at, size_t size)
{
    for (size_t i = 0; i + 4 <= size;) {
        const size_t value = (size_t)(at[i + 2] | at[i + 3] << 8);
        if (at[i] == FIXED_HALF && at[i + 1] == PARAMETER_BYTES)
            return value;
        i += 4 + (at[i] == SIZED ? value : 0);
    }
    return 0;
}

static const char *read_cubin(cuda_image *image, const unsigned char *bytes)
{
    static const char info[] = ".nv.info.";
    const Elf64_Ehdr *head = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + head->e_shoff);
    const char *names = (const char *)bytes +
                        sections[head->e_shstrndx].sh_offset;
    image->arch = (int)(head->e_flags >> 8 & 0xff);
    for (size_t i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];
        const char *name = names + s->sh_name;
        if (strncmp(name, info, sizeof info - 1) != 0)
            continue;
        name += sizeof info - 1;
        const char *wrong = add(
            image, name, strlen(name),
            parameter_bytes(bytes + s->sh_offset, s->sh_size));
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *cuda_image_read(cuda_image *image, const void *bytes)
{
    *image = (cuda_image){ 0 };
    if (memcmp(bytes, ELFMAG, SELFMAG) == 0)
        return read_cubin(image, bytes);
    image->is_ptx = strncmp(bytes, emulated, sizeof emulated - 1) != 0;
    return read_text(image, bytes);
}
