// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_CONSTANTS_H
#define RUNTIME_ENFORCER_CONSTANTS_H

#include <cstdint>
#include <string>
#include <vector>

#include <bpf/libbpf.h>
#include <napi.h>

namespace enforcer
{

/* A value for a `const volatile` variable of the BPF program, as JavaScript gave it. */
struct NamedConstant {
	std::string name;
	bool negative;
	bool boolean;
	uint64_t magnitude;
};

/* Takes a safe integer, a bigint or a boolean; throws a TypeError for anything else. */
NamedConstant constant_argument(const std::string &name, const Napi::Value &value);

/*
 * Writes the values into the object's .rodata, which is found through its BTF. To be called between open and
 * load. Throws a Failure with ENOENT for an unknown name, EINVAL for a variable that is no number, ERANGE for
 * a value that the variable cannot hold.
 */
void set_constants(bpf_object *object, const std::vector<NamedConstant> &constants, const std::string &path);

} // namespace enforcer

#endif
