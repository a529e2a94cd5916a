/* scope.c: see scope.h. */
#include "config/scope.h"

#include <string.h>

pl_variable *pl_scope_find(const pl_scope *scope, const char *name,
                           size_t bytes)
{
    pl_variable *at = scope ? scope->first : NULL;
    while (at &&
           (strlen(at->name) != bytes || memcmp(at->name, name, bytes) != 0))
        at = at->next;
    return at;
}

pl_status pl_scope_set(pl_scope *scope, const char *name, size_t bytes,
                       const pl_value *value, pl_variable **out, pl_heap *heap,
                       pl_error *err)
{
    pl_status status = PL_OK;
    *out = pl_scope_find(scope, name, bytes);
    if (!*out) {
        status = pl_heap_take(heap, out, 1, sizeof **out, err);
        if (status == PL_OK)
            status = pl_heap_text(heap, &(*out)->name, name, bytes, err);
        if (status != PL_OK)
            return status;
        *(scope->first ? &scope->last->next : &scope->first) = *out;
        scope->last = *out;
    }
    (*out)->value = *value;
    (*out)->module = NULL;
    return status;
}
