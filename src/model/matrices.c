/* matrices.c: see matrices.h. */
#include "model/matrices.h"
#include "base/check.h"

size_t pl_param_matrices(const pl_shape *shape, const pl_param *param,
                         pl_matrix matrices[PL_MAX_MATRICES])
{
    const size_t qkv[] = { shape->A, shape->A, shape->A };
    const size_t whole[] = { param->cols };
    const int fused = param->kind == PL_QKV_W;
    const size_t *widths = fused ? qkv : whole, count = fused ? 3 : 1;
    size_t col = 0;
    if (param->role != PL_ROLE_PRODUCT || param->layer < 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        matrices[i] = (pl_matrix){ .rows = param->rows,
                                   .first_col = col,
                                   .cols = widths[i],
                                   .stored = PL_STORED_IN_OUT };
        col += widths[i];
    }
    PL_CHECK(col == param->cols);
    return count;
}
