#include "lab/replay/virtual_network.h"

#include <algorithm>

namespace fathom {

class VirtualNetwork::Port final : public Carrier {
 public:
  Port(VirtualNetwork& network, size_t number) : network_(network), number_(number) {}

  void Start(OnMessage on_message) override { on_message_ = std::move(on_message); }
  void Stop() override { on_message_ = nullptr; }

  bool Publish(std::string_view message) override {
    const auto bytes = std::make_shared<const std::string>(message);
    for (size_t to = 0; to < network_.ports_.size(); ++to) {
      if (to != number_) Carry(to, bytes);
    }
    return true;
  }

  bool Send(std::string_view replica, std::string_view message) override {
    const auto to = std::ranges::find(network_.names_, replica);
    if (to == network_.names_.end()) return false;
    Carry(static_cast<size_t>(to - network_.names_.begin()),
          std::make_shared<const std::string>(message));
    return true;
  }

  Status status() const override {
    return {.up = true, .problem = {}, .sent_bytes = sent_bytes_, .received_bytes = received_};
  }

  void Arrived(std::string_view bytes) {
    received_ += bytes.size();
    if (on_message_) on_message_(bytes);
  }

 private:
  void Carry(size_t to, const std::shared_ptr<const std::string>& bytes) {
    sent_bytes_ += bytes->size();
    network_.Carry(to, bytes);
  }

  VirtualNetwork& network_;
  const size_t number_;
  OnMessage on_message_;
  uint64_t sent_bytes_ = 0;
  uint64_t received_ = 0;
};

VirtualNetwork::VirtualNetwork(const VirtualNetworkOptions& options, std::vector<std::string> names,
                               uint64_t seed)
    : options_(options), names_(std::move(names)), random_(seed) {
  for (size_t i = 0; i < names_.size(); ++i) ports_.push_back(std::make_unique<Port>(*this, i));
}

VirtualNetwork::~VirtualNetwork() = default;

Carrier& VirtualNetwork::carrier(size_t replica) { return *ports_[replica]; }

void VirtualNetwork::Carry(size_t to, const std::shared_ptr<const std::string>& bytes) {
  if (random_.Unit() < options_.loss) return;
  const double times = 1 + options_.jitter * (2 * random_.Unit() - 1);
  const auto late = static_cast<int64_t>(times * static_cast<double>(options_.delay.count()));
  under_way_.push({now_ + Duration(late), ++sent_, to, bytes});
}

void VirtualNetwork::Deliver(TimePoint now) {
  now_ = now;
  while (next() <= now) {
    const Message message = under_way_.top();
    under_way_.pop();
    ports_[message.to]->Arrived(*message.bytes);
  }
}

}  // namespace fathom
