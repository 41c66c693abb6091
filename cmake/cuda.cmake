# The CUDA backend: compiler, architectures, flags.
if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
endif()
set(SLUICE_CUDA_ARCHITECTURES "80;86;89;90a;100;120" CACHE STRING "GPU architectures that kernels are compiled for")
set(CMAKE_CUDA_ARCHITECTURES ${SLUICE_CUDA_ARCHITECTURES})
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
find_package(CUDAToolkit 13 REQUIRED)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# CMake 3.25 knows no C++20 of CUDA.
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -std=c++20 --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra")
if(SLUICE_WERROR)
  string(APPEND CMAKE_CUDA_FLAGS " -Werror=all-warnings")
endif()

target_compile_definitions(sluice_flags INTERFACE SLUICE_CUDA=1)
