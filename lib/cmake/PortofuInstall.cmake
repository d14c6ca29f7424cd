# What `cmake --install` puts under the prefix. All of it is relocatable: `--prefix` may differ from the configured one.
# There are no .la files; lib is never lib64 or lib/<triplet>, because `--with-portals4=PREFIX` looks into PREFIX/lib.

set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Directory of the libraries under the prefix")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# portofu_install_library(TARGET): the shared library, as Portofu::TARGET in the CMake package.
function(portofu_install_library target)
  install(TARGETS ${target} EXPORT PortofuTargets
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endfunction()

# portofu_install_pkgconfig(NAME TEMPLATE): NAME.pc, whose prefix follows from where the file lies.
function(portofu_install_pkgconfig name template)
  file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  configure_file("${template}" "${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

# portofu_install_c_library(TARGET NAME HEADER...): the library, its headers, and NAME.pc.
function(portofu_install_c_library target name)
  portofu_install_library(${target})
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/include/")
  install(FILES ${ARGN} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  portofu_install_pkgconfig(${name} "${PROJECT_SOURCE_DIR}/lib/cmake/${name}.pc.in")
endfunction()

# portofu_install_package(): the files for find_package(Portofu). Called last, when all libraries are known.
function(portofu_install_package)
  set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Portofu")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/PortofuConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(EXPORT PortofuTargets NAMESPACE Portofu:: DESTINATION "${package_dir}")
  install(FILES "${PROJECT_SOURCE_DIR}/lib/cmake/PortofuConfig.cmake" "${PROJECT_BINARY_DIR}/PortofuConfigVersion.cmake"
          DESTINATION "${package_dir}")
endfunction()
