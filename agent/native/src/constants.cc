// SPDX-License-Identifier: Apache-2.0
#include "constants.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <bpf/btf.h>

#include "failure.h"

namespace enforcer
{

static constexpr double SAFE_INTEGER_MAX = 9007199254740991.0;

NamedConstant constant_argument(const std::string &name, const Napi::Value &value)
{
	if (value.IsBoolean())
		return {name, false, true, value.As<Napi::Boolean>().Value() ? 1U : 0U};
	if (value.IsNumber()) {
		const double number = value.As<Napi::Number>().DoubleValue();
		if (std::fabs(number) <= SAFE_INTEGER_MAX && number == std::floor(number))
			return {name, number < 0, false, static_cast<uint64_t>(std::fabs(number))};
	}
	if (value.IsBigInt()) {
		/* A bigint that needs more than one word stays out: its word count exceeds the room. */
		int sign = 0;
		uint64_t words[2] = {};
		size_t count = 2;
		value.As<Napi::BigInt>().ToWords(&sign, &count, words);
		if (count <= 1)
			return {name, sign != 0, false, words[0]};
	}
	throw Napi::TypeError::New(
	    value.Env(), "constant '" + name + "' must be a boolean, a safe integer or a bigint of 64 bits");
}

/* The type behind const, volatile and typedef. */
static const btf_type *plain_type(const btf *btf, uint32_t id)
{
	const btf_type *type = btf__type_by_id(btf, id);
	while (type && (btf_is_mod(type) || btf_is_typedef(type)))
		type = btf__type_by_id(btf, type->type);
	return type;
}

static bool is_signed(const btf_type *type)
{
	return btf_is_int(type) ? (btf_int_encoding(type) & BTF_INT_SIGNED) != 0 : btf_kflag(type);
}

static bool fits(const NamedConstant &constant, size_t bytes, bool has_sign)
{
	const uint64_t all = bytes == 8 ? UINT64_MAX : (1ULL << (bytes * 8)) - 1;
	const uint64_t half = all / 2;

	if (constant.negative)
		return constant.magnitude == 0 || (has_sign && constant.magnitude <= half + 1);
	return constant.magnitude <= (has_sign ? half : all);
}

static void set_constant(const btf *btf, const NamedConstant &constant, uint8_t *rodata, size_t rodata_bytes,
			 const std::string &subject)
{
	const int32_t section_id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const btf_type *section =
	    section_id < 0 ? nullptr : btf__type_by_id(btf, static_cast<uint32_t>(section_id));
	const btf_var_secinfo *place = section ? btf_var_secinfos(section) : nullptr;
	const uint16_t places = section ? btf_vlen(section) : 0;

	for (uint16_t i = 0; i < places; i++, place++) {
		const btf_type *variable = btf__type_by_id(btf, place->type);
		if (constant.name != btf__name_by_offset(btf, variable->name_off))
			continue;
		const btf_type *type = plain_type(btf, variable->type);
		const bool is_number = type && (btf_is_int(type) || btf_is_any_enum(type));
		const size_t bytes = place->size;
		if (!is_number || bytes > 8 || place->offset + bytes > rodata_bytes)
			fail(EINVAL, "load", subject, "it is not a number of at most 64 bits");
		const bool is_boolean = btf_is_int(type) && (btf_int_encoding(type) & BTF_INT_BOOL) != 0;
		if (!fits(constant, bytes, is_signed(type)) || (is_boolean && constant.magnitude > 1))
			fail(ERANGE, "load", subject,
			     std::string(constant.negative ? "-" : "") + std::to_string(constant.magnitude) +
				 " does not fit into " +
				 (is_boolean ? "a boolean" : std::to_string(bytes) + " bytes"));
		const uint64_t value = constant.negative ? 0 - constant.magnitude : constant.magnitude;
		uint8_t in_order[8];
		for (size_t byte = 0; byte < bytes; byte++) {
			const size_t shift =
			    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? byte : bytes - 1 - byte;
			in_order[byte] = static_cast<uint8_t>(value >> (shift * 8));
		}
		memcpy(rodata + place->offset, in_order, bytes);
		return;
	}
	fail(ENOENT, "load", subject, "the program has no constant of that name");
}

void set_constants(bpf_object *object, const std::vector<NamedConstant> &constants, const std::string &path)
{
	if (constants.empty())
		return;
	const bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	const btf *btf = bpf_object__btf(object);
	size_t bytes = 0;
	auto *rodata = map ? static_cast<uint8_t *>(const_cast<void *>(
				 bpf_map__initial_value(const_cast<bpf_map *>(map), &bytes)))
			   : nullptr;

	for (const NamedConstant &constant : constants) {
		const std::string subject = path + ", constant '" + constant.name + "'";
		if (!rodata || !btf)
			fail(ENOENT, "load", subject, "the object has no constants");
		set_constant(btf, constant, rodata, bytes, subject);
	}
}

} // namespace enforcer
