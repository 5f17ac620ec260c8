#include "text/model/language_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/model_fixture.h"
#include "text/model/model_library.h"

namespace fathom {
namespace {

namespace fs = std::filesystem;

constexpr ChatFields kChat = {.messages = R"([{"role":"user","content":"hello <end>"}])"};

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::path(testing::TempDir()) / ("fathom-" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder& With(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name) << text;
    return *this;
  }
  Folder& WithModel() {
    const ModelFiles files = SmallFiles();
    return With("tokenizer.json", files.tokenizer)
        .With("tokenizer_config.json", files.tokenizer_config)
        .With("chat_template.jinja", files.chat_template);
  }
  std::string path() const { return path_.string(); }

 private:
  const fs::path path_;
};

std::string ProblemOf(const ModelPaths& paths) {
  const auto model = LanguageModel::Load(paths);
  return model ? std::string() : model.error().what;
}

TEST(LanguageModel, RendersChatsWithItsSpecialTokens) {
  const auto model = SmallModel();
  ASSERT_TRUE(model);
  const RenderedPrompt rendered = model->RenderChat(kChat, {});
  EXPECT_FALSE(rendered.inexact);
  EXPECT_EQ(rendered.prompt.text, "<begin><start>user\nhello <end><end><start>assistant\n");
  EXPECT_FALSE(rendered.prompt.add_special);
}

TEST(LanguageModel, AddsSpecialTokensToTextsUnlessAskedNotTo) {
  const auto model = SmallModel();
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->RenderText(R"("hello")", "").prompt.add_special);
  EXPECT_FALSE(model->RenderText(R"("hello")", "false").prompt.add_special);
  EXPECT_EQ(model->RenderText("\"\xff\"", "").inexact, Inexact::kNotAPrompt);
}

// A vocabulary of pieces with word marks; the file itself puts none before a text.
constexpr std::string_view kPieces =
    R"({"added_tokens":[{"id":0,"content":"<s>","special":true}],)"
    R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},)"
    R"("pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{"type":"BPE",)"
    R"("byte_fallback":true,"fuse_unk":true,"unk_token":null,"vocab":{"<s>":0,"▁":1,"a":2,"▁a":3},)"
    R"("merges":["▁ a"]}})";

std::vector<TokenId> Encoded(const LanguageModel& model, std::string_view text) {
  return *(*model.Borrow()).Encode(text, true);
}

TEST(LanguageModel, BuildsTheTokenizerOfAClassAndThatOfTheFile) {
  const auto model = LanguageModel::Parse(
      {.tokenizer = std::string(kPieces),
       .tokenizer_config = R"({"tokenizer_class":"LlamaTokenizer","bos_token":"<s>",)"
                           R"("legacy":true,"add_bos_token":true})"});
  ASSERT_TRUE(model) << model.error().what;
  EXPECT_EQ(Encoded(**model, "a a<s>a"), (std::vector<TokenId>{3, 3, 0, 3}))
      << "what is put around it is the file's, whatever add_bos_token says";
  ASSERT_NE((*model)->by_file(), nullptr);
  EXPECT_EQ(Encoded(*(*model)->by_file(), "a a<s>a"), (std::vector<TokenId>{2, 3, 0, 2}));
  const std::string_view telling = (*model)->telling_text();
  EXPECT_NE(Encoded(**model, telling), Encoded(*(*model)->by_file(), telling));
  EXPECT_NE((*model)->fingerprint(), (*model)->by_file()->fingerprint());
}

TEST(LanguageModel, TakesTheFileWhereItWorksOnBytes) {
  ModelFiles files = SmallFiles();
  files.tokenizer_config.insert(files.tokenizer_config.find('{') + 1,
                                R"("tokenizer_class":"LlamaTokenizer",)");
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->by_file(), nullptr);
  EXPECT_EQ(Encoded(**model, "hello"), Encoded(*SmallModel(), "hello"));
}

TEST(LanguageModel, LeavesARequestsOwnTemplateToTheEngine) {
  const auto model = SmallModel();
  ASSERT_TRUE(model);
  ChatFields chat = kChat;
  chat.chat_template = R"("{{ messages }}")";
  EXPECT_EQ(model->RenderChat(chat, {}).inexact, Inexact::kOwnTemplate);
}

TEST(LanguageModel, WorksForTextsWithoutATemplateThatCanBeUsed) {
  for (const char* const chat_template : {"", "{% include 'other' %}"}) {
    const auto model = SmallModel(chat_template);
    ASSERT_TRUE(model);
    EXPECT_FALSE(model->template_problem().empty());
    EXPECT_EQ(model->RenderChat(kChat, {}).inexact, Inexact::kNoTemplate);
    EXPECT_FALSE(model->RenderText(R"("hello")", "").inexact);
  }
}

