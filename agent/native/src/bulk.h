// SPDX-License-Identifier: Apache-2.0
/* Operations on many keys of a map. They touch no JavaScript and may run on any thread. */
#ifndef RUNTIME_ENFORCER_BULK_H
#define RUNTIME_ENFORCER_BULK_H

#include <cstdint>
#include <memory>
#include <vector>

#include "map.h"

namespace enforcer
{

using Buffer = std::vector<uint8_t>;

struct Entries {
	Buffer keys;
	Buffer values;
	uint32_t count = 0;
};

/* A map that cannot be closed under the work, and the work's own copy of its input. */
struct BulkInput {
	std::shared_ptr<Map> map;
	std::shared_ptr<Fd> fd;
	Buffer keys;
	Buffer values;
	uint32_t count = 0;

	const uint8_t *key(size_t index) const
	{
		return keys.data() + index * map->key_size;
	}
	const uint8_t *value(size_t index) const
	{
		return values.data() + index * map->value_bytes;
	}
};

/* Everything in the map; what changes meanwhile may be in it or not. */
Entries read_all(const BulkInput &input);

/* Writes in order; the Failure of the first refusal carries how many were written. */
uint32_t write_all(const BulkInput &input);

/* Returns how many of the keys were there. */
uint32_t delete_all(const BulkInput &input);

/* One byte per key: 1 present, 0 absent. */
Buffer look_up_all(const BulkInput &input);

} // namespace enforcer

#endif
