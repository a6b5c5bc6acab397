import { type Address, parseAddress } from '@runtime-enforcer/kube/program-flags';
import { UsageError } from './usage-error.ts';

/** Reads `HOST:PORT`; without a host every address is meant. Throws a {@link UsageError} that names the option. */
export function readBindAddress(option: string, text: string): Address {
  const address = parseAddress(text);
  if (address !== undefined) return address;
  throw new UsageError(
    `--${option} ${JSON.stringify(text)}: expected HOST:PORT, such as 127.0.0.1:9090 or [::1]:9090`,
  );
}