TEST(LanguageModel, TakesTheTemplateForToolsWhereThereIsOne) {
  ModelFiles files = SmallFiles("");
  files.tokenizer_config = R"({"chat_template":[{"name":"default","template":"plain"},)"
                           R"({"name":"tool_use","template":"tools"}]})";
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model);
  ChatFields chat = kChat;
  EXPECT_EQ((*model)->RenderChat(chat, {}).prompt.text, "plain");
  chat.tools = R"([{"type":"function","function":{"name":"f"}}])";
  EXPECT_EQ((*model)->RenderChat(chat, {}).prompt.text, "tools");
  EXPECT_EQ((*model)->RenderChat(chat, {.dialect = ChatDialect::kSglang}).prompt.text, "plain");
}

TEST(LanguageModel, TakesNoOtherTemplateWhereTheOneForToolsCannotBeUsed) {
  ModelFiles files = SmallFiles("");
  files.tokenizer_config =
      R"({"chat_template":[{"name":"tool_use","template":"{% include 'x' %}"},)"
      R"({"name":"default","template":"plain"}]})";
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model);
  ChatFields chat = kChat;
  EXPECT_EQ((*model)->RenderChat(chat, {}).prompt.text, "plain");
  EXPECT_EQ((*model)->RenderChat(chat, {.dialect = ChatDialect::kSglang}).inexact,
            Inexact::kNoTemplate);
  chat.tools = R"([{"type":"function","function":{"name":"f"}}])";
  EXPECT_EQ((*model)->RenderChat(chat, {}).inexact, Inexact::kNoTemplate);
}

TEST(LanguageModel, LeavesChatsToEnginesThatHaveCodeOfTheirOwnForThem) {
  ModelFiles files = SmallFiles();
  files.config = R"({"model_type":"gpt_oss","vocab_size":1000000000000000019884624838656})";
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->RenderChat(kChat, {}).inexact, Inexact::kNoTemplate);
  EXPECT_EQ((*model)->RenderChat(kChat, {.dialect = ChatDialect::kTrtllm}).inexact,
            Inexact::kNoTemplate);
  EXPECT_FALSE((*model)->RenderChat(kChat, {.dialect = ChatDialect::kSglang}).inexact);
}

TEST(LanguageModel, AddsSpecialTokensForSglangWhateverTheRequestSays) {
  const auto model = SmallModel();
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->RenderText(R"("hello")", "false", ChatDialect::kSglang).prompt.add_special);
}

TEST(LanguageModel, HasNoBosTokenWhereItsConfigSaysSo) {
  ModelFiles files = SmallFiles("[{{ bos_token }}]");
  files.tokenizer_config = R"({"bos_token":null})";
  files.generation_config = R"({"bos_token_id":260})";
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->RenderChat(kChat, {}).prompt.text, "[]");
}

TEST(LanguageModel, KnowsTheBosTokenFromTheGenerationConfig) {
  ModelFiles files = SmallFiles("{{ bos_token }}");
  files.tokenizer_config.clear();
  files.generation_config = R"({"bos_token_id":260})";
  const auto model = LanguageModel::Parse(files);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->RenderChat(kChat, {}).prompt.text, "<begin>");
}

TEST(LanguageModel, KeepsUserTextLiteralIfAsked) {
  const auto model = SmallModel();
  ASSERT_TRUE(model);
  Gauge bytes;
  TokenCache cache(0, bytes);
  const auto ends = [&](bool literal) {
    RenderedPrompt rendered = model->RenderChat(kChat, {.literal_user_text = literal});
    PromptParts parts({model->tokenizer(), cache, {}, 0}, std::move(rendered.prompt));
    EXPECT_TRUE(parts.Complete(*model->Borrow()));
    std::vector<TokenId> tokens;
    parts.AppendTo(tokens);
    return std::ranges::count(tokens, kEnd);
  };
  EXPECT_EQ(ends(false), 2);
  EXPECT_EQ(ends(true), 1);
}

TEST(ModelFiles, AreFoundInTheModelsFolder) {
  Folder folder("whole");
  folder.WithModel();
  EXPECT_EQ(ProblemOf({.model = folder.path()}), "");
  EXPECT_EQ(ProblemOf({.tokenizer = folder.path() + "/tokenizer.json"}), "");
}

