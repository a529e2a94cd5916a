/* matrices.h: the matrices of a block as Muon sees them: one for each linear
 * map, also where several are stored as one tensor. */
#ifndef PL_MODEL_MATRICES_H
#define PL_MODEL_MATRICES_H

#include "model/params.h"

/* These rows and columns of a weight, as it is stored. */
typedef struct pl_matrix {
    size_t first_row, rows, first_col, cols;
    pl_param_layout layout;
} pl_matrix;

enum { PL_MAX_MATRICES = 3 };

/* Writes the matrices that a weight consists of, and returns how many there
 * are; 0: it is none of a block's. */
size_t pl_param_matrices(const pl_shape *shape, const pl_param *param,
                         pl_matrix matrices[PL_MAX_MATRICES]);

#endif
