/* cuda_code.c: see cuda_code.h. */
#include "device/cuda_code.h"
#include "base/file.h"
#include "base/hash.h"
#include "device/cuda_api.h"
#include "device/gpu_call.h"
#include "kernels/gpu_source.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ARCHS = 64, MOST_FILE_BYTES = 64 << 20 };

/* ---- what is in the program ---- */

const pl_cuda_image *pl_cuda_image_for(const pl_cuda_image *images,
                                       size_t count, int capability)
{
    const pl_cuda_image *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const pl_cuda_image *it = &images[i];
        if (it->form == PL_CUDA_CUBIN && it->arch == capability)
            return it;
        if (it->form == PL_CUDA_PTX && it->arch <= capability &&
            (!best || it->arch > best->arch))
            best = it;
    }
    return best;
}

/* ---- NVRTC ---- */

/* What is compiled, and for which architecture. */
typedef struct job {
    const pl_nvrtc_calls *rtc;
    const pl_gpu_card *card;
    nvrtcProgram program;
    int major, minor; /* of NVRTC */
    int arch;
    pl_cuda_form form;
} job;

/* As nvcc has them in cmake/cuda.cmake. */
static const char *const exact[] = { "--fmad=false", "--prec-div=true",
                                     "--prec-sqrt=true", "--ftz=false" };
enum { EXACT = sizeof exact / sizeof exact[0] };

/* The newest architecture that NVRTC and the card know. Not 0: there is none.
 */
static int begin(job *j, int capability)
{
    int archs[MOST_ARCHS], count = 0;
    j->rtc = pl_nvrtc_load();
    if (!j->rtc || j->rtc->nvrtcVersion(&j->major, &j->minor) ||
        j->rtc->nvrtcGetNumSupportedArchs(&count) || count > MOST_ARCHS ||
        j->rtc->nvrtcGetSupportedArchs(archs))
        return 1;
    for (int i = 0; i < count; i++)
        if (archs[i] <= capability && archs[i] > j->arch)
            j->arch = archs[i];
    j->form = j->arch == capability ? PL_CUDA_CUBIN : PL_CUDA_PTX;
    return j->arch == 0;
}

int pl_cuda_code_describe(int capability, char *text, size_t size)
{
    job j = { 0 };
    const pl_cuda_image *image = pl_cuda_image_for(
        pl_cuda_images, pl_cuda_image_count, capability);
    if (image) {
        snprintf(text, size, "%s_%d, in this program",
                 image->form == PL_CUDA_CUBIN ? "sm" : "compute", image->arch);
        return image->arch;
    }
    if (begin(&j, capability)) {
        snprintf(text, size,
                 "this program was built without nvcc, and there is no NVRTC "
                 "that knows it (libnvrtc.so; script/setup --cuda says how to "
                 "get it)");
        return 0;
    }
    snprintf(text, size, "%s_%d, by NVRTC %d.%d",
             j.form == PL_CUDA_CUBIN ? "sm" : "compute", j.arch, j.major,
             j.minor);
    return j.arch;
}

static pl_status nvrtc_failed(const job *j, const char *call, int code,
                              pl_error *err)
{
    return pl_fail(err, PL_E_IO, "cuda:%d (%s): NVRTC %d.%d: %s: error %d",
                   j->card->number, j->card->name, j->major, j->minor, call,
                   code);
}

/* The compiler's own words, from its first error on. */
static pl_status compiling_failed(const job *j, int code, pl_heap *heap,
                                  pl_error *err)
{
    const size_t most = (size_t)16 << 20;
    size_t bytes = 0;
    char *log;
    if (j->rtc->nvrtcGetProgramLogSize(j->program, &bytes) || bytes > most)
        bytes = 0;
    pl_status status = pl_heap_take(heap, &log, bytes + 1, 1, err);
    if (status)
        return status;
    if (bytes && j->rtc->nvrtcGetProgramLog(j->program, log))
        log[0] = '\0';
    const char *first = strstr(log, "error");
    return pl_fail(err, PL_E_IO,
                   "cuda:%d (%s): NVRTC %d.%d can't compile the kernels for "
                   "%d.%d (error %d): %.300s",
                   j->card->number, j->card->name, j->major, j->minor,
                   j->arch / 10, j->arch % 10, code,
                   first    ? first
                   : log[0] ? log
                            : "it left no log");
}

static void option_of(const job *j, char *text, size_t size)
{
    snprintf(text, size, "--gpu-architecture=%s_%d",
             j->form == PL_CUDA_CUBIN ? "sm" : "compute", j->arch);
}

