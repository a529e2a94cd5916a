/* gguf_shape.h: the keys of a GGUF that say what a model is, both ways. One
 * table has them for all families; their names begin with the architecture. */
#ifndef PL_STORE_GGUF_SHAPE_H
#define PL_STORE_GGUF_SHAPE_H

#include "format/gguf.h"
#include "model/shape.h"

/* general.architecture and the rest. The shape is one that the files of its
 * family can say. */
void pl_gguf_shape_put(pl_gguf_writer *writer, const pl_shape *shape);

/* The model that the keys describe; what they leave open is as in the family's
 * config.json. What this program doesn't compute is refused by its key. */
PL_MUST_CHECK pl_status pl_gguf_shape_read(const pl_gguf *gguf, pl_shape *shape,
                                           pl_error *err);

#endif
