/* shape_json.h: the fields of model/shape.h's table as members of a JSON
 * object, both ways: state.json's "model" and Hugging Face's config.json. */
#ifndef PL_STORE_SHAPE_JSON_H
#define PL_STORE_SHAPE_JSON_H

#include "base/json.h"
#include "format/jsontext.h"
#include "model/shape.h"

/* Appends the field as the file has it. */
void pl_shape_json_put(pl_json_text *json, const pl_shape *shape,
                       pl_shape_field field, pl_shape_file file);

/* Reads the field. Where there is none, or null, it is what the table says;
 * what is derived stays as it is. `name` (a path) begins every message:
 * PL_E_FORMAT for what no program could mean, PL_E_UNSUPPORTED for a word of
 * another program's that isn't known here. */
PL_MUST_CHECK pl_status pl_shape_json_read(const json_t *object,
                                           pl_shape *shape,
                                           pl_shape_field field,
                                           pl_shape_file file, const char *name,
                                           pl_error *err);

#endif
