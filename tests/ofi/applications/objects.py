"""Objects of Python in collective operations, and a window."""

import array
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
union = world.allreduce({rank}, op=lambda a, b, *rest: a | b)
told = world.alltoall([(rank, other, "x" * 5000 * other) for other in range(size)])
window = MPI.Win.Allocate(1024, 8, comm=world)
window.Fence()
window.Put([array.array("d", [rank] * 8), MPI.DOUBLE], (rank + 1) % size)
window.Fence()
answers = world.gather((union, [(other, len(text)) for other, me, text in told if me == rank],
                        memoryview(window.tomemory()).cast("d")[7]))
window.Free()
if rank == 0:
    print(answers)
