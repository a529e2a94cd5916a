/* family.h: the defaults that the key `architecture` sets.
 *
 * PL_FAMILY_TABLE is the one list of them; `gpt2` has the keys' own defaults,
 * which keys.h says. */
#ifndef PL_CONFIG_FAMILY_H
#define PL_CONFIG_FAMILY_H

#include "config/keys.h"
#include "config/value.h"

/* X(key, llama, qwen3): WORD, REAL or FLAG values. What isn't here is derived
 * (n_kv_head, mlp_hidden) or the same in all families (logit_softcap, 0). */
/* clang-format off */
#define PL_FAMILY_TABLE(X)                                                     \
X(norm, WORD("rmsnorm"), WORD("rmsnorm"))                                      \
X(norm_eps, REAL(1e-5), REAL(1e-6))                                            \
X(position, WORD("rope"), WORD("rope"))                                        \
X(rope_theta, REAL(10000.0), REAL(1000000.0))                                  \
X(mlp, WORD("swiglu"), WORD("swiglu"))                                         \
X(qk_norm, FLAG(false), FLAG(true))                                            \
X(bias, FLAG(false), FLAG(false))                                              \
X(tie_word_embeddings, FLAG(false), FLAG(true))
/* clang-format on */

/* Whether a key's default depends on the family. */
bool pl_family_has(pl_key key);
/* The default of such a key in a family; NULL: the key's own. */
const pl_value *pl_family_default(pl_key key,
                                  pl_architecture_choice architecture);

#endif
