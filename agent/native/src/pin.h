// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_PIN_H
#define RUNTIME_ENFORCER_PIN_H

#include <string>

#include "fd.h"

namespace enforcer
{

/* Gives the object behind `fd` a name in a BPF file system. Never replaces: EEXIST where the name is taken.
 */
void pin_object(int fd, const std::string &subject, const std::string &path);

/* Opens what is pinned at the path. */
Fd open_pinned(const std::string &path, const std::string &operation);

/* Throws a Failure with EINVAL unless `fd` is of that kind: "bpf-map", "bpf-prog" or "bpf-link". */
void require_pinned_kind(int fd, const std::string &kind, const std::string &path,
			 const std::string &operation);

} // namespace enforcer

#endif
