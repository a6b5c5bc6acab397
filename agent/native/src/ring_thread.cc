// SPDX-License-Identifier: Apache-2.0
/*
 * One thread reads all rings in turn and hands JavaScript one batch at a time. It reads no further before
 * JavaScript has taken the batch, so a storm fills the rings, where the program counts it, and never the
 * heap.
 */
#include <atomic>
#include <condition_variable>
#include <cerrno>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <time.h>

#include "arguments.h"
#include "failure.h"
#include "handle.h"
#include "host.h"
#include "ring.h"

namespace enforcer
{

static constexpr uint32_t BATCH_RECORDS_MAX = 65536;
/* A ring whose oldest record is still being written is readable and gives nothing. */
static constexpr timespec PAUSE_WITHOUT_RECORDS = {0, 1'000'000};

struct Rings {
	static constexpr napi_type_tag tag = {0x52e4f0a17c3b4d06, 0x8a1c5b7e94d2f606};
	static constexpr const char *kind = "ring thread";
	bool may_be_collected() const
	{
		return true;
	}

	std::vector<std::unique_ptr<RingReader>> readers;
	std::unique_ptr<Fd> wake; /* empty once the thread has ended */
	Batch batch;		  /* the thread's while it reads, JavaScript's while `handed_over` */
	std::thread thread;
	std::mutex mutex;
	std::condition_variable changed;
	bool handed_over = false;
	std::atomic<bool> stopping = false;
	napi_threadsafe_function to_javascript = nullptr;
	std::optional<Napi::Promise::Deferred> stopped;

	void request_stop()
	{
		{
			const std::lock_guard<std::mutex> lock(mutex);
			stopping = true;
		}
		changed.notify_all();
		if (wake)
			eventfd_write(wake->get(), 1);
	}

	void taken()
	{
		{
			const std::lock_guard<std::mutex> lock(mutex);
			handed_over = false;
		}
		changed.notify_all();
	}

	/* False when there is nobody left to hand to. */
	bool hand_over()
	{
		{
			const std::lock_guard<std::mutex> lock(mutex);
			handed_over = true;
		}
		if (napi_call_threadsafe_function(to_javascript, this, napi_tsfn_nonblocking) != napi_ok)
			return false;
		std::unique_lock<std::mutex> lock(mutex);
		changed.wait(lock, [this] { return !handed_over || stopping; });
		return !stopping;
	}

