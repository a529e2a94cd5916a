/* gpu_launch_absent.c: the ops of gpu_launch.h that no card computes yet. A
 * model that needs one is refused before it is planned for a card (layout.c of
 * model/); should a step of it come here, the stream ends. */
#include "device/gpu_launch.h"

static void refuse(pl_gpu_stream *stream, const char *op)
{
    if (!stream->status)
        stream->status = pl_fail(stream->err, PL_E_UNSUPPORTED,
                                 "cards have no kernel for %s yet: set device "
                                 "= 'cpu'",
                                 op);
}

#define ABSENT(op)                                                             \
    void pl_gpu_##op(pl_gpu_stream *stream, const pl_##op *args)               \
    {                                                                          \
        (void)args;                                                            \
        refuse(stream, #op);                                                   \
    }
ABSENT(qk)
ABSENT(qk_bwd)
ABSENT(qk_dw)
ABSENT(glu)
ABSENT(glu_bwd)
ABSENT(softcap)
