# Toolchain of 64-bit Arm on a Debian machine of another kind (package g++-aarch64-linux-gnu). What is built links
# nothing but the libraries of the compiler: libfabric, CLI11, Boost and fmt are headers to us, the same for all.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