TEST(ModelFiles, SayWhatIsWantedAndWhereItUsuallyIs) {
  Folder folder("empty");
  const std::string empty = ProblemOf({.model = folder.path()});
  EXPECT_TRUE(empty.starts_with(folder.path() + ": no tokenizer.json in it; it needs ")) << empty;
  EXPECT_NE(empty.find("~/.cache/huggingface/hub"), std::string::npos) << empty;
  EXPECT_NE(ProblemOf({.model = folder.path() + "/gone"}).find("no such folder"),
            std::string::npos);
  folder.With("tokenizer.model", "x");
  EXPECT_NE(ProblemOf({.model = folder.path()}).find("tokenizer.model, but no tokenizer.json"),
            std::string::npos);
}

TEST(ModelFiles, NameTheFileThatIsBroken) {
  Folder folder("broken");
  folder.WithModel().With("tokenizer_config.json", "{");
  EXPECT_TRUE(ProblemOf({.model = folder.path()}).starts_with("tokenizer_config.json: "));
  folder.WithModel().With("tokenizer.json", "{}");
  EXPECT_TRUE(ProblemOf({.model = folder.path()}).starts_with(folder.path() + "/tokenizer.json: "));
}

TEST(ModelLibrary, FindsModelsByNameOrTheOneForAll) {
  Folder one("one");
  Folder two("two");
  one.WithModel();
  two.WithModel().With("chat_template.jinja", "two");
  const std::vector<std::string> paths = {one.path(), "second=" + two.path()};
  const auto library = ModelLibrary::Load(paths, {});
  ASSERT_TRUE(library);
  const auto first = library->Find("anything");
  const auto second = library->Find("second");
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(first, second);
  EXPECT_EQ(second->RenderChat(kChat, {}).prompt.text, "two");
  EXPECT_EQ(library->Find(""), first);
  EXPECT_EQ(library->Find("adapter", "second"), second) << "an adapter has its base's tokenizer";
  const std::vector<std::string> named = {"second=" + two.path(), "third=" + two.path()};
  const auto only = ModelLibrary::Load(named, {});
  ASSERT_TRUE(only);
  EXPECT_FALSE(only->Find("anything"));
  EXPECT_EQ(only->Find("second"), only->Find("third")) << "the same files are loaded once";
}

TEST(ModelLibrary, LeavesToEnginesWhatIsNotSupported) {
  Folder folder("wordpiece");
  folder.WithModel().With("tokenizer.json", R"({"model":{"type":"WordPiece","vocab":{}}})");
  Folder other("other");
  other.WithModel();
  const std::vector<std::string> paths = {other.path(), "m=" + folder.path()};
  const auto library = ModelLibrary::Load(paths, {});
  ASSERT_TRUE(library) << library.error().what;
  EXPECT_TRUE(library->Find("n"));
  EXPECT_FALSE(library->Find("m")) << "another model's files are no substitute";
  const auto shelf = library->Current();
  ASSERT_EQ(shelf->all().size(), 2u);
  const KnownFiles* const files = shelf->Find("m");
  ASSERT_NE(files, nullptr);
  EXPECT_EQ(files->model, nullptr);
  EXPECT_NE(files->problem.find("WordPiece"), std::string::npos);
}

TEST(ModelLibrary, RefusesTwoFoldersForOneModel) {
  const std::vector<std::string> paths = {"a=/x", "a=/y"};
  const auto library = ModelLibrary::Load(paths, {});
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().what, "model-path names two paths for a");
}

TEST(ModelLibrary, TakesWhatIsFoundUnlessTheOperatorHasNamedIt) {
  Folder folder("named");
  folder.WithModel();
  const std::vector<std::string> paths = {"mine=" + folder.path()};
  auto library = ModelLibrary::Load(paths, {});
  ASSERT_TRUE(library);
  ModelReader reader(*library);
  const auto mine = library->Find("mine");
  const auto found = SmallModel();
  EXPECT_EQ(reader.Get().Find("other"), nullptr);
  EXPECT_FALSE(library->Put("mine", {.model = found, .origin = FilesOrigin::kFound}));
  EXPECT_TRUE(library->Put("other", {.model = found, .origin = FilesOrigin::kFound}));
  EXPECT_EQ(reader.Get().Find("mine")->model, mine);
  EXPECT_EQ(reader.Get().Find("mine")->origin, FilesOrigin::kNamed);
  ASSERT_NE(reader.Get().Find("other"), nullptr) << "the reader sees what is added later";
  EXPECT_EQ(reader.Get().Find("adapter", "other")->origin, FilesOrigin::kFound);
  auto for_all = ModelLibrary::Of(mine);
  EXPECT_FALSE(for_all.Put("other", {.model = found, .origin = FilesOrigin::kFound}));
  EXPECT_EQ(for_all.Find("other"), mine);
}

}  // namespace
}  // namespace fathom
