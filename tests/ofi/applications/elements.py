"""Finite elements of FEniCSx: meshes are partitioned, with ghosts, and a system is assembled on each."""

import ufl
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from mpi4py import MPI
from petsc4py import PETSc

world = MPI.COMM_WORLD
for ghosts in (mesh.GhostMode.none, mesh.GhostMode.shared_facet):
    for domain in (
        mesh.create_unit_square(world, 24, 24, ghost_mode=ghosts),
        mesh.create_unit_cube(world, 6, 6, 6, ghost_mode=ghosts),
    ):
        space = fem.FunctionSpace(domain, ("Lagrange", 2))
        trial, test = ufl.TrialFunction(space), ufl.TestFunction(space)
        place = ufl.SpatialCoordinate(domain)
        source = ufl.sin(3 * place[0]) * place[1]
        matrix = petsc.assemble_matrix(fem.form((ufl.inner(ufl.grad(trial), ufl.grad(test)) + trial * test) * ufl.dx))
        matrix.assemble()
        vector = petsc.assemble_vector(fem.form(source * test * ufl.dx))
        vector.ghostUpdate(addv=PETSc.InsertMode.ADD, mode=PETSc.ScatterMode.REVERSE)
        norms = matrix.norm(), vector.norm()
        if world.rank == 0:
            print("norms %.8f %.8f" % norms)
