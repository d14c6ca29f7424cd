"""Solvers of PETSc for a Poisson equation: each with several preconditioners, and its star forests."""

import sys

import petsc4py

petsc4py.init(sys.argv)
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402
from petsc4py import PETSc  # noqa: E402

SIDE = 40
SOLVERS = ("cg", "gmres", "bcgs", "pipecg", "pgmres", "tfqmr", "minres")
PRECONDITIONERS = ("none", "jacobi", "bjacobi", "asm", "gamg", "hypre")

world = PETSc.COMM_WORLD


def tell(*words):
    if world.rank == 0:
        print(*words)


def laplacian():
    matrix = PETSc.Mat().createAIJ([SIDE * SIDE, SIDE * SIDE], nnz=(5, 4), comm=world)
    matrix.setUp()
    for row in range(*matrix.getOwnershipRange()):
        i, j = divmod(row, SIDE)
        matrix[row, row] = 4.0
        for inside, column in ((i > 0, row - SIDE), (i < SIDE - 1, row + SIDE), (j > 0, row - 1), (j < SIDE - 1, row + 1)):
            if inside:
                matrix[row, column] = -1.0
    matrix.assemble()
    return matrix


def solve(matrix, solver, preconditioner):
    known, found = matrix.createVecLeft(), matrix.createVecRight()
    known.set(1.0)
    krylov = PETSc.KSP().create(world)
    krylov.setOperators(matrix)
    krylov.setType(solver)
    krylov.getPC().setType(preconditioner)
    krylov.setTolerances(rtol=1e-8, max_it=2000)
    krylov.solve(known, found)
    rest = known.duplicate()
    matrix.mult(found, rest)
    rest.axpy(-1.0, known)
    tell(solver, preconditioner, krylov.getConvergedReason() > 0, rest.norm() < 1e-5 * known.norm())


def exchange_along(kind):
    """Each rank reads what the next one has, by a star forest."""
    neighbour = (world.rank + 1) % world.size
    forest = PETSc.SF().create(world)
    forest.setType(kind)
    forest.setGraph(10, None, np.array([(neighbour, i) for i in range(10)], dtype=np.int32))
    forest.setUp()
    roots, leaves = np.arange(10.0) + 100 * world.rank, np.zeros(10)
    forest.bcastBegin(MPI.DOUBLE, roots, leaves, MPI.REPLACE)
    forest.bcastEnd(MPI.DOUBLE, roots, leaves, MPI.REPLACE)
    tell("star forest", kind, bool(np.all(leaves == np.arange(10.0) + 100 * neighbour)))


matrix = laplacian()
for solver in SOLVERS:
    for preconditioner in PRECONDITIONERS:
        solve(matrix, solver, preconditioner)
for kind in ("basic", "window", "neighbor"):
    exchange_along(kind)
