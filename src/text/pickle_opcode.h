/* pickle_opcode.h: the names of the instructions in a Python pickle, for
 * messages; those that are carried out are pickle.c's. */
#ifndef PL_TEXT_PICKLE_OPCODE_H
#define PL_TEXT_PICKLE_OPCODE_H

/* As Python's pickletools calls it. */
const char *pl_pickle_opcode_name(unsigned char opcode);

#endif
