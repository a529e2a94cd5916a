/* complete.h: the shells' completions. */
#ifndef PL_DESCRIBE_COMPLETE_H
#define PL_DESCRIBE_COMPLETE_H

/* Writes the completions of bash, zsh and fish below `folder`, where the shells
 * look in share/: the tables first, then what `templates` has for that shell:
 * completion.bash, completion.zsh, completion.fish. */
void pl_complete_write(const char *folder, const char *templates);

#endif
