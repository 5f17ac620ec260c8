// When may memory be freed that a reader could still be reading?
//
// A reader pins the current epoch while it reads. When a writer unlinks an object, the object is
// retired with the epoch of that moment, and freed once every pin is younger.
//
//   Epochs::Seat seat(epochs);            // one per thread, kept
//   { const Epochs::Pin pin(seat); ... }  // around each look; cheap; not nested
//
// Threads    A seat belongs to one thread at a time. Retire() and Collect() from any thread.
// Ordering   Reader: seat <- epoch, then load the pointer. Writer: store the pointer, then read the
//            seats. All four are sequentially consistent, so either the writer sees the pin or the
//            reader sees the new pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace fathom {

class Epochs {
 public:
  static constexpr size_t kSeats = 8192;

  Epochs() : places_(std::make_unique<Place[]>(kSeats)) {}
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

 private:
  struct alignas(64) Place {
    std::atomic<uint64_t> pinned{0};  // 0: not pinned
    std::atomic<bool> taken{false};
  };

 public:
  class Seat {
   public:
    explicit Seat(Epochs& epochs) : epochs_(epochs), place_(epochs.Take()) {}
    ~Seat() { place_.taken.store(false, std::memory_order_release); }  // pairs with Take()
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    // For long reads: acts as a new pin; pointers loaded before become invalid. Only while pinned.
    void Renew() {
      place_.pinned.store(epochs_.now_.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
    }

   private:
    friend class Epochs;
    Epochs& epochs_;
    Place& place_;
  };

  class Pin {
   public:
    explicit Pin(Seat& seat) : place_(seat.place_) { seat.Renew(); }
    ~Pin() { place_.pinned.store(0, std::memory_order_release); }  // pairs with OldestPin()
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

   private:
    Place& place_;
  };

  // `free` is called once no reader can see the object, on a thread that calls Retire() or
  // Collect().
  void Retire(std::move_only_function<void()> free);
  void Collect();

 private:
  struct Retired {
    uint64_t epoch;
    std::move_only_function<void()> free;
  };

  Place& Take();
  uint64_t OldestPin() const;

  std::atomic<uint64_t> now_{1};
  std::unique_ptr<Place[]> places_;
  std::atomic<size_t> used_{0};  // how many of the first places were ever taken
  std::mutex mutex_;
  std::vector<Retired> retired_;  // guarded by mutex_, oldest first
};

}  // namespace fathom