	void run()
	{
		std::vector<pollfd> waiting;
		for (const auto &reader : readers)
			waiting.push_back({reader->poll_fd(), POLLIN, 0});
		waiting.push_back({wake->get(), POLLIN, 0});
		while (!stopping) {
			if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
				break;
			bool any = stopping;
			for (size_t i = 0; i < readers.size() && !stopping; i++) {
				if (!(waiting[i].revents & POLLIN))
					continue;
				readers[i]->read(batch);
				if (batch.empty())
					continue;
				any = true;
				if (!hand_over())
					break;
			}
			if (!any)
				nanosleep(&PAUSE_WITHOUT_RECORDS, nullptr);
		}
		napi_release_threadsafe_function(to_javascript, napi_tsfn_release);
	}
};

/* Whether JavaScript still runs: a worker that is being terminated refuses every call. */
static bool is_alive(napi_env env)
{
	napi_value global = nullptr;
	bool found = false;
	return napi_get_global(env, &global) == napi_ok &&
	       napi_has_named_property(env, global, "Object", &found) == napi_ok;
}

/*
 * The batch counts as taken when JavaScript says so in a later turn of its loop (ringsTaken). Were it taken
 * here, the thread would queue the next one in time for the same turn, and a storm would starve everything
 * else.
 */
static void deliver(napi_env env, napi_value receiver, void *, void *data)
{
	auto *rings = static_cast<Rings *>(data);
	if (!env)
		return;
	try {
		const Batch &batch = rings->batch;
		auto bytes = Napi::Uint8Array::New(env, batch.data.size());
		std::copy(batch.data.begin(), batch.data.end(), bytes.Data());
		auto offsets = Napi::Uint32Array::New(env, batch.offsets.size());
		std::copy(batch.offsets.begin(), batch.offsets.end(), offsets.Data());
		Napi::Function(env, receiver).Call({Napi::Number::New(env, batch.ring), bytes, offsets});
	} catch (const Napi::Error &error) {
		/* Surfaces like that of any callback: as uncaught. */
		if (is_alive(env))
			napi_fatal_exception(env, error.Value());
	}
}

static void join_before_exit(void *data)
{
	auto *rings = static_cast<Rings *>(data);
	rings->request_stop();
	if (rings->thread.joinable())
		rings->thread.join();
}

/* The thread has let go of the function, and the last batch has been delivered. */
static void finish(napi_env env, void *data, void *)
{
	const std::unique_ptr<std::shared_ptr<Rings>> holder(static_cast<std::shared_ptr<Rings> *>(data));
	Rings &rings = **holder;
	if (rings.thread.joinable())
		rings.thread.join();
	napi_remove_env_cleanup_hook(env, join_before_exit, &rings);
	rings.readers.clear();
	rings.wake.reset();
	if (rings.stopped) {
		const Napi::HandleScope scope(env);
		try {
			rings.stopped->Resolve(Napi::Env(env).Undefined());
		} catch (const Napi::Error &) {
			/* JavaScript is being shut down. */
		}
		rings.stopped.reset();
	}
}

static void start_thread(Napi::Env env, const std::shared_ptr<Rings> &rings, const Napi::Function &receiver)
{
	auto holder = std::make_unique<std::shared_ptr<Rings>>(rings);
	const Napi::String name = Napi::String::New(env, "runtime-enforcer rings");
	if (napi_create_threadsafe_function(env, receiver, nullptr, name, 1, 1, holder.get(), finish, nullptr,
					    deliver, &rings->to_javascript) != napi_ok)
		fail(ENOMEM, "startRings", "the ring thread");
	holder.release();
	/* Runs before the function's own clean-up, which was registered earlier. */
	napi_add_env_cleanup_hook(env, join_before_exit, rings.get());
	try {
		rings->thread = std::thread([reading = rings.get()] { reading->run(); });
	} catch (const std::exception &) {
		napi_release_threadsafe_function(rings->to_javascript, napi_tsfn_abort);
		fail(EAGAIN, "startRings", "the ring thread");
	}
}

/* (maps, receiver(ring, data, offsets), maxBatch) -> handle */
static Napi::Value start_rings(const Napi::CallbackInfo &info)
{
	if (!info[0].IsArray() || info[0].As<Napi::Array>().Length() == 0)
		throw Napi::TypeError::New(info.Env(), "rings must be an array of at least one map");
	if (!info[1].IsFunction())
		throw Napi::TypeError::New(info.Env(), "onBatch must be a function");
	const uint32_t records_max = number_argument(info[2], "maxBatch");
	if (records_max < 1 || records_max > BATCH_RECORDS_MAX)
		throw Napi::RangeError::New(info.Env(), "maxBatch must be from 1 to " +
							    std::to_string(BATCH_RECORDS_MAX));

	const auto maps = info[0].As<Napi::Array>();
	auto rings = std::make_shared<Rings>();
	size_t largest = 0;
	for (uint32_t i = 0; i < maps.Length(); i++) {
		rings->readers.push_back(
		    std::make_unique<RingReader>(open_map(maps.Get(i), "startRings"), i, records_max));
		largest = std::max<size_t>(largest, rings->readers.back()->ring_bytes());
	}
	rings->batch.data.reserve(largest);
	rings->batch.offsets.reserve(records_max + 1);
	rings->wake = std::make_unique<Fd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!rings->wake->valid())
		fail(errno, "startRings", "the ring thread");
	start_thread(info.Env(), rings, info[1].As<Napi::Function>());
	return wrap(info.Env(), rings);
}

static Napi::Value rings_taken(const Napi::CallbackInfo &info)
{
	unwrap<Rings>(info[0])->taken();
	return info.Env().Undefined();
}

static Napi::Value stop_rings(const Napi::CallbackInfo &info)
{
	const auto rings = unwrap<Rings>(info[0]);
	if (rings->stopping)
		fail(EALREADY, "stop", "the ring thread");
	auto stopped = Napi::Promise::Deferred::New(info.Env());
	rings->request_stop();
	if (!rings->wake)
		stopped.Resolve(info.Env().Undefined());
	else
		rings->stopped.emplace(stopped);
	return stopped.Promise();
}

void export_rings(Napi::Env env, Napi::Object exports)
{
	exports.Set("startRings", Napi::Function::New<guarded<start_rings>>(env));
	exports.Set("ringsTaken", Napi::Function::New<guarded<rings_taken>>(env));
	exports.Set("stopRings", Napi::Function::New<guarded<stop_rings>>(env));
}

} // namespace enforcer
