# The Debian packages that `cpack -G DEB` makes, one for each part that GyreInstall.cmake names. scripts/test-package tests that
# they install and run.
set(CPACK_PACKAGE_NAME gyre)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(GYRE_PACKAGE_CONTACT "gyre developers <gyre@example.org>" CACHE STRING "Whom users of your packages write to")
set(CPACK_PACKAGE_CONTACT "${GYRE_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)

# gyre_package(PART PACKAGE SECTION DEPENDS SUMMARY TEXT) declares a package. The libraries that programs load are added automatically.
function(gyre_package part package section depends summary text)
  string(TOUPPER ${part} upper)
  set(description "${summary}\n${text}")
  foreach(entry "NAME ${package}" "SECTION ${section}" "DEPENDS ${depends}")
    string(REGEX MATCH "^[A-Z]+" key "${entry}")
    string(REGEX REPLACE "^[A-Z]+ ?" "" value "${entry}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_${key} "${value}" PARENT_SCOPE)
  endforeach()
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
  if(part MATCHES "-dev$")
    set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS OFF PARENT_SCOPE)
  else()
    set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  endif()
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${part} PARENT_SCOPE)

  set(folder ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/copyright DESTINATION ${folder} COMPONENT ${part})
  install(FILES ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION ${folder} COMPONENT ${part})
endfunction()

execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/packaging/changelog OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz)
set(CPACK_COMPONENTS_ALL "")
gyre_package(gyre gyre science ""
  "pipeline schedules for training language models"
  "gyre draws, validates and simulates the schedules of pipeline
parallelism, and prepares text for training. With gyre-engine it trains
transformer language models through asynchronous pipelines.")
set(CPACK_DEBIAN_GYRE_PACKAGE_RECOMMENDS gyre-engine)
if(ncursesw_FOUND)
  set(ncurses ", libncurses-dev")
endif()
gyre_package(core-dev libgyre-dev libdevel
  "pkg-config, libfmt-dev, nlohmann-json3-dev, libtomlplusplus-dev, libxxhash-dev, zlib1g-dev, libzstd-dev, libpcre2-dev, libutf8proc-dev, libcpp-httplib-dev${ncurses}"
  "pipeline schedules and their simulation (development)"
  "Static libraries and headers of the parts of gyre that need no
libtorch: schedules, their simulation and planning.")
set(CPACK_DEBIAN_CORE-DEV_PACKAGE_RECOMMENDS gyre)  # the sentencepiece module
if(GYRE_TORCH)
  gyre_package(engine gyre-engine science "gyre (= ${PROJECT_VERSION})"
    "training of language models through asynchronous pipelines"
    "The program that gyre runs for the commands that touch tensors:
training, evaluation, generation, import and export of models.")
  set(onednn "")
  if(GYRE_ONEDNN_FOUND)
    set(onednn ", libdnnl-dev")
  endif()
  gyre_package(engine-dev libgyre-engine-dev libdevel "libgyre-dev (= ${PROJECT_VERSION}), libtorch-dev${onednn}"
    "training through asynchronous pipelines (development)"
    "Static libraries and headers of the parts of gyre that need libtorch.")
endif()
include(CPack)
