/* man.h: the manual pages. */
#ifndef PL_DESCRIBE_MAN_H
#define PL_DESCRIBE_MAN_H

/* Writes man/man1 and man/man5 below `folder`: plimsoll.1, a page for each
 * command and for plimsoll-vocab, and plimsoll.5, the config files. */
void pl_man_write(const char *folder);

#endif
