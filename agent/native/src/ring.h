// SPDX-License-Identifier: Apache-2.0
#ifndef RUNTIME_ENFORCER_RING_H
#define RUNTIME_ENFORCER_RING_H

#include <cstdint>
#include <memory>
#include <vector>

#include <bpf/libbpf.h>

#include "map.h"

namespace enforcer
{

/* Records of one ring, end to end; offsets[i] to offsets[i + 1] is record i. */
struct Batch {
	uint32_t ring = 0;
	std::vector<uint8_t> data;
	std::vector<uint32_t> offsets;

	bool empty() const
	{
		return offsets.size() < 2;
	}
};

/* The reading end of one ring buffer map. */
class RingReader
{
      public:
	/* Throws a Failure if the map is no ring buffer. */
	RingReader(const std::shared_ptr<Map> &map, uint32_t index, uint32_t records_max);
	RingReader(const RingReader &) = delete;
	RingReader &operator=(const RingReader &) = delete;
	~RingReader();

	/* Becomes readable when the ring holds records. */
	int poll_fd() const;

	/* Fills the batch with the oldest records, at most records_max; they leave the ring. */
	void read(Batch &batch);

	uint32_t ring_bytes() const
	{
		return ring_bytes_;
	}

      private:
	static int take(void *reader, void *record, size_t bytes);

	std::shared_ptr<Fd> fd_;
	ring_buffer *buffer_;
	uint32_t index_;
	uint32_t records_max_;
	uint32_t ring_bytes_;
	Batch *batch_ = nullptr;
};

} // namespace enforcer

#endif
