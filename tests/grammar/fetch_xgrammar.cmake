# cmake -DTANDEM_XGRAMMAR_ARCHIVE=FILE -DPROJECT_SOURCE_DIR=FOLDER -P fetch_xgrammar.cmake: what the configuration says of an
# archive that will not do.
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/tandem_xgrammar.cmake")
tandem_fetch_xgrammar(folder)
