/// @file
/// Names of schedules, for command lines and reports.
#include <stdexcept>

#include "common/cpu_device/cpu_device.hpp"

namespace cpu_device {
namespace {

struct OrderName {
  Order order;
  const char* name;
  const char* meaning;
};
constexpr OrderName kOrders[] = {
    {Order::round_robin, "round-robin", "threads take turns"},
    {Order::lowest_first, "lowest-first", "the lowest warp that can run goes first"},
    {Order::highest_first, "highest-first", "the highest warp that can run goes first"},
    {Order::random, "random", "threads run in an order drawn from the seed"}};
struct LandingName {
  Landing landing;
  const char* name;
  const char* meaning;
};
constexpr LandingName kLandings[] = {{Landing::late, "late", "as late as"},
                                     {Landing::eager, "eager", "as early as"},
                                     {Landing::random, "random", "at moments drawn from the seed, when"}};

/// "copies land as late as they may".
std::string meaning(Landing landing, const char* what, const char* pronoun) {
  std::string text;
  for (const LandingName& entry : kLandings) {
    if (entry.landing == landing) text += std::string(what) + " " + entry.meaning + " " + pronoun + " may";
  }
  return text;
}

[[noreturn]] void refuse(const std::string& text) {
  throw std::invalid_argument("schedule '" + text +
                              "': expected ORDER/LANDING or ORDER/LANDING:SEED with ORDER round-robin, "
                              "lowest-first, highest-first or random and LANDING late, eager or random; or "
                              "random:SEED");
}

uint64_t parse_seed(const std::string& digits, const std::string& text) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) refuse(text);
  try {
    return std::stoull(digits);
  } catch (const std::out_of_range&) {
    refuse(text);
  }
}

}  // namespace

std::string Schedule::name() const {
  if (order == Order::random && landing == Landing::random) return "random:" + std::to_string(seed);
  std::string text;
  for (const OrderName& entry : kOrders) {
    if (entry.order == order) text += entry.name;
  }
  for (const LandingName& entry : kLandings) {
    if (entry.landing == landing) text += std::string("/") + entry.name;
  }
  if (order == Order::random || landing == Landing::random) text += ":" + std::to_string(seed);
  return text;
}

std::string Schedule::explained() const {
  std::string text = name() + " (";
  for (const OrderName& entry : kOrders) {
    if (entry.order == order) text += entry.meaning;
  }
  return text + "; " + meaning(landing, "copies land", "they") + ")";
}

std::string Schedule::explained_for_streams() const {
  return name() + " (" + meaning(landing, "queued work runs", "it") + ")";
}

Schedule Schedule::parse(const std::string& text) {
  Schedule schedule;
  const size_t colon = text.find(':');
  if (colon != std::string::npos) schedule.seed = parse_seed(text.substr(colon + 1), text);
  const std::string words = text.substr(0, colon);
  if (words == "random") return random(schedule.seed);

  const size_t slash = words.find('/');
  if (slash == std::string::npos) refuse(text);
  bool order_found = false, landing_found = false;
  for (const OrderName& entry : kOrders) {
    if (words.substr(0, slash) == entry.name) schedule.order = entry.order, order_found = true;
  }
  for (const LandingName& entry : kLandings) {
    if (words.substr(slash + 1) == entry.name) schedule.landing = entry.landing, landing_found = true;
  }
  if (!order_found || !landing_found) refuse(text);
  return schedule;
}

std::vector<Schedule> fixed_schedules() {
  std::vector<Schedule> schedules;
  for (Order order : {Order::round_robin, Order::lowest_first, Order::highest_first}) {
    for (Landing landing : {Landing::late, Landing::eager}) schedules.push_back({order, landing});
  }
  return schedules;
}

}  // namespace cpu_device
