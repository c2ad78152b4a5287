/* The same in C, where MPI's own error handler ends the program: see rank.py. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0;
    char text[1000] = {0}, *word = argc > 1 ? argv[1] : "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        close(open("/state/running", O_CREAT | O_WRONLY, 0644));
    usleep(300000);
    if (rank == 1) {
        if (!strcmp(word, "c-abort-signal"))
            abort();
        if (!strcmp(word, "c-exit-without-finalize"))
            _exit(0);
        if (!strcmp(word, "c-invalid-rank"))
            MPI_Send(text, 1, MPI_CHAR, size + 7, 0, MPI_COMM_WORLD);
        if (!strcmp(word, "c-truncate"))
            MPI_Recv(text, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0 && !strcmp(word, "c-truncate"))
        MPI_Send(text, 1000, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    gethostname(text, sizeof text);
    printf("%d on %s\n", sum, text);
    MPI_Finalize();
    return 0;
}
