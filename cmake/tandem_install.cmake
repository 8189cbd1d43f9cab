# `cmake --install` gives the binary, the static libraries, include/tandem and find_package(tandem CONFIG).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(tandem_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tandem")

# Every library the engine links, its object libraries included; whatever a folder adds later is found here.
function(tandem_collect_libraries target found)
  set(seen ${${found}})
  if(NOT TARGET ${target} OR ${target} IN_LIST seen)
    return()
  endif()
  get_target_property(imported ${target} IMPORTED)
  if(imported OR NOT target MATCHES "^tandem_" OR target STREQUAL "tandem_warnings")
    return()
  endif()
  list(APPEND seen ${target})
  foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(links ${target} ${property})
    foreach(link IN LISTS links)
      string(REGEX REPLACE "^\\$<[A-Z_]+:([^>]*)>$" "\\1" link "${link}")
      tandem_collect_libraries("${link}" seen)
    endforeach()
  endforeach()
  set(${found} ${seen} PARENT_SCOPE)
endfunction()

set(tandem_installed_libraries "")
tandem_collect_libraries(tandem_engine tandem_installed_libraries)
install(TARGETS ${tandem_installed_libraries} EXPORT tandem_targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}/tandem")
install(EXPORT tandem_targets NAMESPACE tandem:: DESTINATION "${tandem_package_dir}")
install(DIRECTORY include/tandem DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES cmake/FindCAF.cmake DESTINATION "${tandem_package_dir}")
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file(cmake/tandemConfig.cmake.in "${PROJECT_BINARY_DIR}/tandemConfig.cmake"
  INSTALL_DESTINATION "${tandem_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tandemConfig.cmake" "${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake"
  DESTINATION "${tandem_package_dir}")
