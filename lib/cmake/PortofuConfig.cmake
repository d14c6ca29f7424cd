# find_package(Portofu) defines Portofu::portals, the Portals 4.3 library, and Portofu::tofucom, the uTofu library.
include("${CMAKE_CURRENT_LIST_DIR}/PortofuTargets.cmake")
