/* commands.c: the one list of commands: of the program, its help, its manual
 * pages and the shells' completions. */
#include "cli/command.h"

const pl_command *const pl_commands[] = {
    &pl_command_plan,     &pl_command_train,   &pl_command_eval,
    &pl_command_sample,   &pl_command_prepare, &pl_command_tokenizer,
    &pl_command_tokenize, &pl_command_inspect, &pl_command_config,
    &pl_command_explain,  &pl_command_bench,   &pl_command_devices,
    &pl_command_report,   &pl_command_export,  &pl_command_import,
    &pl_command_live,     &pl_command_serve,   NULL,
};
