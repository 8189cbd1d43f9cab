# TANDEM_CUDA=AUTO|ON|OFF. There is no CUDA device in the tree yet, so AUTO builds without one whatever is installed,
# and ON must not pretend.
set(TANDEM_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO (when it can be built), ON, OFF")
set_property(CACHE TANDEM_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TANDEM_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TANDEM_CUDA is \"${TANDEM_CUDA}\"; it must be AUTO, ON or OFF.")
endif()
if(TANDEM_CUDA STREQUAL "ON")
  message(FATAL_ERROR "TANDEM_CUDA=ON, but this version of tandem has no CUDA device; use AUTO or OFF.")
endif()
message(STATUS "CUDA device: not built, this version has none")
