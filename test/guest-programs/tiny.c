/* Exits with 0, in as few instructions as an exec allows: what an exec loop starts. */
#include "bare.h"

void _start(void)
{
	bare_call(BARE_EXIT, 0, 0, 0);
	__builtin_unreachable();
}
