/* describe: what the program says about itself, for man and the shells.
 *
 *   describe FOLDER TEMPLATES
 *
 * Writes the manual pages and the completions below FOLDER, as they lie in
 * share/, from the program's own tables: commands (cli/command.h) and keys
 * (config/keys.h). TEMPLATES is the folder with the completions' code. */
#include "describe/complete.h"
#include "describe/man.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: describe FOLDER TEMPLATES\n");
        return 2;
    }
    pl_man_write(argv[1]);
    pl_complete_write(argv[1], argv[2]);
    return 0;
}
