// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_FAILURE_H
#define RUNTIME_ENFORCER_FAILURE_H

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include <napi.h>

namespace enforcer
{

/* A failed operation on its way to JavaScript; thrown on any thread. */
struct Failure {
	int error;	       /* errno, or one of libbpf's own numbers from 4000 on */
	std::string operation; /* the function of the JavaScript face */
	std::string message;   /* names the object; the errno's name is added behind it */
	std::string verifier_log = {};
	std::optional<uint32_t> written = {};
};

/* 'EPERM', 'LIBBPF_FORMAT', or 'E4711' for a number without a name. */
std::string error_name(int error);

/* The system's words for an errno or one of libbpf's numbers. */
std::string error_text(int error);

/* Throws a Failure that says "<operation> <subject>: <reason> (<errno name>)"; the reason defaults to the
 * system's words. */
[[noreturn]] void fail(int error, const std::string &operation, const std::string &subject,
		       const std::string &reason = "");

/* The error that JavaScript sees: message, code, operation, and verifierLog and written where known. */
Napi::Error to_javascript(Napi::Env env, const Failure &failure);

/* Wraps an exported function, so that nothing but a JavaScript exception leaves it. */
template <Napi::Value (*function)(const Napi::CallbackInfo &)>
Napi::Value guarded(const Napi::CallbackInfo &info)
{
	try {
		return function(info);
	} catch (const Failure &failure) {
		throw to_javascript(info.Env(), failure);
	} catch (const Napi::Error &) {
		throw;
	} catch (const std::exception &unexpected) {
		throw Napi::Error::New(info.Env(), unexpected.what());
	}
}

} // namespace enforcer

#endif
