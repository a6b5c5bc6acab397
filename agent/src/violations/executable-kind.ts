import type { ExecutableKind } from '@runtime-enforcer/api/executable-path';
import type { ViolationReason } from '@runtime-enforcer/api/violation';

/** What the kernel found behind an exec, by the reason that it gives. */
export function executableKind(reason: ViolationReason | undefined): ExecutableKind {
  switch (reason) {
    case 'Unlinked':
      return 'deleted';
    case 'Memfd':
      return 'memfd';
    case 'ForeignMount':
      return 'foreignMount';
    default:
      return 'file';
  }
}
