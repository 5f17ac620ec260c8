#include "config/option.h"

namespace fathom {
namespace {

using enum OptionType;
using enum OptionSection;

constexpr auto kServe = static_cast<unsigned>(Command::kServe);
constexpr auto kMock = static_cast<unsigned>(Command::kMock);
constexpr auto kDemo = static_cast<unsigned>(Command::kDemo);
constexpr auto kListen = static_cast<unsigned>(Command::kListen);
constexpr auto kTokenize = static_cast<unsigned>(Command::kTokenize);
constexpr auto kDoctor = static_cast<unsigned>(Command::kDoctor);
constexpr auto kLint = static_cast<unsigned>(Command::kLint);

constexpr double kMillisecond = 0.001;
constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
constexpr double kYear = 365 * kDay;
constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kGiB = 1024 * kMiB;
constexpr double kMillion = 1e6;
constexpr double kTiB = 1024 * kGiB;

constexpr std::string_view kRouterModes[] = {
    "kv", "prefix-hash", "round-robin", "random", "power-of-two", "least-loaded", "direct"};
// direct is for clients that name their worker.
constexpr std::string_view kComparedModes[] = {
    "none", "kv", "prefix-hash", "round-robin", "random", "power-of-two", "least-loaded"};
constexpr std::string_view kEngines[] = {"vllm", "sglang", "trtllm"};
constexpr std::string_view kEnginesOrAny[] = {"any", "vllm", "sglang", "trtllm"};
constexpr std::string_view kReportFormats[] = {"text", "json", "markdown", "html"};
constexpr std::string_view kInputForms[] = {"auto", "text", "request"};
constexpr std::string_view kProfiles[] = {"h200-llama-3.1-8b", "h200-qwen3-32b", "polynomial",
                                          "paced"};
constexpr std::string_view kSwitch[] = {"on", "off"};
constexpr std::string_view kConflictRules[] = {"refuse", "mixed"};
constexpr std::string_view kHashForms[] = {"int", "bytes"};
constexpr std::string_view kReadyWhen[] = {"routable", "trusted"};
constexpr std::string_view kPromptFaults[] = {"none", "bos", "template", "vocabulary"};
constexpr std::string_view kEventFaults[] = {"none", "no-removals", "hide-salt", "hide-lora"};
constexpr std::string_view kCachingReports[] = {"truth", "none"};
constexpr std::string_view kDepartures[] = {"exit", "abort", "silent"};
constexpr std::string_view kLogLevels[] = {"debug", "info", "warn", "error", "off"};
constexpr std::string_view kLogFormats[] = {"text", "json"};

// clang-format off
constexpr Option kOptions[] = {
    // Listening
    {.name = "host", .type = kText, .fallback = "127.0.0.1", .commands = kServe,
     .section = kListening, .placeholder = "HOST", .dynamo = {{"DYN_HTTP_HOST"}},
     .aliases = {"http-host"},
     .help = "Address to listen on; 0.0.0.0 or :: for every interface."},
    {.name = "port", .type = kInteger, .fallback = "8000", .range = {0, 65535}, .commands = kServe,
     .section = kListening, .placeholder = "PORT", .dynamo = {{"DYN_HTTP_PORT"}},
     .aliases = {"http-port"},
     .help = "Port to listen on; 0 picks a free one."},
    {.name = "host", .type = kText, .fallback = "127.0.0.1", .commands = kMock,
     .section = kListening, .placeholder = "HOST",
     .help = "Address to listen on."},
    {.name = "port", .type = kInteger, .fallback = "8100", .range = {0, 65535}, .commands = kMock,
     .section = kListening, .placeholder = "PORT",
     .help = "Port to listen on; 0 picks a free one."},
    {.name = "port", .type = kInteger, .fallback = "0", .range = {0, 65535}, .commands = kDemo,
     .section = kListening, .placeholder = "PORT",
     .help = "Port of the router; 0 picks a free one, as the router that it is compared with always "
             "does."},
    {.name = "admin-listen", .type = kText, .fallback = "", .commands = kServe,
     .section = kListening, .placeholder = "HOST:PORT",
     .help = "Serve the admin and debug routes here instead of on the main port."},
    {.name = "threads", .type = kInteger, .fallback = "0", .range = {0, 256},
     .commands = kServe, .section = kListening,
     .help = "Event loops; 0 means one per core."},
    {.name = "threads", .type = kInteger, .fallback = "1", .range = {1, 256},
     .commands = kMock, .section = kListening,
     .help = "Event loops of a paced engine; a simulated one has one."},
    {.name = "config", .type = kText, .fallback = "", .commands = kServe,
     .section = kListening, .placeholder = "FILE",
     .help = "YAML file with options, and workers as maps under the key workers."},
    {.name = "print-config", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kListening,
     .help = "Print every option with its value and where that came from, then exit."},

    // Workers
    {.name = "worker-urls", .type = kList, .fallback = "", .commands = kServe,
     .section = kWorkers, .placeholder = "URL...",
     .help = "Engines to route to, added to the workers of the YAML file: http://host:port is one "
             "worker, dns+http://name:port as many as the name has addresses."},
    {.name = "dns-interval", .type = kDuration, .fallback = "5s",
     .range = {100 * kMillisecond, kHour}, .commands = kServe, .section = kWorkers,
     .help = "Time between two lookups of a dns+http:// worker's name."},
    {.name = "workers", .type = kInteger, .fallback = "4", .range = {1, 64}, .commands = kDemo,
     .section = kWorkers,
     .help = "Mock workers of each router."},

    // Routing
    {.name = "router-mode", .type = kChoice, .fallback = "kv", .choices = kRouterModes,
     .commands = kServe, .section = kRouting, .placeholder = "MODE",
     .dynamo = {{"DYN_ROUTER_MODE"}},
     .help = "How a worker is chosen: kv by what its cache holds and how busy it is, prefix-hash by "
             "the beginning of the prompt, direct by the client itself, the others by load alone."},
    {.name = "router-kv-events", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kRouting, .dynamo = {{"DYN_ROUTER_USE_KV_EVENTS"}, {"DYN_USE_KV_EVENTS"}},
     .help = "Whether the workers' KV events say what their caches hold; without them it is guessed "
             "from where prompts were sent."},
    {.name = "router-kv-overlap-score-credit", .type = kNumber, .fallback = "1", .range = {0, 1},
     .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT"}},
     .help = "How much of a cached token's prefill counts as saved; 0 ignores the caches."},
    {.name = "router-prefill-load-scale", .type = kNumber, .fallback = "64", .range = {0, kMillion},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_PREFILL_LOAD_SCALE"}},
     .help = "Price of prefilling a token in units of decoding with one more token of context."},
    {.name = "router-kv-overlap-score-weight", .type = kNumber, .fallback = "64",
     .range = {0, kMillion}, .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT"}, {"DYN_OVERLAP_SCORE_WEIGHT"}},
     .aliases = {"kv-overlap-score-weight"},
     .help = "Older name of router-prefill-load-scale, where 0 also sets the credit to 0; counts "
             "only if neither of the two is set."},
    {.name = "router-decode-active-request-weight", .type = kNumber, .fallback = "0",
     .range = {0, 1e9}, .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT"}},
     .help = "Price of each request that a rank is serving, in tokens of context."},
    {.name = "router-host-cache-hit-weight", .type = kNumber, .fallback = "0.75", .range = {0, 1},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_HOST_CACHE_HIT_WEIGHT"}},
     .help = "What a token cached in host memory is worth beside one on the device."},
    {.name = "router-disk-cache-hit-weight", .type = kNumber, .fallback = "0.25", .range = {0, 1},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_DISK_CACHE_HIT_WEIGHT"}},
     .help = "What a token cached on disk or further away is worth beside one on the device."},
    {.name = "router-temperature", .type = kNumber, .fallback = "0", .range = {0, 100},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_TEMPERATURE"}},
     .help = "Above 0, ranks are drawn by chance, the cheaper the likelier, instead of taking the "
             "cheapest."},
    {.name = "router-belief-ttl", .type = kDuration, .fallback = "1s", .range = {0, kHour},
     .commands = kServe, .section = kRouting,
     .help = "How long after its first byte a prompt is believed to be cached where it went, until "
             "KV events have confirmed it."},
    {.name = "router-ttl", .type = kDuration, .fallback = "120s", .range = {kMillisecond, kYear},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_TTL_SECS"}},
     .aliases = {"router-ttl-secs"},
     .help = "Without KV events: how long a prompt is assumed to stay cached where it went."},
    {.name = "router-prefix-hash-tokens", .type = kInteger, .fallback = "1024",
     .range = {1, kMillion}, .commands = kServe, .section = kRouting,
     .help = "How many tokens at the beginning of a prompt decide where prefix-hash sends it."},
    {.name = "router-prefix-hash-bound", .type = kNumber, .fallback = "1.25", .range = {1, 1000},
     .commands = kServe, .section = kRouting,
     .help = "How many times the mean number of requests prefix-hash lets a rank have."},
    {.name = "router-queue-threshold", .type = kNumber, .fallback = "2", .range = {0, kMillion},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_QUEUE_THRESHOLD"}},
     .help = "Steps of prefill, each as large as the engine reports (else 8192 tokens), that may be "
             "queued on a rank; when all ranks have that many, or are full, requests wait in the "
             "router; 0 never waits."},
    {.name = "router-queue-timeout", .type = kDuration, .fallback = "60s", .range = {0, kHour},
     .commands = kServe, .section = kRouting,
     .help = "How long a request waits for a rank with room; then it goes to the best one anyway."},
    {.name = "routing-headers", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kRouting,
     .help = "Whether answers carry x-fathom-worker, x-fathom-dp-rank and x-fathom-cached-tokens."},
    {.name = "decisions-kept", .type = kInteger, .fallback = "1024", .range = {0, kMillion},
     .commands = kServe, .section = kRouting,
     .help = "Latest decisions that GET /debug/decisions can show."},
    {.name = "router-mode", .type = kChoice, .fallback = "kv", .choices = kRouterModes,
     .commands = kDemo, .section = kRouting, .placeholder = "MODE",
     .help = "How a worker is chosen."},
    {.name = "compare", .type = kChoice, .fallback = "round-robin", .choices = kComparedModes,
     .commands = kDemo, .section = kRouting, .placeholder = "MODE",
     .help = "How a second router, with workers of its own, chooses for the same conversations; "
             "none runs the first alone."},
    {.name = "session-affinity-ttl", .type = kDuration, .fallback = "10m", .range = {0, kYear},
     .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_SESSION_AFFINITY_TTL_SECS"}},
     .aliases = {"router-session-affinity-ttl-secs"},
     .help = "How long a session that names itself stays with its worker after its last request; "
             "0 turns affinity off."},
    {.name = "seed", .type = kInteger, .fallback = "0", .range = {0, 0x1p53}, .commands = kServe,
     .section = kRouting,
     .help = "Seed of the random choices, so that a run can be repeated; 0 takes a random one."},

    // Tokens
    {.name = "model-path", .type = kList, .fallback = "", .commands = kServe, .section = kTokens,
     .placeholder = "[MODEL=]DIR...", .dynamo = {{"DYN_MODEL_PATH"}},
     .help = "Folders with tokenizer.json, tokenizer_config.json and the chat template, so that "
             "prompts are tokenized here: of the model of that name, or of all that have none of "
             "their own."},
    {.name = "tokenizer-path", .type = kList, .fallback = "", .commands = kServe,
     .section = kTokens, .placeholder = "[MODEL=]PATH...",
     .help = "Another tokenizer.json, or its folder, in place of the one in model-path."},
    {.name = "model-path", .type = kText, .fallback = "", .commands = kMock, .section = kTokens,
     .placeholder = "DIR",
     .help = "Folder with tokenizer.json, tokenizer_config.json and the chat template, for real "
             "tokens in place of the mock's own."},
    {.name = "forward-tokens", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kTokens,
     .help = "Send token ids to engines that take them, so that they need not tokenize again: "
             "completions to all, chats to SGLang and TensorRT-LLM."},
    {.name = "literal-user-text", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kTokens,
     .help = "Special tokens in what users and tools say stay text, where the engine takes ids "
             "(not vLLM's chats); needs forward-tokens."},
    {.name = "tokenize-threads", .type = kInteger, .fallback = "0", .range = {0, 64},
     .commands = kServe, .section = kTokens,
     .help = "Threads that tokenize long new texts; 0 means half of the cores, at most 4."},
    {.name = "tokenize-timeout", .type = kDuration, .fallback = "250ms", .range = {0, kHour},
     .commands = kServe, .section = kTokens,
     .help = "How long a request waits for its text to become tokens before it is routed by what "
             "is known of it; 0 asks no engine."},
    {.name = "tokenize-cache-bytes", .type = kBytes, .fallback = "64MiB", .range = {0, 1024 * kGiB},
     .commands = kServe, .section = kTokens,
     .help = "Memory for the tokens of texts that were seen before."},

    // Trust
    {.name = "ask-usage", .type = kFlag, .fallback = "true", .commands = kServe, .section = kTrust,
     .help = "Ask engines in streams how many tokens of a prompt they found cached, and take the "
             "answer out again before the client sees it; without it only what they tell anyway is "
             "read."},
    {.name = "no-events-after", .type = kDuration, .fallback = "5s",
     .range = {kMillisecond, kHour}, .commands = kServe, .section = kTrust,
     .help = "A rank that has served 64 requests over at least this time and published no KV event "
             "is doubted."},
    {.name = "event-lag-limit", .type = kDuration, .fallback = "2s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kTrust,
     .help = "A rank whose KV events come later than this, again and again, is doubted."},
    {.name = "ready-when", .type = kChoice, .fallback = "routable", .choices = kReadyWhen,
     .commands = kServe, .section = kTrust, .placeholder = "WHAT",
     .help = "When GET /ready says yes: routable as soon as a worker can be routed to, trusted not "
             "while a rank that can be routed to is doubted."},
    {.name = "trust-memory", .type = kBytes, .fallback = "64MiB", .range = {0, 1024 * kGiB},
     .commands = kServe, .section = kTrust,
     .help = "Memory for the blocks that were computed once and are not held any more, so that it "
             "can be said why a known prefix was prefilled again; 0: it is not said."},

    // Relay
    {.name = "connect-timeout", .type = kDuration, .fallback = "2s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kRelay,
     .help = "How long connecting to a worker may take."},
    {.name = "first-byte-timeout", .type = kDuration, .fallback = "600s",
     .range = {kMillisecond, kYear}, .commands = kServe, .section = kRelay,
     .help = "How long a worker may take until the first byte of its answer's body."},
    {.name = "idle-timeout", .type = kDuration, .fallback = "120s", .range = {kMillisecond, kYear},
     .commands = kServe, .section = kRelay,
     .help = "How long a worker may be silent inside an answer."},
    {.name = "request-timeout", .type = kDuration, .fallback = "3600s",
     .range = {kMillisecond, kYear}, .commands = kServe, .section = kRelay,
     .help = "How long a request may take in all."},
    {.name = "write-timeout", .type = kDuration, .fallback = "300s", .range = {kMillisecond, kYear},
     .commands = kServe, .section = kRelay,
     .help = "How long a client that does not take what it is sent is kept."},
    {.name = "keep-alive-timeout", .type = kDuration, .fallback = "75s",
     .range = {kMillisecond, kDay}, .commands = kServe, .section = kRelay,
     .help = "How long an idle client connection is kept."},
    // uvicorn, which most engines run on, closes after 5 s: we must be the first to let go.
    {.name = "upstream-keep-alive-timeout", .type = kDuration, .fallback = "4s",
     .range = {0, kDay}, .commands = kServe, .section = kRelay,
     .help = "How long an idle connection to a worker is kept; keep it below the worker's own "
             "timeout, which is 5s by default under uvicorn."},
    {.name = "pool-size", .type = kInteger, .fallback = "256", .range = {0, 65536},
     .commands = kServe, .section = kRelay,
     .help = "Idle connections kept per worker and thread."},
    {.name = "silent-stream-grace", .type = kDuration, .fallback = "5s", .range = {0, kHour},
     .commands = kServe, .section = kRelay,
     .help = "How long a silent answer is still waited for once its worker's listener is gone."},
    {.name = "drain-timeout", .type = kDuration, .fallback = "30s", .range = {0, kDay},
     .commands = kServe, .section = kRelay,
     .dynamo = {{"DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"}},
     .help = "How long running requests may take to finish after a signal to stop."},

    // Limits
    {.name = "max-in-flight", .type = kInteger, .fallback = "10000", .range = {1, kMillion},
     .commands = kServe, .section = kLimits,
     .help = "Requests being served at once; more of them wait."},
    {.name = "max-waiting", .type = kInteger, .fallback = "1000", .range = {0, kMillion},
     .commands = kServe, .section = kLimits,
     .help = "Requests that may wait for their turn; more of them are refused."},
    {.name = "queue-timeout", .type = kDuration, .fallback = "30s", .range = {0, kDay},
     .commands = kServe, .section = kLimits,
     .help = "How long a request may wait for its turn."},
    {.name = "max-connections", .type = kInteger, .fallback = "20000", .range = {1, kMillion},
     .commands = kServe, .section = kLimits,
     .help = "Client connections open at once."},
    {.name = "max-body-size", .type = kBytes, .fallback = "192MiB", .range = {kKiB, 64 * kGiB},
     .commands = kServe, .section = kLimits, .dynamo = {{"DYN_HTTP_BODY_LIMIT_MB", "MiB"}},
     .help = "Largest request body."},
    {.name = "max-body-memory", .type = kBytes, .fallback = "4GiB",
     .range = {kMiB, 1024 * kGiB}, .commands = kServe, .section = kLimits,
     .help = "Memory that the request bodies being read and served may take up together; what "
             "does not fit gets 503."},
    {.name = "max-head-size", .type = kBytes, .fallback = "64KiB", .range = {kKiB, kMiB},
     .commands = kServe, .section = kLimits,
     .help = "Largest request or answer head: the first line and all headers."},
    {.name = "head-timeout", .type = kDuration, .fallback = "10s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kLimits,
     .help = "How long a client may take to send its request's head."},
    {.name = "body-timeout", .type = kDuration, .fallback = "30s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kLimits,
     .help = "How long a client may make no progress on its request's body."},

    // Retries
    {.name = "retry-attempts", .type = kInteger, .fallback = "3", .range = {1, 10},
     .commands = kServe, .section = kRetries,
     .help = "Tries in all for a request whose worker fails before the first byte."},
    {.name = "retry-budget", .type = kNumber, .fallback = "0.2", .range = {0, 1},
     .commands = kServe, .section = kRetries,
     .help = "Retries allowed per request on average, so that an outage is not multiplied."},
    {.name = "circuit-breaker-failures", .type = kInteger, .fallback = "5", .range = {1, kMillion},
     .commands = kServe, .section = kRetries,
     .help = "Failures in a row after which a worker gets no requests for a while."},
    {.name = "circuit-breaker-open", .type = kDuration, .fallback = "5s",
     .range = {10 * kMillisecond, kHour}, .commands = kServe, .section = kRetries,
     .help = "How long such a worker is left alone before one request tries it again."},

    // Health
    {.name = "health-check-interval", .type = kDuration, .fallback = "2s",
     .range = {50 * kMillisecond, kHour}, .commands = kServe, .section = kHealth,
     .help = "Time between two health checks of a worker."},
    {.name = "health-check-timeout", .type = kDuration, .fallback = "2s",
     .range = {10 * kMillisecond, kHour}, .commands = kServe, .section = kHealth,
     .help = "How long a worker may take to answer a health check."},
    {.name = "health-check-failures", .type = kInteger, .fallback = "2", .range = {1, 1000},
     .commands = kServe, .section = kHealth,
     .help = "Failed checks in a row after which a worker is unhealthy."},
    {.name = "health-check-path", .type = kText, .fallback = "/health", .commands = kServe,
     .section = kHealth, .placeholder = "PATH",
     .help = "Path that a health check asks for."},
    {.name = "engine-load-interval", .type = kDuration, .fallback = "2s", .range = {0, kHour},
     .commands = kServe, .section = kHealth,
     .help = "Time between two questions to a worker about its capacity and load, for TensorRT-LLM, "
             "whose answer can be read only once, at least 10s; 0 asks only once, when a worker "
             "comes."},

    // Security
    {.name = "tls-cert", .type = kText, .fallback = "", .commands = kServe, .section = kSecurity,
     .placeholder = "FILE", .dynamo = {{"DYN_TLS_CERT_PATH"}}, .aliases = {"tls-cert-path"},
     .help = "Certificate chain in PEM; with tls-key, the port speaks HTTPS."},
    {.name = "tls-key", .type = kText, .fallback = "", .commands = kServe, .section = kSecurity,
     .placeholder = "FILE", .dynamo = {{"DYN_TLS_KEY_PATH"}}, .aliases = {"tls-key-path"},
     .help = "Private key in PEM that belongs to tls-cert."},
    {.name = "api-key", .type = kSecretList, .fallback = "", .commands = kServe,
     .section = kSecurity,
     .help = "Client keys, of which a request must present one as a bearer token; without any, "
             "everyone may ask."},
    {.name = "api-keys-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "FILE",
     .help = "File with more client keys, one per line."},
    {.name = "admin-key", .type = kSecret, .fallback = "", .commands = kServe,
     .section = kSecurity,
     .help = "Key that the admin and debug routes ask for."},
    {.name = "api-key", .type = kSecret, .fallback = "", .commands = kMock, .section = kSecurity,
     .help = "Key that requests must present as a bearer token."},

    // Answers
    {.name = "model", .type = kList, .fallback = "mock-model", .commands = kMock,
     .section = kAnswers, .placeholder = "NAME...",
     .help = "Models it claims to serve."},
    {.name = "lora", .type = kList, .fallback = "", .commands = kMock, .section = kAnswers,
     .placeholder = "NAME...",
     .help = "Adapters of the first model, each of which can be asked for by its name."},
    {.name = "engine", .type = kChoice, .fallback = "vllm", .choices = kEngines,
     .commands = kMock, .section = kAnswers, .placeholder = "ENGINE",
     .help = "Engine whose routes and answers are imitated."},
    {.name = "name", .type = kText, .fallback = "", .commands = kMock, .section = kAnswers,
     .help = "Who it says it is in its answers; the port if empty."},
    {.name = "tokens", .type = kInteger, .fallback = "32", .range = {0, kMillion},
     .commands = kMock, .section = kAnswers,
     .help = "Length of an answer whose request names none."},
    {.name = "cached-tokens-report", .type = kFlag, .fallback = "true", .commands = kMock,
     .section = kAnswers,
     .help = "Tell in the usage how many tokens of a prompt were found in the cache, as vllm does "
             "with --enable-prompt-tokens-details and sglang with --enable-cache-report."},
    {.name = "force-usage", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kAnswers,
     .help = "Tell the usage at the end of every stream, whether its client asked for it or not, as "
             "vllm does with --enable-force-include-usage."},
    {.name = "usage-with-choices", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kAnswers,
     .help = "Tell the usage of a stream in its last event that has choices, not in an event of its "
             "own."},
    {.name = "first-token-delay", .type = kDuration, .fallback = "50ms", .range = {0, kHour},
     .commands = kMock, .section = kAnswers,
     .help = "Pause before the first token of a paced answer."},
    {.name = "token-interval", .type = kDuration, .fallback = "10ms", .range = {0, kHour},
     .commands = kMock, .section = kAnswers,
     .help = "Pause between the tokens of a paced answer."},
    {.name = "chunk-bytes", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kAnswers,
     .help = "Pad every token of a paced answer to so many bytes."},

    // Simulation
    {.name = "profile", .type = kChoice, .fallback = "h200-llama-3.1-8b", .choices = kProfiles,
     .commands = kMock | kDemo, .section = kSimulation, .placeholder = "PROFILE",
     .help = "Whose step times the simulated engine has; paced simulates none and answers every "
             "request at its own pace."},
    {.name = "speedup", .type = kNumber, .fallback = "1", .range = {0.001, kMillion},
     .commands = kMock | kDemo, .section = kSimulation,
     .help = "How many times faster than its profile the engine is."},
    {.name = "block-size", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kMock, .section = kSimulation,
     .help = "Tokens per block of the KV cache; 0 means the engine's own default: 16 for vllm, 1 "
             "for sglang, 32 for trtllm."},
    {.name = "num-blocks", .type = kInteger, .fallback = "0", .range = {0, 16 * kMillion},
     .commands = kMock, .section = kSimulation,
     .help = "Blocks of each rank's KV cache, one of which is reserved; 0 means as many as hold "
             "262144 tokens."},
    {.name = "num-blocks", .type = kInteger, .fallback = "1024", .range = {0, 16 * kMillion},
     .commands = kDemo, .section = kSimulation,
     .help = "Blocks of each worker's KV cache, one of which is reserved; 0 means as many as hold "
             "262144 tokens."},
    {.name = "max-num-seqs", .type = kInteger, .fallback = "256", .range = {1, 65536},
     .commands = kMock, .section = kSimulation,
     .help = "Sequences that a rank runs at once."},
    {.name = "max-num-batched-tokens", .type = kInteger, .fallback = "8192",
     .range = {1, kMillion}, .commands = kMock, .section = kSimulation,
     .help = "Tokens that a step of a rank computes at most."},
    {.name = "dp-size", .type = kInteger, .fallback = "1", .range = {1, 64},
     .commands = kMock, .section = kSimulation,
     .help = "Data-parallel ranks, each with its own scheduler and KV cache."},
    {.name = "iter-stats", .type = kChoice, .fallback = "on", .choices = kSwitch,
     .commands = kMock, .section = kSimulation, .placeholder = "WHETHER",
     .help = "Whether trtllm keeps the statistics of its iterations for GET /metrics; an engine "
             "that was not told to has an empty list there."},
    {.name = "prefix-caching", .type = kFlag, .fallback = "true", .commands = kMock,
     .section = kSimulation,
     .help = "Keep what was computed for the prompts that begin alike; without it nothing is ever "
             "found, and there are no KV events."},
    {.name = "instances", .type = kInteger, .fallback = "1", .range = {1, 256}, .commands = kMock,
     .section = kSimulation,
     .help = "Engines in this process, each with a port of its own: those after --port, or free "
             "ones; together they count what one computes though another had it."},
    {.name = "seed", .type = kInteger, .fallback = "1", .range = {0, 0x1p53}, .commands = kMock,
     .section = kSimulation,
     .help = "Seed of the words of answers and of the faults, so that a run can be repeated."},

    // KV events of the workers
    {.name = "kv-events", .type = kChoice, .fallback = "on", .choices = kSwitch,
     .commands = kServe, .section = kEvents, .placeholder = "WHETHER",
     .help = "Whether the workers' KV events are followed, so that it is known what they hold."},
    {.name = "kv-events-port", .type = kInteger, .fallback = "5557", .range = {1, 65535},
     .commands = kServe, .section = kEvents, .placeholder = "PORT",
     .help = "Port on a worker's host that its first rank publishes KV events on, the next ranks on "
             "those after it, where neither its entry nor the engine names one."},
    {.name = "kv-events-bind", .type = kText, .fallback = "", .commands = kServe,
     .section = kEvents, .placeholder = "ENDPOINT",
     .help = "Where engines that connect their publisher to the router find it, for example "
             "tcp://*:5557; they are told apart by kv_events_topic."},
    {.name = "kv-events-replay-timeout", .type = kDuration, .fallback = "5s",
     .range = {10 * kMillisecond, kHour}, .commands = kServe, .section = kEvents,
     .help = "How long an engine may take to replay missing KV events before they count as lost."},
    {.name = "kv-events-poll-interval", .type = kDuration, .fallback = "250ms",
     .range = {kMillisecond, kHour}, .commands = kServe, .section = kEvents,
     .help = "Pause between two questions to an engine whose KV events are polled (TensorRT-LLM)."},
    {.name = "kv-cache-block-size", .type = kInteger, .fallback = "0", .range = {0, 1 << 20},
     .commands = kServe, .section = kEvents, .placeholder = "TOKENS",
     .dynamo = {{"DYN_KV_CACHE_BLOCK_SIZE"}},
     .help = "Tokens per block that every worker must have, where somebody insists; 0 finds it out "
             "from the workers, and nobody needs to set it."},
    {.name = "block-size-conflict", .type = kChoice, .fallback = "refuse",
     .choices = kConflictRules, .commands = kServe, .section = kEvents, .placeholder = "WHAT",
     .help = "What happens when workers of one model have different block sizes: refuse stops at the "
             "start and later admits nobody who differs; mixed serves all of them side by side."},
    {.name = "block-size-wait", .type = kDuration, .fallback = "10s", .range = {0, kHour},
     .commands = kServe, .section = kEvents,
     .help = "How long requests and readiness wait for the workers to say how large their blocks "
             "are."},
    {.name = "index-max-bytes", .type = kBytes, .fallback = "4GiB",
     .range = {16 * kMiB, 1024 * kGiB}, .commands = kServe, .section = kEvents,
     .help = "Memory that the index of the workers' caches may hold; a rank that needs more forgets "
             "the ends of its longest prefixes first."},

    // KV events of the simulated engine
    {.name = "kv-events", .type = kChoice, .fallback = "on", .choices = kSwitch,
     .commands = kMock, .section = kSimulation, .placeholder = "WHETHER",
     .help = "Whether the simulated engine tells of its KV cache, as its engine does."},
    {.name = "wire", .type = kText, .fallback = "", .commands = kMock, .section = kSimulation,
     .placeholder = "VERSION",
     .help = "Release whose way of writing KV events is imitated: of vllm since 0.9.0, of sglang "
             "since 0.5.6, for trtllm poll or stream; the newest, or poll, if empty."},
    {.name = "wire-hashes", .type = kChoice, .fallback = "int", .choices = kHashForms,
     .commands = kMock, .section = kSimulation, .placeholder = "FORM",
     .help = "Block hashes as integers or, for vllm since 0.10.2, as 32 raw bytes."},
    {.name = "kv-events-port", .type = kInteger, .fallback = "0", .range = {0, 65535},
     .commands = kMock, .section = kSimulation, .placeholder = "PORT",
     .help = "Port that the first rank publishes KV events on, the next ranks on those after it; 0 "
             "picks free ones, which the engine's own pages tell."},
    {.name = "kv-events-replay-port", .type = kText, .fallback = "0", .commands = kMock,
     .section = kSimulation, .placeholder = "PORT",
     .help = "Port that the first rank replays KV events on, the next ranks on those after it; 0 "
             "picks free ones, off replays nothing."},
    {.name = "kv-events-topic", .type = kText, .fallback = "", .commands = kMock,
     .section = kSimulation, .placeholder = "TOPIC",
     .help = "Topic that KV events are published under."},
    {.name = "kv-events-buffer", .type = kInteger, .fallback = "10000", .range = {0, kMillion},
     .commands = kMock, .section = kSimulation,
     .help = "Batches of KV events kept for replay, or events kept until they are polled."},
    {.name = "kv-events-connect", .type = kText, .fallback = "", .commands = kMock,
     .section = kSimulation, .placeholder = "ENDPOINT",
     .help = "Publish to a subscriber that is bound here (the next ranks to the ports after it) "
             "instead of binding a port."},

    // Faults
    {.name = "fail-rate", .type = kNumber, .fallback = "0", .range = {0, 1}, .commands = kMock,
     .section = kFaults,
     .help = "Share of requests answered with 500."},
    {.name = "hang-rate", .type = kNumber, .fallback = "0", .range = {0, 1}, .commands = kMock,
     .section = kFaults,
     .help = "Share of requests accepted and never answered."},
    {.name = "die-after-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Close the connection after so many tokens; 0 means never."},
    {.name = "drain-abort", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kFaults,
     .help = "Answer 200 with finish_reason abort and no tokens, as an engine that is draining."},
    {.name = "busy", .type = kFlag, .fallback = "false", .commands = kMock, .section = kFaults,
     .help = "Answer 503 to every POST under /v1/."},
    {.name = "refuse", .type = kFlag, .fallback = "false", .commands = kMock, .section = kFaults,
     .help = "Close every connection at once."},
    {.name = "slow-start", .type = kDuration, .fallback = "0", .range = {0, kDay},
     .commands = kMock, .section = kFaults,
     .help = "Answer 503 to health checks for so long."},
    {.name = "block-size-report", .type = kText, .fallback = "", .commands = kMock,
     .section = kFaults, .placeholder = "TOKENS",
     .help = "Block size that its own pages claim, whatever it is, as a stale label does or one "
             "that leaves context parallelism out; none leaves it out, empty is the truth."},
    {.name = "report-delay", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kMock, .section = kFaults,
     .help = "Answer so late on the pages where engines tell about themselves: /metrics, "
             "/server_info, /get_server_info, /prometheus/metrics, /kv_event_sources."},
    {.name = "prefix-caching-report", .type = kChoice, .fallback = "truth",
     .choices = kCachingReports, .commands = kMock, .section = kFaults, .placeholder = "WHAT",
     .help = "What its own pages tell about --prefix-caching: the truth, or nothing."},
    {.name = "prompt-fault", .type = kChoice, .fallback = "none", .choices = kPromptFaults,
     .commands = kMock, .section = kFaults, .placeholder = "FAULT",
     .help = "Compute with other tokens than its tokenizer gives for texts and chats: bos puts one "
             "in front, template puts three after the first eight, vocabulary gives every token "
             "another id."},
    {.name = "on-sigterm", .type = kChoice, .fallback = "exit", .choices = kDepartures,
     .commands = kMock, .section = kFaults, .placeholder = "HOW",
     .help = "How it leaves: exit at once; abort answers new requests with finish_reason abort, "
             "lets the others finish and exits; silent closes the listener, leaves open streams "
             "open without another word, and exits at the second signal."},

    {.name = "kv-drop-every", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Do not publish every Nth batch of KV events, though it can be replayed; 0 means "
             "never."},
    {.name = "kv-lose-every", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Neither publish nor replay every Nth batch of KV events; 0 means never."},
    {.name = "kv-delay", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kMock, .section = kFaults,
     .help = "Tell of the KV cache so late."},
    {.name = "kv-silent", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kFaults,
     .help = "Claim to publish KV events, but publish and replay none."},
    {.name = "kv-events-fault", .type = kChoice, .fallback = "none", .choices = kEventFaults,
     .commands = kMock, .section = kFaults, .placeholder = "FAULT",
     .help = "What its KV events leave out: no-removals that blocks have left the cache, hide-salt "
             "and hide-lora that prompts of different salts or adapters are kept apart."},
    {.name = "kv-block-size-label", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kMock, .section = kFaults,
     .help = "Claim this block size in KV events, whatever it is; 0 means the truth."},
    {.name = "kv-restart-after", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Act once as if the process had been restarted after so many batches of KV events: "
             "the cache is empty, sequence numbers begin at 0, there is nothing to replay; 0 means "
             "never."},
    {.name = "kv-restart-block-size", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kMock, .section = kFaults,
     .help = "Tokens per block after the restart of --kv-restart-after, which the pages tell as "
             "well; 0 means as before."},

    // Traffic
    {.name = "concurrency", .type = kInteger, .fallback = "12", .range = {1, 10000},
     .commands = kDemo, .section = kTraffic,
     .help = "People who have a conversation with each router at once."},
    {.name = "think-time", .type = kDuration, .fallback = "1s", .range = {0, kHour},
     .commands = kDemo, .section = kTraffic,
     .help = "Average pause between an answer and the next message of its conversation."},
    {.name = "sessions", .type = kFlag, .fallback = "false", .commands = kDemo,
     .section = kTraffic,
     .help = "Name every conversation in X-Session-ID, so that its turns stay with one worker."},
    {.name = "seconds", .type = kInteger, .fallback = "0", .range = {0, kYear}, .commands = kDemo,
     .section = kTraffic,
     .help = "Stop after so many seconds; 0 runs until interrupted."},

    // Listening to KV events
    {.name = "endpoints", .type = kList, .fallback = "", .commands = kListen, .section = kEvents,
     .placeholder = "ENDPOINT...",
     .help = "What to listen to: tcp://HOST:PORT or ipc://PATH of a publisher, or http://HOST:PORT "
             "of a worker, which is asked where its ranks publish.",
     .positional = true},
    {.name = "bind", .type = kText, .fallback = "", .commands = kListen, .section = kEvents,
     .placeholder = "ENDPOINT",
     .help = "Wait at this address, such as tcp://*:5557, for engines that dial out."},
    {.name = "topic", .type = kText, .fallback = "", .commands = kListen, .section = kEvents,
     .placeholder = "PREFIX",
     .help = "Show topics that begin like this; if empty, the topic that the worker names, or "
             "all."},
    {.name = "replay", .type = kFlag, .fallback = "false", .commands = kListen, .section = kEvents,
     .help = "First show what the engine has kept for replay."},
    {.name = "replay-endpoint", .type = kText, .fallback = "", .commands = kListen,
     .section = kEvents, .placeholder = "ENDPOINT",
     .help = "Where to ask for a replay, for a tcp:// or ipc:// endpoint that cannot be asked; "
             "implies --replay."},
    {.name = "drain", .type = kFlag, .fallback = "false", .commands = kListen, .section = kEvents,
     .help = "Also poll TensorRT-LLM, whose queue hands out every event once: a router that polls "
             "the same engine loses what is shown here."},
    {.name = "api-key", .type = kSecret, .fallback = "", .commands = kListen, .section = kEvents,
     .help = "Key that the worker is asked with."},

    // What listen prints, and for how long
    {.name = "json", .type = kFlag, .fallback = "false", .commands = kListen, .section = kOutput,
     .help = "Print one JSON object per line and nothing else; hashes are hexadecimal strings."},
    {.name = "show-tokens", .type = kFlag, .fallback = "false", .commands = kListen,
     .section = kOutput, .aliases = {"tokens"},
     .help = "Show token ids, from which prompts can be read; they are never shown without this."},
    {.name = "interval", .type = kDuration, .fallback = "5s", .range = {0, kDay},
     .commands = kListen, .section = kOutput,
     .help = "Time between two summaries; 0 prints only the last one."},
    {.name = "count", .type = kInteger, .fallback = "0", .range = {0, 0x1p53}, .commands = kListen,
     .section = kOutput,
     .help = "End after so many batches; 0 means never."},
    {.name = "for", .type = kDuration, .fallback = "0", .range = {0, kYear}, .commands = kListen,
     .section = kOutput,
     .help = "End after so long; 0 means never."},
    {.name = "wait", .type = kDuration, .fallback = "0", .range = {0, kYear}, .commands = kListen,
     .section = kOutput,
     .help = "Fail, and say what to check, when nothing has come for so long from the start; 0 "
             "means never."},

    // Showing tokens
    {.name = "input", .type = kList, .fallback = "", .commands = kTokenize, .section = kTokens,
     .placeholder = "[FILE]",
     .help = "What to read: a text, or a request to /v1/chat/completions or /v1/completions as "
             "JSON; without a file, or for -, standard input.",
     .positional = true},
    {.name = "model-path", .type = kText, .fallback = "", .commands = kTokenize,
     .section = kTokens, .placeholder = "DIR",
     .help = "Folder with tokenizer.json, tokenizer_config.json and the chat template."},
    {.name = "tokenizer-path", .type = kText, .fallback = "", .commands = kTokenize,
     .section = kTokens, .placeholder = "PATH",
     .help = "Another tokenizer.json, or its folder, in place of the one in model-path."},
    {.name = "engine", .type = kChoice, .fallback = "vllm", .choices = kEngines,
     .commands = kTokenize, .section = kTokens, .placeholder = "NAME",
     .help = "Whose way of preparing chats for the template to follow."},
    {.name = "as", .type = kChoice, .fallback = "auto", .choices = kInputForms,
     .commands = kTokenize, .section = kTokens, .placeholder = "FORM",
     .help = "What the input is; auto: a request if it is a JSON object with messages or prompt."},
    {.name = "special-tokens", .type = kFlag, .fallback = "true", .commands = kTokenize,
     .section = kTokens,
     .help = "Add what the tokenizer puts around a text, such as BOS; requests say for themselves."},
    {.name = "literal-user-text", .type = kFlag, .fallback = "false", .commands = kTokenize,
     .section = kTokens,
     .help = "Special tokens in user messages stay text, as with serve --literal-user-text."},
    {.name = "block-size", .type = kInteger, .fallback = "16", .range = {1, 65536},
     .commands = kTokenize, .section = kTokens,
     .help = "Tokens per block of the key chain; must match the backend: vLLM 16, TensorRT-LLM 32, "
             "SGLang 1."},
    {.name = "lora", .type = kText, .fallback = "", .commands = kTokenize, .section = kTokens,
     .placeholder = "NAME",
     .help = "Adapter whose keys to show."},
    {.name = "cache-salt", .type = kText, .fallback = "", .commands = kTokenize,
     .section = kTokens,
     .help = "Salt of the keys, where the input is no request that has one."},
    {.name = "json", .type = kFlag, .fallback = "false", .commands = kTokenize, .section = kOutput,
     .help = "Print one JSON object per input and nothing else; keys are hexadecimal strings."},
    {.name = "lines", .type = kFlag, .fallback = "false", .commands = kTokenize,
     .section = kOutput,
     .help = "Every line of the input is one JSON value: a string is a text, an object a request."},

    // What doctor looks at
    {.name = "url", .type = kText, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "URL", .aliases = {"fathom-url"},
     .help = "A running Fathom: its /health, /metrics, /debug/index and /debug/decisions are "
             "read."},
    {.name = "worker", .type = kList, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "URL...",
     .help = "Engines, asked directly: their pages about cache, events and load."},
    {.name = "dynamo-url", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSources, .placeholder = "URL",
     .help = "A frontend of Dynamo: its /health and /metrics are read."},
    {.name = "logs", .type = kFiles, .fallback = "", .commands = kDoctor, .section = kSources,
     .aliases = {"log"},
     .help = "Logs of Fathom, of Dynamo's frontend and workers, of engines; - is standard input."},
    {.name = "manifest", .type = kFiles, .fallback = "", .commands = kDoctor,
     .section = kSources, .aliases = {"manifests"},
     .help = "Deployment files: Kubernetes YAML and what kubectl get -o yaml prints, Helm values, "
             "compose files, engine files, TOML, command lines; - is standard input."},
    {.name = "nvidia-smi", .type = kFiles, .fallback = "", .commands = kDoctor,
     .section = kSources,
     .help = "Output of nvidia-smi on the workers; - is standard input."},
    {.name = "dcgm", .type = kFiles, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "URL|FILE...",
     .help = "DCGM exporters, or pages of theirs: memory of each GPU."},
    {.name = "listen", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kDoctor, .section = kSources,
     .help = "Subscribe to the workers' KV events for so long and measure them; 0 does not."},
    {.name = "probe", .type = kInteger, .fallback = "0", .range = {0, 256}, .commands = kDoctor,
     .section = kSources,
     .help = "Send small conversations through the router, one at a time and then more, up to so "
             "many at once, to see whether follow-up turns get faster; not read-only, for it makes "
             "the engines work."},
    {.name = "probe-model", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSources, .placeholder = "NAME",
     .help = "Model that the probe asks for; empty: the first that the router lists."},
    {.name = "drain", .type = kFlag, .fallback = "false", .commands = kDoctor,
     .section = kSources,
     .help = "Also read pages of TensorRT-LLM that hand out everything once: a router that polls "
             "the same engine loses what is read here."},
    {.name = "api-key", .type = kSecret, .fallback = "", .commands = kDoctor, .section = kSources,
     .help = "Key that routers are asked with, as a client of theirs."},
    {.name = "worker-api-key", .type = kSecret, .fallback = "", .commands = kDoctor,
     .section = kSources,
     .help = "Key that engines are asked with."},
    {.name = "admin-key", .type = kSecret, .fallback = "", .commands = kDoctor,
     .section = kSources,
     .help = "Key of Fathom's admin pages."},
    {.name = "ca-file", .type = kText, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "FILE",
     .help = "Verify https:// routers and workers against these certificates instead of the "
             "system's."},
    {.name = "timeout", .type = kDuration, .fallback = "5s", .range = {0.1, kHour},
     .commands = kDoctor, .section = kSources,
     .help = "Longest wait for one answer."},

    // Kubernetes
    {.name = "kube", .type = kFlag, .fallback = "false", .commands = kDoctor, .section = kCluster,
     .help = "Read the objects of a namespace and the logs of its pods through the Kubernetes API, "
             "with GET alone."},
    {.name = "kubeconfig", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kCluster, .placeholder = "FILE",
     .help = "Whom to ask and as whom; empty: $KUBECONFIG, ~/.kube/config, or the account of the "
             "pod that this runs in."},
    {.name = "kube-context", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kCluster, .placeholder = "NAME",
     .help = "Context of the kubeconfig; empty: its current one."},
    {.name = "namespace", .type = kText, .fallback = "", .commands = kDoctor, .section = kCluster,
     .placeholder = "NAME",
     .help = "Namespace to read; empty: the context's, or the pod's own."},
    {.name = "kube-log-lines", .type = kInteger, .fallback = "10000", .range = {0, kMillion},
     .commands = kDoctor, .section = kCluster,
     .help = "Last lines of each pod's log to read; 0 reads no logs."},

    // Model and memory
    {.name = "model-config", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSizing, .placeholder = "FILE",
     .help = "The model's config.json, from which the cost of a cached token is reckoned."},
    {.name = "model-path", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSizing, .placeholder = "DIR",
     .help = "Folder of the model: its config.json, and its tokenizer, which is held against the "
             "workers'."},
    {.name = "engine", .type = kChoice, .fallback = "any", .choices = kEnginesOrAny,
     .commands = kDoctor, .section = kSizing, .placeholder = "NAME",
     .help = "Whose memory formula to use, where nothing else says which engine it is."},
    {.name = "gpu", .type = kText, .fallback = "", .commands = kDoctor, .section = kSizing,
     .placeholder = "NAME|SIZE",
     .help = "The GPU, by name (H100, A100-40GB, L40S) or by memory (80GiB)."},
    {.name = "tp", .type = kInteger, .fallback = "0", .range = {0, 1024}, .commands = kDoctor,
     .section = kSizing, .aliases = {"tensor-parallel-size"},
     .help = "GPUs that share each layer; 0: as manifests say, else 1."},
    {.name = "pp", .type = kInteger, .fallback = "0", .range = {0, 1024}, .commands = kDoctor,
     .section = kSizing, .aliases = {"pipeline-parallel-size"},
     .help = "Stages that the layers are divided into; 0: as manifests say, else 1."},
    {.name = "dp", .type = kInteger, .fallback = "0", .range = {0, 1024}, .commands = kDoctor,
     .section = kSizing, .aliases = {"data-parallel-size"},
     .help = "Data-parallel ranks of a worker; 0: as manifests say, else 1."},
    {.name = "kv-dtype", .type = kText, .fallback = "", .commands = kDoctor, .section = kSizing,
     .placeholder = "TYPE", .aliases = {"kv-cache-dtype"},
     .help = "Type of cached values: auto, bf16, fp8, fp8_ds_mla, nvfp4; empty: as manifests say, "
             "else the model's."},
    {.name = "weights", .type = kBytes, .fallback = "0", .range = {0, 64 * kTiB},
     .commands = kDoctor, .section = kSizing,
     .help = "Size of the model's weights; 0: from the index beside config.json, else reckoned."},
    {.name = "memory-fraction", .type = kNumber, .fallback = "0", .range = {0, 1},
     .commands = kDoctor, .section = kSizing,
     .aliases = {"gpu-memory-utilization", "mem-fraction-static"},
     .help = "Share of GPU memory that the engine may use, in its own terms; 0: as manifests say, "
             "else its default."},
    {.name = "block-size", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kDoctor, .section = kSizing,
     .help = "Tokens per block of the engine, for sizing; 0: as seen, else its default."},
    {.name = "max-num-seqs", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Sequences that an engine runs at once; 0: as seen."},
    {.name = "replicas", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Workers that share the load; 0: as seen, else 1."},
    {.name = "concurrency", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Requests in flight on the whole fleet; 0: as seen."},
    {.name = "prompt-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Mean length of a prompt; 0: as seen."},
    {.name = "output-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Mean length of an answer; 0: as seen."},
    {.name = "request-rate", .type = kNumber, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Requests per second on the whole fleet; 0: as seen."},
    {.name = "turn-gap", .type = kDuration, .fallback = "0", .range = {0, kDay},
     .commands = kDoctor, .section = kSizing,
     .help = "Time between two turns of a conversation; 0: 30 s, and the report says so."},

    // What doctor and lint print
    {.name = "format", .type = kChoice, .fallback = "text", .choices = kReportFormats,
     .commands = kDoctor, .section = kOutput, .placeholder = "FORMAT",
     .help = "How to print the report; json, markdown and html print nothing else."},
    {.name = "output", .type = kText, .fallback = "", .commands = kDoctor, .section = kOutput,
     .placeholder = "FILE",
     .help = "Write the report to this file instead of standard output."},

    // What lint checks, and how it says so
    {.name = "files", .type = kFiles, .fallback = "", .commands = kLint, .section = kSources,
     .help = "Files and folders to check; - is standard input.",
     .positional = true},
    {.name = "format", .type = kChoice, .fallback = "text", .choices = kLogFormats,
     .commands = kLint, .section = kOutput, .placeholder = "FORMAT",
     .help = "Findings for people, or one JSON object."},
    {.name = "diff", .type = kFlag, .fallback = "false", .commands = kLint, .section = kOutput,
     .help = "Print the changes that would mend what can be mended safely, for patch -p1."},
    {.name = "fix", .type = kFlag, .fallback = "false", .commands = kLint, .section = kOutput,
     .help = "Write these changes into the files."},

    // Logging
    {.name = "log-level", .type = kChoice, .fallback = "warn", .choices = kLogLevels,
     .commands = kDemo, .section = kLogging, .placeholder = "LEVEL",
     .help = "Least severe records to write."},
    {.name = "log-level", .type = kChoice, .fallback = "info", .choices = kLogLevels,
     .commands = kServe | kMock, .section = kLogging, .placeholder = "LEVEL",
     .help = "Least severe records to write."},
    {.name = "log-format", .type = kChoice, .fallback = "text", .choices = kLogFormats,
     .commands = kServe | kMock, .section = kLogging, .placeholder = "FORMAT",
     .help = "Records for people or for machines."},
    {.name = "log-selections", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kLogging,
     .help = "Log the choice of a worker for every request: its cost, cached blocks and the size of "
             "the index."},
    {.name = "log-requests", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kLogging,
     .help = "Write one INFO record per request."},
};
// clang-format on

}  // namespace

std::span<const Option> Options() { return kOptions; }

}  // namespace fathom
