/// @file
/// Shadow of <nvToolsExt.h>.
#pragma once
#include <nvtx3/nvToolsExt.h>
