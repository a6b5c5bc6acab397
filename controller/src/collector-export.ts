import { openCollectorTls } from '@runtime-enforcer/telemetry/collector-tls';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { createLogExport, type LogExport } from '@runtime-enforcer/telemetry/log-export';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { OtlpOptions } from '@runtime-enforcer/telemetry/otlp-options';
import { STATUS_SCOPE } from './status/policy-events.ts';
import { CONTROLLER_VERSION } from './version.ts';

const STOP_MS = 700;

/** The way of events to a collector. */
export interface CollectorExport extends Pick<LogExport, 'emit'> {
  stop(): Promise<void>;
}

/** @throws Error naming the flag */
export async function collectorExport(otlp: OtlpOptions, log: Logger): Promise<CollectorExport> {
  const { endpoint, protocol } = otlp;
  const tls = await openCollectorTls(otlp, log);
  try {
    const exporter = createLogExport({
      target: { protocol, endpoint, ...(tls && { tls }) },
      scope: STATUS_SCOPE,
      resource: { 'service.name': 'runtime-enforcer-controller', 'service.version': CONTROLLER_VERSION },
      log,
    });
    return {
      emit: (event) => exporter.emit(event),
      async stop() {
        await exporter.stop(STOP_MS);
        tls?.stop();
      },
    };
  } catch (cause) {
    tls?.stop();
    throw new Error(`--otlp-endpoint: ${describeError(cause)}`, { cause });
  }
}
