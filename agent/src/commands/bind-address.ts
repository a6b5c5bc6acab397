import { UsageError } from './usage-error.ts';

/** Where a server listens. */
export interface BindAddress {
  /** Empty for all addresses of this machine, of both protocols where it has both. */
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** Reads `HOST:PORT`; without a host every address is meant. Throws a {@link UsageError} that names the option. */
export function readBindAddress(option: string, text: string): BindAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new UsageError(
      `--${option} ${JSON.stringify(text)}: expected HOST:PORT, such as 127.0.0.1:9090 or [::1]:9090`,
    );
  }
  return { host: match[1] ?? match[2] ?? '', port };
}
