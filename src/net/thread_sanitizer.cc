// What the thread sanitizer cannot know about the libraries that this room owns.
//
// libzmq and OpenSSL hand memory from thread to thread with atomics and locks that the sanitizer does
// not see, because they were built without it: a certificate that two loops verify at once is decoded
// by the first, under OpenSSL's own lock. Compiled in, so that it holds for tests and program alike.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libzmq.so\nrace:libcrypto.so\n";
}
#endif
#endif
