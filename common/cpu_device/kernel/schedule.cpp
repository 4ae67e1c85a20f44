/// @file
/// Names of schedules, for command lines and reports.
#include <stdexcept>

#include "common/cpu_device/cpu_device.hpp"

namespace cpu_device {
namespace {

struct OrderName {
  Order order;
  const char* name;
};
constexpr OrderName kOrders[] = {{Order::round_robin, "round-robin"},
                                 {Order::lowest_first, "lowest-first"},
                                 {Order::highest_first, "highest-first"},
                                 {Order::random, "random"}};
struct LandingName {
  Landing landing;
  const char* name;
};
constexpr LandingName kLandings[] = {
    {Landing::late, "late"}, {Landing::eager, "eager"}, {Landing::random, "random"}};

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
