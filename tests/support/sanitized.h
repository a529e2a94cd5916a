/* sanitized.h: which sanitizer this build has: gcc and clang say it in
 * different ways. */
#ifndef PL_TESTS_SUPPORT_SANITIZED_H
#define PL_TESTS_SUPPORT_SANITIZED_H

#ifdef __has_feature
#define SANITIZED_HAS(feature) __has_feature(feature)
#else
#define SANITIZED_HAS(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZED_HAS(address_sanitizer)
#define SANITIZED_ADDRESS 1
#else
#define SANITIZED_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZED_HAS(thread_sanitizer)
#define SANITIZED_THREAD 1
#else
#define SANITIZED_THREAD 0
#endif

#endif
