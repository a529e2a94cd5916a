/* cuda_nvrtc.c: NVRTC's functions in the emulated driver's library: it takes
 * the program's text with the options that exact arithmetic needs, and gives an
 * image that the driver knows. */
#include "device/cuda_api.h"
#include "gpu/card_words.h"
#include "gpu/cuda_image.h"

#define DECLARE(name, parameters) int name parameters;
PL_NVRTC_CALLS(DECLARE)
#undef DECLARE

enum { INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION = 6, ROOM = 65536 };

struct nvrtc_program {
    char image[ROOM];
    size_t bytes;
    int is_ptx;
};

/* Newer than the oldest that nvcc knows, and older: whatever the program has
 * code for, some of these are NVRTC's. */
static const int archs[] = { 70, 75, 80, 89 };
enum { ARCHS = sizeof archs / sizeof archs[0] };

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = ARCHS;
    return 0;
}

int nvrtcGetSupportedArchs(int *out)
{
    memcpy(out, archs, sizeof archs);
    return 0;
}

int nvrtcCreateProgram(nvrtcProgram *program, const char *source,
                       const char *name, int headers, const char *const *texts,
                       const char *const *names)
{
    (void)name, (void)texts, (void)names;
    if (headers || !strstr(source, "KERNEL(column_sum,"))
        return INVALID_INPUT;
    *program = calloc(1, sizeof **program);
    return *program ? 0 : 1;
}

int nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return 0;
}

static int has(const char *const *options, int count, const char *option)
{
    for (int i = 0; i < count; i++)
        if (strcmp(options[i], option) == 0)
            return 1;
    return 0;
}

int nvrtcCompileProgram(nvrtcProgram program, int count,
                        const char *const *options)
{
    char option[64];
    const char *path = getenv("PL_COMPILED"); /* a line for each */
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "compiled\n");
        fclose(file);
    }
    if (said("broken"))
        return COMPILATION;
    if (!has(options, count, "--fmad=false") ||
        !has(options, count, "--prec-div=true") ||
        !has(options, count, "--prec-sqrt=true") ||
        !has(options, count, "--ftz=false"))
        return INVALID_OPTION;
    for (int i = 0; i < 2 * ARCHS; i++) {
        program->is_ptx = i % 2;
        snprintf(option, sizeof option, "--gpu-architecture=%s_%d",
                 i % 2 ? "compute" : "sm", archs[i / 2]);
        if (has(options, count, option)) {
            program->bytes = cuda_image_write(program->image, ROOM,
                                              archs[i / 2], i % 2);
            return 0;
        }
    }
    return INVALID_OPTION;
}

int nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof "error: this card has no compiler";
    return 0;
}

int nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    (void)program;
    memcpy(log, "error: this card has no compiler",
           sizeof "error: this card has no compiler");
    return 0;
}

static int give_size(nvrtcProgram program, size_t *bytes, int is_ptx)
{
    *bytes = program->bytes;
    return program->is_ptx == is_ptx && program->bytes ? 0 : INVALID_INPUT;
}

static int give(nvrtcProgram program, char *out, int is_ptx)
{
    if (program->is_ptx != is_ptx)
        return INVALID_INPUT;
    memcpy(out, program->image, program->bytes);
    return 0;
}

int nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    return give_size(program, bytes, 0);
}

int nvrtcGetCUBIN(nvrtcProgram program, char *out)
{
    return give(program, out, 0);
}

int nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
    return give_size(program, bytes, 1);
}

int nvrtcGetPTX(nvrtcProgram program, char *out)
{
    return give(program, out, 1);
}
