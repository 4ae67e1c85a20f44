/// @file
/// `predict`: the cost model of pipelines. See `predict --help`.
#include "common/model/predict.hpp"

int main(int argc, char** argv) { return ladder::model::run_predict(argc, argv); }
