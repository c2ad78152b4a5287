/* Mistakes in C, each on rank 1; the other ranks wait in a collective. */
#include <assert.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, one = 1, sum = 0;
    volatile int zero = 0;
    char *word = argc > 1 ? argv[1] : "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        close(open("/state/running", O_CREAT | O_WRONLY, 0644));
    usleep(300000);
    if (rank == 1) {
        if (!strcmp(word, "null-pointer"))
            *(volatile int *)(long)zero = 1;
        if (!strcmp(word, "divide-by-zero"))
            sum = one / zero;
        if (!strcmp(word, "illegal-instruction"))
            __builtin_trap();
        if (!strcmp(word, "assertion"))
            assert(sum == 3 && "the mesh has holes");
        if (!strcmp(word, "double-free")) {
            char *volatile block = malloc(100);
            free(block);
            free(block);
        }
        if (!strcmp(word, "says-error")) {
            fprintf(stderr, "ERROR: mesh file /data/wing.msh has no cells\n");
            MPI_Abort(MPI_COMM_WORLD, 5);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sleep(200);
    MPI_Finalize();
    return 0;
}
