# find_package(Portofu) defines Portofu::portals, the Portals 4.3 library, Portofu::tofucom, the uTofu library, and
# Portofu::funi, the network interface of FUNet with its active messages.
include("${CMAKE_CURRENT_LIST_DIR}/PortofuTargets.cmake")
