#include "router/routing/response_pins.h"

#include <xxhash.h>

#include <algorithm>

namespace fathom {
namespace {

// Before every use: nothing has expired.
constexpr TimePoint kWhenever{};

}  // namespace

uint64_t ResponsePins::KeyOf(std::string_view id) const {
  return XXH3_64bits_withSeed(id.data(), id.size(), secret_);
}

void ResponsePins::Use(uint64_t key, Pins::Slot& slot, TimePoint now) {
  slot.last_used = std::max(slot.last_used, now);
  if (now - slot.value.told < kTtl / kRetell) return;
  slot.value.told = now;
  news_.Add({key, slot.value.pin, now});
}

std::optional<ResponsePins::Pin> ResponsePins::Find(std::string_view id, TimePoint now) {
  if (id.size() > kLongestId) return std::nullopt;
  const uint64_t key = KeyOf(id);
  std::optional<Pin> pin;
  pins_.Change(key, now, [&](std::optional<Pins::Slot>& slot) {
    if (!slot) return;
    Use(key, *slot, now);
    pin = slot->value.pin;
  });
  return pin;
}

void ResponsePins::Remember(std::string_view id, WorkerId worker, TimePoint now) {
  if (id.empty() || id.size() > kLongestId) return;
  const uint64_t key = KeyOf(id);
  pins_.Change(key, now, [&](std::optional<Pins::Slot>& slot) {
    if (slot) return Use(key, *slot, now);
    slot = {.value = {.pin = {worker}, .told = now}, .last_used = now};
    news_.Add({key, slot->value.pin, now});
  });
}

void ResponsePins::SetContext(std::string_view id, const Pin& pin) {
  const uint64_t key = KeyOf(id);
  pins_.Change(key, kWhenever, [&](std::optional<Pins::Slot>& slot) {
    if (!slot || slot->value.pin.worker != pin.worker) return;
    slot->value.pin = pin;
    news_.Add({key, pin, slot->last_used});
  });
}

void ResponsePins::Forget(std::string_view id, WorkerId worker) {
  pins_.Change(KeyOf(id), kWhenever, [&](std::optional<Pins::Slot>& slot) {
    if (slot && slot->value.pin.worker == worker) slot.reset();
  });
}

void ResponsePins::Learn(const Told& told, TimePoint now) {
  if (now - told.last_used >= kTtl) return;
  pins_.Change(told.response, now, [&](std::optional<Pins::Slot>& slot) {
    if (!slot) {
      slot = {.value = {.pin = told.pin, .told = now}, .last_used = told.last_used};
      return;
    }
    Kept& kept = slot->value;
    if (kept.pin.worker != told.pin.worker) return;
    kept.told = now;
    slot->last_used = std::max(slot->last_used, told.last_used);
    // A conversation is known or not; a late message must not make it unknown again.
    if (told.pin.tokens >= kept.pin.tokens) kept.pin = told.pin;
  });
}

void ResponsePins::Continue(Walk& walk, std::vector<Told>& into, size_t most) const {
  pins_.Continue(walk, most, [&](uint64_t key, const Kept& kept, TimePoint last_used) {
    into.push_back({key, kept.pin, last_used});
  });
}

}  // namespace fathom
