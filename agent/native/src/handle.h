// SPDX-License-Identifier: Apache-2.0
/*
 * What JavaScript holds of a C++ object: an external with a type tag, so that a foreign value is a TypeError
 * and never a wild pointer. A type T has `static constexpr napi_type_tag tag`, `static constexpr const char
 * *kind`, and `bool may_be_collected() const`: false while losing the last reference must not end what the
 * object stands for (an attached program, a held lock).
 */
#ifndef RUNTIME_ENFORCER_HANDLE_H
#define RUNTIME_ENFORCER_HANDLE_H

#include <memory>
#include <string>

#include <napi.h>

namespace enforcer
{

template <typename T> Napi::Value wrap(Napi::Env env, std::shared_ptr<T> resource)
{
	using Holder = std::shared_ptr<T>;
	auto holder = std::make_unique<Holder>(std::move(resource));
	auto external = Napi::External<Holder>::New(env, holder.get(), [](Napi::Env, Holder *collected) {
		if ((*collected)->may_be_collected())
			delete collected;
	});
	holder.release();
	external.TypeTag(&T::tag);
	return external;
}

template <typename T> std::shared_ptr<T> unwrap(const Napi::Value &value)
{
	using Holder = std::shared_ptr<T>;
	if (!value.IsExternal() || !value.As<Napi::External<Holder>>().CheckTypeTag(&T::tag))
		throw Napi::TypeError::New(value.Env(), std::string("expected a handle of a ") + T::kind);
	return *value.As<Napi::External<Holder>>().Data();
}

} // namespace enforcer

#endif
