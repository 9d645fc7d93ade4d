# Finds the libraries that gyre uses. Required: libtorch (GYRE_TORCH), fmt, nlohmann-json, toml++, CLI11, xxhash, zlib, zstd, PCRE2, utf8proc, cpp-httplib. Optional: sentencepiece, ncurses, oneDNN.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
if(GYRE_FUZZ)
  # Compiles toml++'s parser with gyre's sources, so that the fuzzer instruments it.
  set_target_properties(tomlplusplus::tomlplusplus PROPERTIES INTERFACE_COMPILE_OPTIONS "" INTERFACE_LINK_LIBRARIES "")
endif()
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
find_package(ZLIB REQUIRED)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
if("${httplib_CFLAGS}" MATCHES OPENSSL)
  # Its headers call OpenSSL (Debian 13's do), which its pkg-config file names for static linking alone.
  pkg_check_modules(openssl REQUIRED IMPORTED_TARGET openssl)
  target_link_libraries(PkgConfig::httplib INTERFACE PkgConfig::openssl)
  set(GYRE_OPENSSL_MODULE openssl=openssl)
  set(GYRE_PC_OPENSSL " openssl")
endif()
pkg_check_modules(sentencepiece IMPORTED_TARGET sentencepiece)
pkg_check_modules(ncursesw IMPORTED_TARGET ncursesw)
if(GYRE_TORCH)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # libtorch's, not a second one
  find_package(Torch REQUIRED)
  # libtorch's package enables the language if it has CUDA itself.
  set(GYRE_CUDA OFF)
  if(TARGET torch_cuda AND CMAKE_CUDA_COMPILER)
    set(GYRE_CUDA ON)
  endif()
  message(STATUS "CUDA: ${GYRE_CUDA}")
  # An imported target: installed libraries refer to it by name, and gyreConfig.cmake defines it again for projects that link them.
  add_library(gyre_torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(gyre_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(gyre_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})

  # The shared precompiled header: ATen and the standard headers that tensor code uses. It lacks torch/torch.h, which takes six times
  # as long to compile; the few units that need torch::nn include it themselves.
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cpp "// Carries the precompiled header.\n")
  add_library(gyre_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(gyre_precompiled PRIVATE gyre_torch gyre_warnings fmt::fmt)
  target_precompile_headers(gyre_precompiled PRIVATE <ATen/ATen.h> <fmt/format.h> <functional> <map> <memory> <optional>
                            <span> <string> <vector>)
  include(GyreOneDnn)
endif()

if(GYRE_TORCH AND GYRE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(GYRE_TORCH AND GYRE_BENCH)
  find_package(benchmark)
endif()
