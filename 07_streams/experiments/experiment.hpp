/// @file
/// What an experiment of this lesson is: a question, and a run that answers it with a table and result rows.
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "common/host/problem/shape.hpp"
#include "common/host/program/results.hpp"

namespace lesson07 {

/// What every experiment is given.
struct Context {
  std::ostream& out;  ///< the table goes here
  ladder::ResultFile&
      results;          ///< a row for each variant: lesson "07_streams", settings.experiment = name, ...
  ladder::Shape shape;  ///< m: rows of a batch on average; n, k: the weights
  int batches = 0, rounds = 0;
  int streams = 3, slots = 6;
};

struct Experiment {
  std::string name;      ///< of `--experiment`
  std::string question;  ///< one sentence
  std::function<void(const Context&)> run;
};

/// All of them, in the order of the page.
std::vector<const Experiment*> experiments();

}  // namespace lesson07
