// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * For the addon's tests: every call of one system call by one process writes a number of records into two
 * rings, and what the constants were into an array. Record n of a ring is its number (8 bytes) and 8 to 64
 * further bytes, each the number's lowest byte.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define RECORDS_MAX 1024
#define FILLING_MAX 64

const volatile __u64 pid_namespace_device = 0;
const volatile __u64 pid_namespace_inode = 0;
const volatile __u32 process = 0;
const volatile __u64 system_call = 0;
const volatile __u32 first_records = 0;
const volatile __u32 second_records = 0;
const volatile __s32 negative = 0;
const volatile __s64 most_negative = 0;
const volatile __u64 large = 0;
const volatile __u16 small = 0;
const volatile bool flag = false;

struct record {
	__u64 number;
	__u8 filling[FILLING_MAX];
};

struct seen_constants {
	__s64 most_negative;
	__u64 large;
	__s32 negative;
	__u16 small;
	__u8 flag;
	__u8 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} first SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} second SEC(".maps");

/* Per ring: records tried, records that found no room. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct seen_constants);
} constants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} table SEC(".maps");

static __always_inline bool is_watched(__u64 id)
{
	struct bpf_pidns_info info = {};

	return id == system_call &&
	       !bpf_get_ns_current_pid_tgid(pid_namespace_device, pid_namespace_inode, &info, sizeof(info)) &&
	       info.tgid == process;
}

static __always_inline void write_records(void *ring, __u32 count, __u32 tried_at)
{
	__u32 zero = 0, dropped_at = tried_at + 1;
	struct record *record = bpf_map_lookup_elem(&scratch, &zero);
	__u64 *tried = bpf_map_lookup_elem(&counters, &tried_at);
	__u64 *dropped = bpf_map_lookup_elem(&counters, &dropped_at);

	if (!record || !tried || !dropped)
		return;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < RECORDS_MAX && i < count; i++) {
		__u64 number = *tried;
		*tried = number + 1;
		record->number = number;
		__builtin_memset(record->filling, 0, sizeof(record->filling));
		__u64 pattern = (number & 0xff) * 0x0101010101010101ULL;
		for (int word = 0; word < FILLING_MAX / 8; word++)
			((__u64 *)record->filling)[word] = pattern;
		if (bpf_ringbuf_output(ring, record, 16 + (number & 7) * 8, 0))
			*dropped += 1;
	}
}

SEC("?raw_tp/sys_enter")
int write_on_system_call(struct bpf_raw_tracepoint_args *context)
{
	__u32 zero = 0;
	struct seen_constants *seen;

	if (!is_watched(context->args[1]))
		return 0;
	seen = bpf_map_lookup_elem(&constants, &zero);
	if (seen) {
		seen->most_negative = most_negative;
		seen->large = large;
		seen->negative = negative;
		seen->small = small;
		seen->flag = flag;
	}
	write_records(&first, first_records, 0);
	write_records(&second, second_records, 2);
	return 0;
}

/* The verifier refuses this one: it reads through a number. */
SEC("?raw_tp/sys_enter")
int rejected(struct bpf_raw_tracepoint_args *context)
{
	return *(int *)(long)context->args[0];
}
