/* Every rank sums its share of the midpoint rule for 4/(1+x^2) on [0,1]; rank 0 prints pi.
   Build it where the pods find it, and name it in place of `sh -c ...` in hosts.yaml:
   mpicc -O2 -o /tmp/pi pi.c -lm */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  const long steps = 10000000;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double part = 0.0, pi = 0.0;
  for (long i = rank; i < steps; i += size) {
    double x = (i + 0.5) / steps;
    part += 4.0 / (1.0 + x * x) / steps;
  }
  MPI_Reduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("pi is %.9f, summed by %d ranks\n", pi, size);
  MPI_Finalize();
  return fabs(pi - 3.141592653589793) > 1e-9 && rank == 0;
}
