/* plan_steps.c: see plan_steps.h. */
#include "cli/plan_steps.h"

#include <stdio.h>

void pl_plan_steps_print(const pl_gpt *gpt)
{
    static const char access[] = {
        [PL_READ] = 'r', [PL_WRITE] = 'w', [PL_UPDATE] = 'u', [PL_SCRATCH] = 's'
    };
    const pl_graph *graph = &gpt->graph;
    for (int id = 0; id < PL_PROGRAM_COUNT; id++) {
        const pl_program *program = &graph->programs[id];
        if (program->n_steps == 0)
            continue;
        printf("\n%s: %zu steps, %zu of them repeated\n",
               pl_program_name((pl_program_id)id), program->n_steps,
               program->loop_steps);
        for (size_t at = 0; at < program->n_steps; at++) {
            const pl_step *step = &program->steps[at];
            printf("%5zu  %-16s", at, pl_op_name(step->op));
            const pl_op_info *op = pl_op_of(step->op);
            for (int i = 0; i < op->n_args; i++)
                if (step->args[i].buffer != PL_NO_BUFFER)
                    printf(" %c:%s=%s", access[step->args[i].access],
                           op->args[i].name,
                           graph->buffers[step->args[i].buffer].name);
            printf("\n");
        }
    }
}
