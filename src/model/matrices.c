/* matrices.c: see matrices.h. */
#include "model/matrices.h"
#include "base/check.h"

size_t pl_param_matrices(const pl_shape *shape, const pl_param *param,
                         pl_matrix matrices[PL_MAX_MATRICES])
{
    const size_t count = pl_param_parts(shape, param);
    if (param->role != PL_ROLE_PRODUCT || param->layer < 0)
        return 0;
    PL_CHECK(count <= PL_MAX_MATRICES);
    for (size_t i = 0; i < count; i++) {
        const pl_param_part part = pl_param_part_at(shape, param, i);
        if (param->layout == PL_LAYOUT_OUT_IN)
            matrices[i] = (pl_matrix){ .first_row = part.first,
                                       .rows = part.count,
                                       .cols = param->cols,
                                       .layout = PL_LAYOUT_OUT_IN };
        else
            matrices[i] = (pl_matrix){ .rows = param->rows,
                                       .first_col = part.first,
                                       .cols = part.count,
                                       .layout = PL_LAYOUT_IN_OUT };
    }
    return count;
}
