// SPDX-License-Identifier: Apache-2.0
/* One system call for many keys where the kernel has batches for the map's type (hashes from 5.6 on). */
#include "bulk.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <unordered_set>

#include <bpf/bpf.h>

#include "failure.h"

namespace enforcer
{

static constexpr size_t CHUNK_BYTES = 4 * 1024 * 1024;
static constexpr size_t CHUNK_ENTRIES_MIN = 64;
static constexpr size_t CHUNK_ENTRIES_MAX = 4096;

static bool is_without_batches(int error)
{
	return error == 524 || error == ENOTSUP || error == EINVAL;
}

static uint32_t chunk_entries(const Map &map)
{
	const size_t fitting = CHUNK_BYTES / (map.key_size + map.value_bytes);
	return static_cast<uint32_t>(std::clamp(fitting, CHUNK_ENTRIES_MIN, CHUNK_ENTRIES_MAX));
}

static void append(Entries &entries, const Map &map, const Buffer &keys, const Buffer &values, size_t count)
{
	const auto key_bytes = static_cast<ptrdiff_t>(count * map.key_size);
	const auto value_bytes = static_cast<ptrdiff_t>(count * map.value_bytes);
	entries.keys.insert(entries.keys.end(), keys.begin(), keys.begin() + key_bytes);
	entries.values.insert(entries.values.end(), values.begin(), values.begin() + value_bytes);
	entries.count += static_cast<uint32_t>(count);
}

/*
 * One by one. A key that is deleted under the walk sends the kernel back to the first one, so what was seen
 * is remembered, and the walk is bounded.
 */
static Entries read_one_by_one(const BulkInput &input)
{
	const Map &map = *input.map;
	const uint64_t steps_max = 4 * static_cast<uint64_t>(map.max_entries) + 64;
	std::unordered_set<std::string> seen;
	Buffer key(map.key_size), next(map.key_size), value(map.value_bytes);
	Entries entries;

	for (uint64_t step = 0; step < steps_max; step++) {
		if (bpf_map_get_next_key(input.fd->get(), step == 0 ? nullptr : key.data(), next.data())) {
			if (errno == ENOENT)
				return entries;
			fail(errno, "entries", map_subject(map));
		}
		key.swap(next);
		if (!seen.emplace(key.begin(), key.end()).second)
			continue;
		if (bpf_map_lookup_elem(input.fd->get(), key.data(), value.data()) == 0)
			append(entries, map, key, value, 1);
		else if (errno != ENOENT)
			fail(errno, "entries", map_subject(map));
	}
	fail(EAGAIN, "entries", map_subject(map), "it changed too fast to be read");
}

Entries read_all(const BulkInput &input)
{
	const Map &map = *input.map;
	size_t chunk = chunk_entries(map);
	/* The kernel's own position: a bucket's number (4 bytes) or a key. */
	const size_t position_bytes = std::max<size_t>(map.key_size, 8);
	Buffer position(position_bytes), next(position_bytes);
	Buffer keys(chunk * map.key_size), values(chunk * map.value_bytes);
	bool started = false;
	Entries entries;

	for (;;) {
		auto count = static_cast<uint32_t>(chunk);
		const int failed =
		    bpf_map_lookup_batch(input.fd->get(), started ? position.data() : nullptr, next.data(),
					 keys.data(), values.data(), &count, nullptr);
		const int error = failed ? errno : 0;

		if (error == ENOSPC) {
			/* A bucket that holds more than we have room for; nothing was read. */
			chunk *= 2;
			keys.resize(chunk * map.key_size);
			values.resize(chunk * map.value_bytes);
			continue;
		}
		if (!started && is_without_batches(error))
			return read_one_by_one(input);
		if (error && error != ENOENT)
			fail(error, "entries", map_subject(map));
		append(entries, map, keys, values, count);
		if (error == ENOENT)
			return entries;
		started = true;
		position.swap(next);
	}
}

[[noreturn]] static void fail_update(const BulkInput &input, int error, uint32_t written)
{
	const std::string reason = update_refusal(*input.map, error);
	throw Failure{error,
		      "updateMany",
		      "updateMany " + map_subject(*input.map) + ": " +
			  (reason.empty() ? error_text(error) : reason) + "; " + std::to_string(written) +
			  " of " + std::to_string(input.count) + " entries were written",
		      {},
		      written};
}

uint32_t write_all(const BulkInput &input)
{
	const uint32_t chunk = chunk_entries(*input.map);
	bool batches = true;
	uint32_t written = 0;

	while (written < input.count) {
		uint32_t count = batches ? std::min(chunk, input.count - written) : 1;
		if (batches) {
			const uint32_t wanted = count;
			const int failed = bpf_map_update_batch(input.fd->get(), input.key(written),
								input.value(written), &count, nullptr);
			const int error = failed ? errno : 0;
			if (error && written == 0 && is_without_batches(error)) {
				batches = false;
				continue;
			}
			if (error)
				fail_update(input, error, written + std::min(count, wanted));
		} else if (bpf_map_update_elem(input.fd->get(), input.key(written), input.value(written),
					       0)) {
			fail_update(input, errno, written);
		}
		written += count;
	}
	return written;
}

uint32_t delete_all(const BulkInput &input)
{
	const uint32_t chunk = chunk_entries(*input.map);
	bool batches = true;
	uint32_t existed = 0;

	for (uint32_t done = 0; done < input.count;) {
		if (batches) {
			const uint32_t wanted = std::min(chunk, input.count - done);
			uint32_t count = wanted;
			const int failed =
			    bpf_map_delete_batch(input.fd->get(), input.key(done), &count, nullptr);
			const int error = failed ? errno : 0;
			if (error && done == 0 && is_without_batches(error)) {
				batches = false;
				continue;
			}
			if (error && error != ENOENT)
				fail(error, "deleteMany", map_subject(*input.map));
			/* The kernel stops at the first key that is not there: go on behind it. */
			existed += std::min(count, wanted);
			done += error ? std::min(count, wanted - 1) + 1 : wanted;
		} else {
			if (bpf_map_delete_elem(input.fd->get(), input.key(done)) == 0)
				existed++;
			else if (errno != ENOENT)
				fail(errno, "deleteMany", map_subject(*input.map));
			done++;
		}
	}
	return existed;
}

Buffer look_up_all(const BulkInput &input)
{
	Buffer value(input.map->value_bytes);
	Buffer present(input.count);

	for (uint32_t i = 0; i < input.count; i++) {
		if (bpf_map_lookup_elem(input.fd->get(), input.key(i), value.data()) == 0)
			present[i] = 1;
		else if (errno != ENOENT)
			fail(errno, "lookupMany", map_subject(*input.map));
	}
	return present;
}

} // namespace enforcer
