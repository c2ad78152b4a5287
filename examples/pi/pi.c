/* Pi as the area under 4 / (1 + x^2) from 0 to 1: every rank adds up its share of the strips. */
#include <mpi.h>
#include <stdio.h>

#define STRIPS 10000000L

int main(int argc, char **argv)
{
    int rank, size;
    double sum = 0.0, pi;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    for (long i = rank; i < STRIPS; i += size) {
        double x = (i + 0.5) / STRIPS;
        sum += 4.0 / (1.0 + x * x);
    }
    MPI_Reduce(&sum, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

    if (rank == 0)
        printf("pi is about %.10f (%d ranks)\n", pi / STRIPS, size);
    MPI_Finalize();
    return 0;
}
