# Says what `cmake --install` installs, and what cpack packages. The parts are gyre (the program, with its man pages),
# engine (gyre-engine, needs libtorch), core-dev (the rooms that do not need libtorch, their headers, gyreConfig.cmake, gyre.pc)
# and engine-dev (the other rooms). To install one part: cmake --install build/release --component core-dev.
include(CMakePackageConfigHelpers)
set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)

# Exports with a namespace, so that linking a library that is not exported is an error here.
install(EXPORT gyre-core NAMESPACE gyre:: FILE gyreCore.cmake DESTINATION ${cmake_folder} COMPONENT core-dev)
if(GYRE_TORCH)
  install(EXPORT gyre-engine NAMESPACE gyre:: FILE gyreEngine.cmake DESTINATION ${cmake_folder} COMPONENT engine-dev)
endif()
# pkg-config: static libraries, higher rooms before lower ones.
foreach(part core engine)
  get_property(libraries GLOBAL PROPERTY GYRE_LIBRARIES_${part})
  list(REVERSE libraries)
  set(flags "")
  foreach(library ${libraries})
    get_target_property(type ${library} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      string(APPEND flags " -l${library}")
    endif()
  endforeach()
  set(GYRE_PC_LIBS_${part} "${flags}")
  set(rooms ${rooms} ${libraries})
  string(REPLACE gyre_ gyre:: GYRE_TARGETS_${part} "${libraries}")
  list(JOIN GYRE_TARGETS_${part} " " GYRE_TARGETS_${part})
endforeach()
if(ncursesw_FOUND)
  set(GYRE_NCURSES_MODULE ncursesw=ncursesw)
  set(GYRE_PC_NCURSES " ncursesw")
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gyreConfig.cmake.in gyreConfig.cmake
                              INSTALL_DESTINATION ${cmake_folder})
write_basic_package_version_file(gyreConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gyreConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/gyreConfigVersion.cmake
        DESTINATION ${cmake_folder} COMPONENT core-dev)

file(RELATIVE_PATH GYRE_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # relative, so that --prefix may be any folder
configure_file(cmake/gyre.pc.in gyre.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gyre.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT core-dev)
if(GYRE_TORCH)
  set(GYRE_PC_TORCH_CFLAGS "")
  foreach(directory ${TORCH_INCLUDE_DIRS})
    if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      string(APPEND GYRE_PC_TORCH_CFLAGS " -I${directory}")
    endif()
  endforeach()
  # Leaves out the compiler's default folders, which differ between Debian's architectures.
  get_filename_component(torch_libraries "${TORCH_LIBRARY}" DIRECTORY)
  if(NOT torch_libraries IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set(GYRE_PC_TORCH_LDFLAGS "-L${torch_libraries} ")
  endif()
  if(GYRE_ONEDNN_FOUND)
    set(GYRE_PC_ONEDNN -ldnnl)
  endif()
  if(GYRE_CUDA)
    set(GYRE_PC_CUDA " -ltorch_cuda -lc10_cuda -L${CUDA_TOOLKIT_ROOT_DIR}/lib64 -lcudart")
    if(GYRE_NCCL_LIBRARY)
      string(APPEND GYRE_PC_CUDA " -lnccl")
    endif()
  endif()
  configure_file(cmake/gyre-engine.pc.in gyre-engine.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gyre-engine.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT engine-dev)
endif()

add_custom_target(gyre_rooms DEPENDS ${rooms})  # builds everything that core-dev and engine-dev install

# The program looks for this module beside itself and in ../lib/gyre/modules. (In ../lib/gyre itself, cpack would take it for a library
# that programs link, and run ldconfig.)
if(TARGET gyre_sentencepiece)
  install(TARGETS gyre_sentencepiece LIBRARY DESTINATION lib/gyre/modules COMPONENT gyre)
endif()
