// SPDX-License-Identifier: Apache-2.0
/* Arguments from JavaScript: checked, and named in the error when they are not what they should be. */
#ifndef RUNTIME_ENFORCER_ARGUMENTS_H
#define RUNTIME_ENFORCER_ARGUMENTS_H

#include <cstdint>
#include <functional>
#include <string>

#include <napi.h>

namespace enforcer
{

/* A view of a Uint8Array's bytes; valid until JavaScript runs again. */
struct Bytes {
	const uint8_t *data;
	size_t size;
};

/* Throws a TypeError unless the value is a string without a zero byte. */
std::string string_argument(const Napi::Value &value, const char *name);

/* Throws a TypeError unless the value is a whole number from 0 to 2^32 - 1. */
uint32_t number_argument(const Napi::Value &value, const char *name);

/* Throws a TypeError unless the value is a Uint8Array (a Buffer is one). */
Bytes bytes_argument(const Napi::Value &value, const char *name);

/* Throws a RangeError that says "<name> has <size> bytes, expected <expected>". */
void require_size(Napi::Env env, const std::string &name, size_t size, size_t expected);

/* Calls visit(key, value) for each own property; throws a TypeError if the value is no object. Undefined has
 * none. */
void each_property(const Napi::Value &value, const char *name,
		   const std::function<void(const std::string &, const Napi::Value &)> &visit);

} // namespace enforcer

#endif
