/* Where the processes of a job are on the torus: the rank query functions of Fujitsu MPI, for any MPI library.
 *
 * Programs for Fugaku include <mpi-ext.h> for them. They are in portofu_fjmpi.c, which is compiled with the MPI library
 * of the program, because a communicator is another thing in each (README.md beside this file). */
#ifndef PORTOFU_FUGAKU_MPI_EXT_H
#define PORTOFU_FUGAKU_MPI_EXT_H

#include <mpi.h>

/* Open MPI has a header of this name, too. */
#if defined(__has_include_next)
#if __has_include_next(<mpi-ext.h>)
#include_next <mpi-ext.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What coordinates are: of the nodes of this job, one to three numbers; X, Y, Z, A, B, C on the torus; the same,
 * counted from the lowest ones of the job. */
#define FJMPI_LOGICAL 1
#define FJMPI_TOFU_SYS 2
#define FJMPI_TOFU_REL 3

/* No process of the communicator is at these coordinates. */
#define FJMPI_ERR_TOPOLOGY_NO_PROCESS (MPI_ERR_LASTCODE + 1)

/* Each function may be called by any thread between MPI_Init and MPI_Finalize, and asks no other process. An error
 * other than the one above goes to the error handler of the communicator, of MPI_COMM_WORLD where there is none. */

/* How many sides the shape of the job has: 1 to 3. */
int FJMPI_Topology_get_dimension(int* dimension);

/* Nodes along each side; 0 for a side that the shape does not have. A NULL is passed over. */
int FJMPI_Topology_get_shape(int* x, int* y, int* z);

/* Coordinates of a rank: maxdims of them at most, of which the view has one to three, or six. */
int FJMPI_Topology_get_coords(MPI_Comm comm, int rank, int view, int maxdims, int coords[]);

/* Ranks of the communicator at these coordinates, lowest first: maxppn of them at most are written, and outppn is how
 * many were. */
int FJMPI_Topology_get_ranks(MPI_Comm comm, int view, int coords[], int maxppn, int* outppn, int ranks[]);

#ifdef __cplusplus
}
#endif
#endif
