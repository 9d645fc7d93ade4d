# Compiler settings shared by every target, and the functions that declare rooms and their tests.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# All targets, including executables, have the same options, so that they can share one precompiled header.
# Those about mathematics allow square roots to be vectorised.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fno-math-errno;-fno-trapping-math>" $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>)
# Before all other libraries. PyPI's libtorch exports a part of the C++ library that it was built with, and functions would be found
# there first that do not work with the rest (std::filesystem::remove_all crashes).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_link_options(LINKER:--push-state,--no-as-needed -lstdc++ LINKER:--pop-state)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # installs what was built, even if tests were not
include(GNUInstallDirs)
set(GYRE_MODULES_FOLDER lib/gyre/modules)  # below the prefix: what programs load while they run
set(CMAKE_BUILD_RPATH ${PROJECT_BINARY_DIR}/gyre/tokenizers)  # where such a module is built

find_program(GYRE_CCACHE ccache)
if(GYRE_CCACHE)
  # Without this sloppiness ccache cannot cache units that use a precompiled header. With this base another checkout of the
  # same sources, in another folder, finds what was compiled here; traces then name the files of the first.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=true ${GYRE_CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
if(GYRE_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GYRE_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  add_link_options(-fsanitize=${GYRE_SANITIZE})
endif()

add_library(gyre_warnings INTERFACE)
target_compile_options(gyre_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;$<$<BOOL:${GYRE_WERROR}>:-Werror>>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False warnings of GCC 12 about std::string.
  target_compile_options(gyre_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-stringop-overflow>")
endif()

if(GYRE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # False warnings caused by the sanitizers' code.
  target_compile_options(gyre_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()

# gyre_room(NAME [TORCH] [ROOMS a b ...] [LIBRARIES x y ...] [PRIVATE h ...]) declares the library gyre_NAME from this
# folder's sources. ROOMS are the lower rooms that it may include. TORCH means that it uses tensors (and the
# precompiled header). PRIVATE are headers, and folders of headers, that are not installed and not included from
# outside the room (scripts/check-rooms checks it).
function(gyre_room name)
  cmake_parse_arguments(ARG "TORCH" "" "ROOMS;LIBRARIES;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gyre_room(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(sources)
    add_library(gyre_${name} STATIC ${sources})
    target_link_libraries(gyre_${name} PRIVATE $<BUILD_INTERFACE:gyre_warnings>)
    set(scope PUBLIC)
  else()
    add_library(gyre_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(gyre_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  foreach(room ${ARG_ROOMS})
    target_link_libraries(gyre_${name} ${scope} gyre_${room})
  endforeach()
  target_link_libraries(gyre_${name} ${scope} ${ARG_LIBRARIES})
  if(ARG_TORCH)
    gyre_use_torch(gyre_${name} ${scope})
    gyre_install_library(${name} engine "${ARG_PRIVATE}")
  else()
    gyre_install_library(${name} core "${ARG_PRIVATE}")
  endif()
endfunction()

# gyre_install_library(NAME PART PRIVATE) installs gyre_NAME as gyre::NAME, with this folder's headers except the PRIVATE
# ones (* for all). PART is core (no libtorch) or engine; GyreInstall.cmake installs the parts.
function(gyre_install_library name part private)
  set_property(GLOBAL APPEND PROPERTY GYRE_LIBRARIES_${part} gyre_${name})
  set_target_properties(gyre_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(gyre_${name} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(gyre_${name} INTERFACE cxx_std_20)
  install(TARGETS gyre_${name} EXPORT gyre-${part} ARCHIVE COMPONENT ${part}-dev)
  if(private STREQUAL "*")
    return()
  endif()
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.h)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(header ${headers})
    get_filename_component(within ${header} DIRECTORY)
    if(header IN_LIST private OR "${within}/" IN_LIST private)
      continue()
    endif()
    if(within AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${within}/CMakeLists.txt)
      continue()  # this folder is a room itself
    endif()
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder}/${within} COMPONENT ${part}-dev)
  endforeach()
endfunction()

# Links libtorch and uses the shared precompiled header. Torch's headers are system headers, so that warnings concern only gyre's code.
function(gyre_use_torch target scope)
  target_link_libraries(${target} ${scope} gyre_torch)
  if(scope STREQUAL INTERFACE)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM gyre_precompiled)
endfunction()

# gyre_test(ROOM [TORCH] [LIBRARIES ...]) builds gyre_ROOM_test from this folder's *_test.cpp and registers its cases.
function(gyre_test room)
  cmake_parse_arguments(ARG "TORCH" "" "LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(gyre_${room}_test ${sources})
  target_link_libraries(gyre_${room}_test PRIVATE gyre_${room} gyre_warnings GTest::gtest GTest::gmock GTest::gtest_main
                        ${ARG_LIBRARIES})
  target_include_directories(gyre_${room}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_BINARY_DIR}/tests)
  if(ARG_TORCH)
    gyre_use_torch(gyre_${room}_test PRIVATE)
  endif()
  # Cases named *.Slow* are long studies. `ctest -L slow` runs them; the default test command leaves them out.
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/gyre_${room}_suites.cmake)
  set(lists ${PROJECT_SOURCE_DIR}/cmake/ListSuites.cmake)
  add_custom_command(TARGET gyre_${room}_test POST_BUILD BYPRODUCTS ${suites} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:gyre_${room}_test> -D PREFIX=${room}. -D LABEL=${room}
                             -D FILE=${suites} -P ${lists})
  set_property(TARGET gyre_${room}_test APPEND PROPERTY LINK_DEPENDS ${lists})
  # Until it is built, ctest says so.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/gyre_${room}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${suites}\")\n  include(\"${suites}\")\nelse()\n  add_test(${room}.NOT_BUILT NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
