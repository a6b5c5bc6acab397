// SPDX-License-Identifier: Apache-2.0
#include "failure.h"

#include <cstring>

#include <bpf/libbpf.h>

namespace enforcer
{

static const char *libbpf_error_name(int error)
{
	switch (error) {
	case LIBBPF_ERRNO__LIBELF:
		return "LIBBPF_LIBELF";
	case LIBBPF_ERRNO__FORMAT:
		return "LIBBPF_FORMAT";
	case LIBBPF_ERRNO__KVERSION:
		return "LIBBPF_KVERSION";
	case LIBBPF_ERRNO__ENDIAN:
		return "LIBBPF_ENDIAN";
	case LIBBPF_ERRNO__RELOC:
		return "LIBBPF_RELOC";
	case LIBBPF_ERRNO__LOAD:
		return "LIBBPF_LOAD";
	case LIBBPF_ERRNO__VERIFY:
		return "LIBBPF_VERIFY";
	case LIBBPF_ERRNO__PROG2BIG:
		return "LIBBPF_PROG2BIG";
	case LIBBPF_ERRNO__KVER:
		return "LIBBPF_KVER";
	default:
		return nullptr;
	}
}

std::string error_name(int error)
{
	/* The kernel's own ENOTSUPP leaks to user space, where it has no name. */
	if (error == 524)
		return "ENOTSUPP";
	if (const char *name = strerrorname_np(error))
		return name;
	if (const char *name = libbpf_error_name(error))
		return name;
	return "E" + std::to_string(error);
}

std::string error_text(int error)
{
	char text[256] = "";
	if (error == 524)
		return "not supported by this kernel";
	libbpf_strerror(error, text, sizeof(text));
	return text;
}

void fail(int error, const std::string &operation, const std::string &subject, const std::string &reason)
{
	throw Failure{error, operation,
		      operation + " " + subject + ": " + (reason.empty() ? error_text(error) : reason)};
}

Napi::Error to_javascript(Napi::Env env, const Failure &failure)
{
	const std::string code = error_name(failure.error);
	Napi::Error error = Napi::Error::New(env, failure.message + " (" + code + ")");

	error.Set("code", Napi::String::New(env, code));
	error.Set("operation", Napi::String::New(env, failure.operation));
	if (!failure.verifier_log.empty())
		error.Set("verifierLog", Napi::String::New(env, failure.verifier_log));
	if (failure.written)
		error.Set("written", Napi::Number::New(env, *failure.written));
	return error;
}

} // namespace enforcer