#define TRY(call)                                                              \
    do {                                                                       \
        const int code_ = pl_gpu_seen(j->rtc->call);                           \
        if (code_)                                                             \
            return nvrtc_failed(j, #call, code_, err);                         \
    } while (0)

/* `room` bytes before the code are left for the caller. */
static pl_status compile(job *j, size_t room, char **out, size_t *size,
                         pl_heap *heap, pl_error *err)
{
    const char *options[EXACT + 1];
    char arch[48];
    option_of(j, arch, sizeof arch);
    options[EXACT] = arch;
    for (size_t i = 0; i < EXACT; i++)
        options[i] = exact[i];
    TRY(nvrtcCreateProgram(&j->program, (const char *)pl_gpu_source,
                           "plimsoll.cu", 0, NULL, NULL));
    const int code = pl_gpu_seen(
        j->rtc->nvrtcCompileProgram(j->program, EXACT + 1, options));
    if (code)
        return compiling_failed(j, code, heap, err);
    if (j->form == PL_CUDA_CUBIN)
        TRY(nvrtcGetCUBINSize(j->program, size));
    else
        TRY(nvrtcGetPTXSize(j->program, size));
    pl_status status = pl_heap_take(heap, out, room + *size + 1, 1, err);
    if (status)
        return status;
    if (j->form == PL_CUDA_CUBIN)
        TRY(nvrtcGetCUBIN(j->program, *out + room));
    else
        TRY(nvrtcGetPTX(j->program, *out + room));
    return PL_OK;
}

/* ---- what was compiled before ---- */

static char folder[PL_PATH_BYTES];

void pl_cuda_code_keep_in(const char *path)
{
    if (!path ||
        snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        folder[0] = '\0';
}

/* Named by all that the code depends on. */
static pl_status path_of(char path[PL_PATH_BYTES], const job *j, pl_error *err)
{
    pl_hash hash;
    char text[160], name[PL_HASH_TEXT_BYTES + 16];
    pl_hash_begin(&hash);
    pl_hash_add(&hash, pl_gpu_source, pl_gpu_source_bytes);
    for (size_t i = 0; i < EXACT; i++)
        pl_hash_add(&hash, exact[i], strlen(exact[i]));
    option_of(j, text, sizeof text);
    pl_hash_add(&hash, text, strlen(text));
    const int used = snprintf(text, sizeof text, "\n%d.%d", j->major, j->minor);
    pl_hash_add(&hash, text, (size_t)used);
    snprintf(name, sizeof name, "cuda-%s.code", pl_hash_end(&hash).text);
    return pl_path_join(path, folder, name, err);
}

/* A file begins with the checksum of what follows. */
enum { HEAD_BYTES = PL_HASH_TEXT_BYTES };

/* Not 0: there is no such file, or it is damaged. */
static int recall(pl_cuda_image *image, const char *path, pl_heap *heap)
{
    char *bytes;
    size_t size;
    if (pl_file_read_all(path, MOST_FILE_BYTES, heap, &bytes, &size, NULL) ||
        size <= HEAD_BYTES)
        return 1;
    image->bytes = (unsigned char *)bytes + HEAD_BYTES;
    image->end = (unsigned char *)bytes + size;
    const pl_hash_text hash = pl_hash_of(image->bytes, size - HEAD_BYTES);
    return memcmp(bytes, hash.text, PL_HASH_TEXT_BYTES - 1) != 0 ||
           bytes[HEAD_BYTES - 1] != '\n';
}

/* A folder that can't be written costs the next run half a minute. */
static void remember(const char *path, char *bytes, size_t size)
{
    const pl_hash_text hash = pl_hash_of(bytes + HEAD_BYTES, size);
    memcpy(bytes, hash.text, PL_HASH_TEXT_BYTES - 1);
    bytes[HEAD_BYTES - 1] = '\n';
    if (!pl_folder_make(folder, NULL))
        (void)!pl_file_replace(path, bytes, HEAD_BYTES + size, NULL);
}

static pl_status from_nvrtc(pl_cuda_image *image, job *j, pl_heap *heap,
                            pl_error *err)
{
    char path[PL_PATH_BYTES] = "", *bytes;
    size_t size;
    *image = (pl_cuda_image){ .arch = j->arch, .form = j->form };
    const int is_kept = folder[0] && !path_of(path, j, NULL);
    if (is_kept && !recall(image, path, heap))
        return PL_OK;
    pl_status status = compile(j, HEAD_BYTES, &bytes, &size, heap, err);
    if (j->program)
        j->rtc->nvrtcDestroyProgram(&j->program);
    if (status)
        return status;
    image->bytes = (unsigned char *)bytes + HEAD_BYTES;
    image->end = image->bytes + size;
    if (is_kept)
        remember(path, bytes, size);
    return PL_OK;
}

pl_status pl_cuda_code_get(pl_cuda_image *image, const pl_gpu_card *card,
                           pl_heap *heap, pl_error *err)
{
    job j = { .card = card };
    const pl_cuda_image *embedded = pl_cuda_image_for(
        pl_cuda_images, pl_cuda_image_count, card->capability);
    if (embedded) {
        *image = *embedded;
        return PL_OK;
    }
    if (begin(&j, card->capability))
        return pl_fail(err, PL_E_CONFIG,
                       "cuda:%d (%s): there is no code for it any more: NVRTC "
                       "has gone",
                       card->number, card->name);
    return from_nvrtc(image, &j, heap, err);
}
