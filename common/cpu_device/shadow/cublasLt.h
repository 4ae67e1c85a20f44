/// @file
/// Shadow of <cublasLt.h>.
#pragma once
#include <cublas_v2.h>
