// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <cmath>

namespace enforcer
{

static constexpr double UINT32_LIMIT = 4294967296.0;

[[noreturn]] static void wrong_type(Napi::Env env, const std::string &name, const char *expected)
{
	throw Napi::TypeError::New(env, name + " must be " + expected);
}

std::string string_argument(const Napi::Value &value, const char *name)
{
	if (!value.IsString())
		wrong_type(value.Env(), name, "a string");
	std::string text = value.As<Napi::String>().Utf8Value();
	if (text.find('\0') != std::string::npos)
		wrong_type(value.Env(), name, "a string without a zero byte");
	return text;
}

uint32_t number_argument(const Napi::Value &value, const char *name)
{
	if (value.IsNumber()) {
		const double number = value.As<Napi::Number>().DoubleValue();
		if (number >= 0 && number < UINT32_LIMIT && number == std::floor(number))
			return static_cast<uint32_t>(number);
	}
	wrong_type(value.Env(), name, "a whole number from 0 to 4294967295");
}

Bytes bytes_argument(const Napi::Value &value, const char *name)
{
	napi_typedarray_type type = napi_int8_array;
	size_t size = 0;
	void *data = nullptr;

	if (!value.IsTypedArray() ||
	    napi_get_typedarray_info(value.Env(), value, &type, &size, &data, nullptr, nullptr) != napi_ok ||
	    type != napi_uint8_array)
		wrong_type(value.Env(), name, "a Uint8Array");
	return {static_cast<const uint8_t *>(data), size};
}

void require_size(Napi::Env env, const std::string &name, size_t size, size_t expected)
{
	if (size != expected)
		throw Napi::RangeError::New(env, name + " has " + std::to_string(size) + " bytes, expected " +
						     std::to_string(expected));
}

void each_property(const Napi::Value &value, const char *name,
		   const std::function<void(const std::string &, const Napi::Value &)> &visit)
{
	if (value.IsUndefined())
		return;
	if (!value.IsObject())
		wrong_type(value.Env(), name, "an object");
	const Napi::Object object = value.As<Napi::Object>();
	const Napi::Array keys = object.GetPropertyNames();
	for (uint32_t i = 0; i < keys.Length(); i++) {
		const std::string key = string_argument(keys.Get(i), name);
		visit(key, object.Get(key));
	}
}

} // namespace enforcer
