# Compiler settings shared by every target, and the functions that declare rooms and their tests.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Everything, executables too, is compiled alike, so that one precompiled header serves all.
add_compile_options(-fPIC -fno-math-errno -fno-trapping-math)  # the latter two let square roots be vectorised
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(GYRE_CCACHE ccache)
if(GYRE_CCACHE)
  # The sloppiness is what ccache needs to cache units that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${GYRE_CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
if(GYRE_SANITIZE)
  add_compile_options(-fsanitize=${GYRE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GYRE_SANITIZE})
endif()

add_library(gyre_warnings INTERFACE)
target_compile_options(gyre_warnings INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(gyre_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow)  # GCC 12 finds faults in std::string that are not there
endif()

if(GYRE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(gyre_warnings INTERFACE -Wno-maybe-uninitialized)  # misled by the sanitizers' own code
endif()

# gyre_room(NAME [TORCH] [ROOMS a b ...] [LIBRARIES x y ...]) declares the library gyre_NAME from this folder's sources.
# ROOMS are the rooms below it that it may include; TORCH says that it touches tensors (and uses the precompiled header).
function(gyre_room name)
  cmake_parse_arguments(ARG "TORCH" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gyre_room(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(sources)
    add_library(gyre_${name} STATIC ${sources})
    target_link_libraries(gyre_${name} PRIVATE gyre_warnings)
    set(scope PUBLIC)
  else()
    add_library(gyre_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(gyre_${name} ${scope} ${PROJECT_SOURCE_DIR})
  foreach(room ${ARG_ROOMS})
    target_link_libraries(gyre_${name} ${scope} gyre_${room})
  endforeach()
  target_link_libraries(gyre_${name} ${scope} ${ARG_LIBRARIES})
  if(ARG_TORCH)
    gyre_use_torch(gyre_${name} ${scope})
  endif()
endfunction()

# Links libtorch and takes the one precompiled header. Torch's headers are system headers: our warnings are for our code.
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
  target_include_directories(gyre_${room}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(gyre_${room}_test PRIVATE GYRE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(ARG_TORCH)
    gyre_use_torch(gyre_${room}_test PRIVATE)
  endif()
  # Cases named *.Slow* are long studies: `ctest -L slow` runs them, the default test command leaves them out.
  gtest_discover_tests(gyre_${room}_test TEST_PREFIX ${room}. TEST_FILTER "-*.Slow*" DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS ${room} TIMEOUT 600)
  gtest_discover_tests(gyre_${room}_test TEST_PREFIX ${room}. TEST_FILTER "*.Slow*" DISCOVERY_TIMEOUT 60
                       TEST_LIST gyre_${room}_slow_tests PROPERTIES LABELS slow TIMEOUT 7200)
endfunction()
