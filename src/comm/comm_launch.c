/* comm_launch.c: what launchers tell those whom they start; see comm.h. */
#include "comm/comm.h"

#include <stdlib.h>

int pl_comm_started(const char *(*variable)(const char *name))
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_SIZE", /* Open MPI's mpirun */
        "PMI_SIZE",             /* MPICH's, and srun --mpi=pmi2 */
        "MPI_LOCALNRANKS",      /* an older MPICH's */
        "SLURM_STEP_NUM_TASKS", /* srun */
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = variable(names[i]);
        const long count = text ? strtol(text, NULL, 10) : 0;
        if (count > 0) /* a launcher within a launcher: the first is nearer */
            return count < 1 << 20 ? (int)count : 1 << 20;
    }
    return 1;
}
