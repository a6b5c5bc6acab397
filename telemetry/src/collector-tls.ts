import { describeError } from './error-text.ts';
import type { Logger } from './logger.ts';
import type { OtlpOptions } from './otlp-options.ts';
import { tlsFromFiles, type TlsSource } from './tls-source.ts';

/**
 * Follows the files that a program was given for its collector; undefined where it was given none.
 *
 * @throws Error naming the flags, if the files cannot be used
 */
export async function openCollectorTls(
  { caFile, clientCertificateFile, clientKeyFile }: OtlpOptions,
  log: Pick<Logger, 'error'>,
): Promise<TlsSource | undefined> {
  if (caFile === undefined && clientCertificateFile === undefined) return undefined;
  const files = {
    ...(caFile !== undefined && { authorities: caFile }),
    ...(clientCertificateFile !== undefined && { certificate: clientCertificateFile }),
    ...(clientKeyFile !== undefined && { key: clientKeyFile }),
  };
  try {
    return await tlsFromFiles(files, (err) =>
      log.error({ err }, 'new files for the collector are refused; the last good ones stay in use'),
    );
  } catch (cause) {
    throw new Error(`--otlp-ca-cert or --otlp-client-cert: ${describeError(cause)}`, { cause });
  }
}
