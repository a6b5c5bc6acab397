// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * The exec check. One decision, attached where the kernel lets us deny an exec; the loader chooses:
 *
 *   lsm        where the BPF LSM is active. Never skipped, also on preemptible kernels.
 *   fmod_ret   elsewhere, if the kernel does not preempt.
 *   + copies   on preemptible kernels without the BPF LSM: the kernel skips a tracing program while another
 *              task is preempted inside it on the same CPU, and what it skips is allowed. Each copy halves
 * that.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "abi.h"
#include "kernel_types.h"
#include "maps.h"
#include "scratch.h"
#include "cgroup.h"
#include "origin.h"
#include "path.h"
#include "events.h"
#include "decide.h"

#ifndef BUILD_NUMBER
#define BUILD_NUMBER 1
#endif

char LICENSE[] SEC("license") = "Dual MIT/GPL";
/* Tells two builds of the same sources apart, for the tests of replacement. */
const volatile __u32 build_number = BUILD_NUMBER;

SEC("?lsm/bprm_creds_for_exec")
int BPF_PROG(check_lsm, struct linux_binprm *bprm, int earlier)
{
	return earlier ? earlier : check_exec(bprm, ATTACHED_LSM, 0);
}

SEC("?fmod_ret/security_bprm_creds_for_exec")
int BPF_PROG(check_fmod_ret, struct linux_binprm *bprm, int earlier)
{
	return earlier ? earlier : check_exec(bprm, ATTACHED_FMOD_RET, 0);
}

SEC("?fmod_ret/security_bprm_creds_for_exec")
int BPF_PROG(check_copy, struct linux_binprm *bprm, int earlier)
{
	return earlier ? earlier : check_exec(bprm, ATTACHED_COPY, 1);
}

/* Runs again for the interpreter of a script, which is not what was asked for: only the first pass counts. */
SEC("?fmod_ret/security_bprm_check")
int BPF_PROG(check_late_copy, struct linux_binprm *bprm, int earlier)
{
	if (earlier || bprm->interp != bprm->filename)
		return earlier;
	return check_exec(bprm, ATTACHED_COPY, 2);
}
