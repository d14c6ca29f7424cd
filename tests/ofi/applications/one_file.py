"""A file of HDF5 that all ranks write together, and read."""

import h5py
import numpy as np
from mpi4py import MPI

ROWS = 1000
CHUNKED = 997

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
share = CHUNKED // size
end = (rank + 1) * share if rank < size - 1 else CHUNKED
with h5py.File("together.h5", "w", driver="mpio", comm=world) as file:
    plain = file.create_dataset("plain", (size * ROWS, 64), dtype="f8")
    chunked = file.create_dataset("chunked", (CHUNKED,), dtype="i4", chunks=(100,))
    with plain.collective:
        plain[rank * ROWS : (rank + 1) * ROWS] = np.arange(64.0 * ROWS).reshape(ROWS, 64) + rank
    with chunked.collective:
        chunked[rank * share : end] = rank
with h5py.File("together.h5", "r", driver="mpio", comm=world) as file:
    with file["plain"].collective:
        sums = float(file["plain"][:, :].sum()), int(file["chunked"][:].sum())
told = world.gather(sums)
if rank == 0:
    print(told)
