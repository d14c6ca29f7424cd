"""How each library is drawn: one table, so that the same thing has the same colour in every plot, on every machine."""

from dataclasses import dataclass

OURS, PEER, LIMIT = "ours", "peer", "limit"


@dataclass(frozen=True)
class Look:
    """`name` is what a reader knows the library by; `kind` decides how thick its lines are, and whether dotted."""
    name: str
    kind: str
    colour: str


# By the name of the API in the results. The colours differ for colour-blind readers, too, and on paper.
LOOKS = {
    "portals": Look("Portals", OURS, "#0057b8"),
    "utofu": Look("uTofu", OURS, "#d1410c"),
    "mpi portals4": Look("MPI over our Portals", OURS, "#00805a"),
    "uct utofu": Look("UCT over uTofu", OURS, "#00a0a0"),
    "openmpi utofu": Look("Open MPI over UCX over uTofu", OURS, "#5a5ad0"),
    "ucx": Look("UCX", PEER, "#b5509c"),
    "libfabric portofu": Look("libfabric over us", OURS, "#7a4b00"),
    "libfabric shm": Look("libfabric shm", PEER, "#c98a00"),
    "mpi ofi": Look("MPI over our provider", OURS, "#4d7a00"),
    "ob1": Look("Open MPI ob1", PEER, "#3fa7d6"),
    "ob1 told": Look("Open MPI ob1, told", PEER, "#6f5bd3"),
    "openmpi ucx": Look("Open MPI UCX", PEER, "#8a1c4a"),
    "mpich": Look("MPICH", PEER, "#8c8b2b"),
    "raw": Look("machine", LIMIT, "#444444"),
}

# A plot with lines of one library tells them apart by their marks, in this order.
MARKS = ("circle", "square", "triangle", "diamond", "ring", "frame")
MOST_LINES = 6  # In one plot; more are not told apart.

WIDTHS = {OURS: 3, PEER: 1.5, LIMIT: 2}
DOTS = "0.1 5"  # With round caps: dots.


def look(api):
    """A library that the table lacks is thin and black, so that nobody waits ten minutes for a plot that fails."""
    return LOOKS.get(api, Look(api, PEER, "#000000"))


def series_name(api, what, memory):
    return f"{look(api).name}: {what}" + ("" if memory == "malloc" else f" ({memory})")
