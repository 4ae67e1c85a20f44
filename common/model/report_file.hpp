/// @file
/// The file that the tables of docs/cost_model.md are made from: docs/results/model/DATE-GPU.json.
#pragma once
#include <string>

#include "common/model/lessons.hpp"

namespace ladder::model {

/// Calibrations, predictions and pictures. The same result files give the same text, whichever compiler built
/// it.
std::string to_json(const Report& report);

}  // namespace ladder::model
