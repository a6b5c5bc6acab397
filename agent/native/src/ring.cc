// SPDX-License-Identifier: Apache-2.0
#include "ring.h"

#include <cerrno>

#include "failure.h"
#include "messages.h"

namespace enforcer
{

/* Makes libbpf stop behind the record that filled the batch; that record is taken. */
static constexpr int BATCH_IS_FULL = -ECANCELED;

RingReader::RingReader(const std::shared_ptr<Map> &map, uint32_t index, uint32_t records_max)
    : fd_(map->fd), index_(index), records_max_(records_max), ring_bytes_(map->max_entries)
{
	Messages messages;
	buffer_ = ring_buffer__new(fd_->get(), take, this, nullptr);
	if (!buffer_) {
		const int error = errno;
		fail(error, "startRings", map_subject(*map), error_text(error) + messages.suffix());
	}
}

RingReader::~RingReader()
{
	ring_buffer__free(buffer_);
}

int RingReader::poll_fd() const
{
	return ring_buffer__epoll_fd(buffer_);
}

/* Called by libbpf's C code: allocates nothing (the batch has room for a whole ring) and throws nothing. */
int RingReader::take(void *reader, void *record, size_t bytes)
{
	auto *self = static_cast<RingReader *>(reader);
	Batch &batch = *self->batch_;
	const auto *start = static_cast<const uint8_t *>(record);
	batch.data.insert(batch.data.end(), start, start + bytes);
	batch.offsets.push_back(static_cast<uint32_t>(batch.data.size()));
	return batch.offsets.size() > self->records_max_ ? BATCH_IS_FULL : 0;
}

void RingReader::read(Batch &batch)
{
	batch.ring = index_;
	batch.data.clear();
	batch.offsets.assign(1, 0);
	batch_ = &batch;
	ring_buffer__consume(buffer_);
	batch_ = nullptr;
}

} // namespace enforcer
