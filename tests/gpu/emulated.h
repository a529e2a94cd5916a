/* emulated.h: what kernels/gpu/words.clh means where every work-item is a fibre
 * of this program (emulator.c). An address is a pointer, or bank and offset. */
#ifndef PL_TESTS_GPU_EMULATED_H
#define PL_TESTS_GPU_EMULATED_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PL_EMULATED 1

typedef struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
} float4;
typedef struct __attribute__((aligned(16))) uint4 {
    uint32_t x, y, z, w;
} uint4;
typedef struct __attribute__((aligned(8))) uint2 {
    uint32_t x, y;
} uint2;
typedef struct __attribute__((aligned(8))) float2 {
    float x, y;
} float2;

/* Who is running. */
typedef struct emulated_item {
    uint32_t id, group, group_y;
} emulated_item;

extern emulated_item emulated;

/* Whether accesses are looked at (emulator_options), beyond their alignment. */
extern int emulated_is_watched;

/* Looks at an access, and returns p. */
void *emulated_global(const void *p, size_t bytes, int writes, int line);
void *emulated_local(const void *p, size_t bytes, int writes, int line);
void emulated_barrier(int line);

/* What a warp does together (emulated_warp.c): tensor.clh says what. */
void emulated_mma(float d[4], const uint32_t a[4], const uint32_t b[2],
                  int bf16, int line);
void emulated_ldmatrix(uint32_t r[4], const void *p, int turned, int line);
float emulated_shuffle(float x, uint32_t mask, int line);
void emulated_async(void *to, const void *from, uint32_t bytes, int line);
void emulated_async_commit(void);
void emulated_async_wait(uint32_t left, int line);

/* A pointer as it is, or bank + 1 in its upper 16 bits: where that is. */
void *emulated_at(uint64_t address);

#ifdef PL_SOFT_DOUBLE
#define KERNEL(name, items, type) void emulated_soft_##name(const type g)
#else
#define KERNEL(name, items, type) void emulated_##name(const type g)
#endif
#define GLOBAL
#define LOCAL static
#define LOCAL_PTR
#define ALIGNED_16    __attribute__((aligned(16)))
#define BARRIER()     emulated_barrier(__LINE__)
#define BARRIER_ALL() emulated_barrier(__LINE__)
#define LOWEST_BIT(x) ((uint32_t)__builtin_ctz(x))
#define ITEM          emulated.id
#define GROUP         emulated.group
#define GROUP_Y       emulated.group_y
#define UNROLL
#define NO_UNROLL
#define MAKE4(a, b, c, d)        ((float4){ a, b, c, d })
#define MAKE_WORDS4(a, b, c, d)  ((uint4){ a, b, c, d })
#define MAKE_WORDS2(a, b)        ((uint2){ a, b })
#define MAKE2(a, b)              ((float2){ a, b })
#define AT(type, address)        ((type *)emulated_at(address))

#define PL_TENSOR                1
#define LOCAL_LARGE(name, bytes) LOCAL ALIGNED_16 uint8_t name[bytes]
#define MMA(d, a, b, bf16)       emulated_mma(d, a, b, bf16, __LINE__)
#define LDMATRIX(r, p, turned)   emulated_ldmatrix(r, p, turned, __LINE__)
#define SHUFFLE(x, mask)         emulated_shuffle(x, mask, __LINE__)
#define COPY(to, from, bytes)    emulated_async(to, from, bytes, __LINE__)
#define COPY_COMMIT()            emulated_async_commit()
#define COPY_WAIT(left)          emulated_async_wait(left, __LINE__)

/* Calls would be half the time of a run that nobody watches. */
static inline __attribute__((always_inline)) void *
emulated_look(void *(*look)(const void *, size_t, int, int), const void *p,
              size_t bytes, int writes, int line)
{
    if (emulated_is_watched || (uintptr_t)p % bytes)
        return look(p, bytes, writes, line);
    return (void *)(uintptr_t)p;
}

#define LOOK(look, p, writes)                                                  \
    (*(__typeof__(p))emulated_look(look, p, sizeof *(p), writes, __LINE__))
#define READ(p)         LOOK(emulated_global, p, 0)
#define WRITE(p, value) (LOOK(emulated_global, p, 1) = (value))
#define TAKE(p)         LOOK(emulated_local, p, 0)
#define PUT(p, value)   (LOOK(emulated_local, p, 1) = (value))

#endif
