# Finds oneDNN, which is optional: sets GYRE_ONEDNN_FOUND and defines the target gyre_onednn, which is empty without oneDNN. Debian's
# package configuration requires OpenCL's headers, which gyre does not need, so header and library are searched for directly.
option(GYRE_ONEDNN "Products by oneDNN, where it is there" ON)
add_library(gyre_onednn INTERFACE IMPORTED GLOBAL)  # imported, as gyre_torch is
set(GYRE_ONEDNN_FOUND OFF)
if(GYRE_ONEDNN)
  find_path(GYRE_ONEDNN_INCLUDE dnnl.hpp)
  find_library(GYRE_ONEDNN_LIBRARY dnnl)
  if(GYRE_ONEDNN_INCLUDE AND GYRE_ONEDNN_LIBRARY)
    # PyPI's libtorch includes the headers of its own internal oneDNN. They are found before all others, and
    # may be of another version than the library.
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${TORCH_INCLUDE_DIRS} ${GYRE_ONEDNN_INCLUDE})
    set(CMAKE_REQUIRED_LIBRARIES ${GYRE_ONEDNN_LIBRARY})
    check_cxx_source_compiles("
      #include <dnnl.hpp>
      int main() {
        using dnnl::memory;
        return memory::desc({2, 2}, memory::data_type::bf16, memory::format_tag::ab).get_size() == 0;
      }" GYRE_ONEDNN_LINKS)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(GYRE_ONEDNN_LINKS)
      set(GYRE_ONEDNN_FOUND ON)
    else()
      message(STATUS "oneDNN: ${GYRE_ONEDNN_LIBRARY} is not of the version whose headers come with libtorch")
    endif()
  endif()
endif()
if(GYRE_ONEDNN_FOUND)
  target_include_directories(gyre_onednn SYSTEM INTERFACE ${GYRE_ONEDNN_INCLUDE})
  target_link_libraries(gyre_onednn INTERFACE ${GYRE_ONEDNN_LIBRARY})
endif()
message(STATUS "oneDNN: ${GYRE_ONEDNN_FOUND}")
