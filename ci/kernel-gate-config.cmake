# find_package(kernel-gate): the target kernel-gate::kernel is the ABI of kernel libraries, kernel.h.
# Relative to this file, <prefix>/lib/cmake/kernel-gate: right wherever the tree lies.
get_filename_component(kernel_gate_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET kernel-gate::kernel)
  add_library(kernel-gate::kernel INTERFACE IMPORTED)
  set_target_properties(kernel-gate::kernel PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${kernel_gate_prefix}/include/kernel-gate")
endif()
set(kernel-gate_VERSION "@VERSION@")
