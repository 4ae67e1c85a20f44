/// @file
/// The check of exercise 07.b: each of the steps is the longest one once, with one and two copy engines.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using exercise::Steps;
using ladder::exercise::expect_returned;

void expect_time(Steps one, int batches, int copy_engines) {
  const int all = one.upload + one.kernel + one.download, copies = batches * (one.upload + one.download);
  const int longest = std::max({one.upload, one.kernel, one.download});
  const int two_engines = all + (batches - 1) * longest;
  const int sms = all + (batches - 1) * one.kernel;
  const std::string fill = "the busiest engine idles before its first step and after its last one",
                    name = fmt::format("least_time({{{}, {}, {}}}, {}, {})", one.upload, one.kernel,
                                       one.download, batches, copy_engines);
  const int got = exercise::least_time(one, batches, copy_engines);
  if (copy_engines == 2)
    expect_returned(name, got, two_engines,
                    {{batches * all, "that runs one step after the other: which of them can overlap?"},
                     {batches * longest, fill},
                     {all + batches * longest, "you counted one step too many of the busiest engine"},
                     {std::max(sms, copies), "with two copy engines an upload and a download can overlap"},
                     {sms, "a copy engine may be the busiest"}});
  else
    expect_returned(name, got, std::max(sms, copies),
                    {{batches * all, "that runs one step after the other: which of them can overlap?"},
                     {two_engines, "the only copy engine executes the uploads and the downloads"},
                     {std::max(batches * one.kernel, copies), fill},
                     {copies + one.kernel, "while a kernel runs, the copy engine can copy another batch"},
                     {copies, "the SMs may be the busiest"}});
}

void check() {
  for (const int copy_engines : {2, 1})
    for (const int batches : {10, 2, 1})
      for (const Steps& one : {Steps{3, 5, 4}, {7, 2, 3}, {2, 3, 9}, {3, 20, 4}, {4, 4, 4}})
        expect_time(one, batches, copy_engines);
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
