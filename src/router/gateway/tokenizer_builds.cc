#include "router/gateway/tokenizer_builds.h"

#include <utility>

namespace fathom {
namespace {

bool Gives(const LanguageModel& model, std::string_view text, const std::vector<TokenId>& tokens) {
  const LanguageModel::Lease encoder = model.Borrow();
  for (const bool special : {true, false}) {
    const auto own = (*encoder).Encode(text, special);
    if (own && *own == tokens) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const LanguageModel> TokenizerBuilds::Choose(
    std::shared_ptr<const LanguageModel> model) {
  if (model->by_file() == nullptr) return model;
  const std::lock_guard lock(mutex_);
  return entries_[model.get()].choice == Choice::kByFile ? model->by_file() : model;
}

bool TokenizerBuilds::ShouldAsk(const LanguageModel& model, TimePoint now) {
  if (model.by_file() == nullptr) return false;
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[&model];
  if (entry.choice != Choice::kOpen) return false;
  if (entry.asked != TimePoint{} && now - entry.asked < kAsksEvery) return false;
  entry.asked = now;
  return true;
}

void TokenizerBuilds::Hear(const LanguageModel& model, std::string_view name,
                           const std::vector<TokenId>& tokens) {
  const bool by_class = Gives(model, model.telling_text(), tokens);
  const bool by_file = !by_class && Gives(*model.by_file(), model.telling_text(), tokens);
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[&model];
    if (entry.choice != Choice::kOpen) return;
    entry.choice = by_file ? Choice::kByFile : Choice::kByClass;
  }
  log_.Info("The engine's answer chose the build of a tokenizer",
            {{"model", name},
             {"build", by_file ? "tokenizer.json" : "class"},
             {"agrees", by_class || by_file}});
}

}  // namespace fathom
