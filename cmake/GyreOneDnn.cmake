# oneDNN, where it is: GYRE_ONEDNN_FOUND, and the target gyre_onednn, which is empty where it is not. Debian's package
# configuration asks for OpenCL's headers, which nothing here needs, so header and library are looked for by themselves.
option(GYRE_ONEDNN "Products by oneDNN, where it is there" ON)
add_library(gyre_onednn INTERFACE IMPORTED GLOBAL)  # imported, as gyre_torch is
set(GYRE_ONEDNN_FOUND OFF)
if(GYRE_ONEDNN)
  find_path(GYRE_ONEDNN_INCLUDE dnnl.hpp)
  find_library(GYRE_ONEDNN_LIBRARY dnnl)
  if(GYRE_ONEDNN_INCLUDE AND GYRE_ONEDNN_LIBRARY)
    set(GYRE_ONEDNN_FOUND ON)
    target_include_directories(gyre_onednn SYSTEM INTERFACE ${GYRE_ONEDNN_INCLUDE})
    target_link_libraries(gyre_onednn INTERFACE ${GYRE_ONEDNN_LIBRARY})
  endif()
endif()
message(STATUS "oneDNN: ${GYRE_ONEDNN_FOUND}")
