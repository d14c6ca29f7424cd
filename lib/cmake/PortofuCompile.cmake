# Compiler and linker flags of every target, and the helpers that find sources by pattern.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The libraries lie beside each other in the build tree as they do in the installation, so that one run path does.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/archive")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# Release keeps line tables, so that a crash report names lines. PORTOFU_ASSERT stays on, whatever NDEBUG says.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")

# GCC clears larger structures by "rep stos", which takes some 30 cycles to begin: every call of the APIs
# clears a descriptor, so a tenth of a short put was that.
include(CheckCXXCompilerFlag)
set(PORTOFU_PLAIN_CLEARING "-mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign")
check_cxx_compiler_flag("${PORTOFU_PLAIN_CLEARING}" PORTOFU_HAS_PLAIN_CLEARING)
if(PORTOFU_HAS_PLAIN_CLEARING)
  add_compile_options("$<$<CONFIG:Release>:${PORTOFU_PLAIN_CLEARING}>")
endif()

# As GCC has it without being asked: operator delete that is told the size.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fsized-deallocation>")

# Not -Wpedantic: the atomic unit and the hash need __int128, which it refuses.
add_compile_options(-Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
add_compile_definitions("$<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>")

# Reports of sanitizers, and who has a first look, need lines and nothing else; up to a third of a file's compilation
# would go into the rest.
if(PORTOFU_SANITIZE OR PORTOFU_UNITY)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")
endif()

if(PORTOFU_SANITIZE)
  add_compile_options("-fsanitize=${PORTOFU_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${PORTOFU_SANITIZE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The instrumentation misleads the first; the second says what is known, that TSan does not see fences.
    add_compile_options(-Wno-maybe-uninitialized -Wno-tsan)
  endif()
endif()

# Counts belong to processes that fork and to threads that race, so they are added atomically.
if(PORTOFU_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

if(PORTOFU_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PORTOFU_FUZZ needs clang: cmake --preset fuzz, or -DCMAKE_CXX_COMPILER=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# A compiler cache makes the second build of a file a copy, also in another checkout.
find_program(PORTOFU_CCACHE ccache)
if(PORTOFU_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros
                                  "${PORTOFU_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()

find_package(Threads REQUIRED)

# portofu_find_sources(VARIABLE PATTERN...): the files under the calling directory that match, found again by each build.
function(portofu_find_sources variable)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${ARGN})
  list(SORT files)
  set(${variable} "${files}" PARENT_SCOPE)
endfunction()

# portofu_compile_together(TARGET): the sources of one directory are one unit of compilation, where PORTOFU_UNITY says so.
# Most of what a file costs is headers and templates that its neighbours have, too: all of the engine costs a third of
# what its files cost alone. Whoever edits a file wants it alone.
# The anonymous namespaces of a directory's files are then one: their names differ.
function(portofu_compile_together target)
  if(NOT PORTOFU_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE group)
    cmake_path(GET group PARENT_PATH group)
    string(MAKE_C_IDENTIFIER "${group}" group)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# portofu_add_archive(NAME SOURCE...): a static library of the repository's own, never installed. Tests and benchmarks
# link it to reach what the shared libraries hide.
function(portofu_add_archive name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# portofu_watch_unwinding(NAME SCOPE): threads that unwind in the middle of its calls are noticed
# (engine/run/unwinding.h). PRIVATE for a library that is or links libportofu, INTERFACE for what links an archive.
function(portofu_watch_unwinding name scope)
  target_link_options(${name} ${scope} -Wl,--wrap=__gxx_personality_v0)
endfunction()

# portofu_add_shared(NAME ARCHIVE MAP): the shared library made of all of ARCHIVE's objects, exporting what MAP names.
# A plug-in that links it may be unloaded while the engine's thread is about to end: nodelete keeps the code mapped.
function(portofu_add_shared name archive map)
  add_library(${name} SHARED)
  target_sources(${name} PRIVATE "$<TARGET_OBJECTS:${archive}>")
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE "-Wl,--version-script=${map}" -Wl,-Bsymbolic-functions -Wl,--as-needed
                      -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--enable-new-dtags)
  if(NOT PORTOFU_SANITIZE AND NOT PORTOFU_FUZZ)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS "${map}"
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "\$ORIGIN")
endfunction()

# portofu_add_c_library(NAME LINKED SOURCE...): the library of a C interface over the library LINKED. Nothing of it is
# visible but what its header marks and libNAME.map, beside the sources, says once more. NAME_archive is for tests.
function(portofu_add_c_library name linked)
  portofu_add_archive(${name}_archive ${ARGN})
  portofu_compile_together(${name}_archive)
  target_compile_options(${name}_archive PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
  target_link_libraries(${name}_archive PUBLIC ${linked}_archive)
  portofu_add_shared(${name} ${name}_archive "${CMAKE_CURRENT_SOURCE_DIR}/lib${name}.map")
  target_link_libraries(${name} PRIVATE ${linked})
  target_include_directories(${name} INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
endfunction()
