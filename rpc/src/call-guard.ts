import { X509Certificate } from 'node:crypto';
import {
  ServerInterceptingCall,
  status,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import { clientIdentity, type ClientNames, type ClientRole } from './client-identity.ts';
import { createRefusalLog, type RpcLog } from './refusal-log.ts';

/** A client sends its one request at once; one that does not is not waited for. */
const REQUEST_MS = 10_000;

export interface CallGuardOptions {
  readonly clients: ClientNames;
  /** Who may call a method, by its path. A method that is not here may be called by nobody. */
  readonly allowed: ReadonlyMap<string, readonly ClientRole[]>;
  readonly log: RpcLog;
  readonly requestMs?: number | undefined;
  readonly now?: () => Date;
}

interface Refusal {
  readonly code: status;
  readonly details: string;
}

/**
 * Refuses calls of clients that may not make them, before anything of the request is read, and gives up requests that
 * do not arrive whole.
 */
export function createCallGuard(options: CallGuardOptions): ServerInterceptor {
  const { requestMs = REQUEST_MS, now = () => new Date() } = options;
  const refusals = createRefusalLog(options.log);

  const refusalOf = (call: ServerInterceptingCallInterface, path: string): Refusal | undefined => {
    const raw = call.getAuthContext().sslPeerCertificate?.raw;
    if (raw === undefined) return { code: status.UNAUTHENTICATED, details: 'no client certificate' };
    const { name, role, notAfter } = clientIdentity(new X509Certificate(raw), options.clients);
    if (notAfter <= now()) {
      const details = `the certificate of ${name} ended at ${notAfter.toISOString()}: connect with a new one`;
      return { code: status.UNAUTHENTICATED, details };
    }
    const roles = options.allowed.get(path) ?? [];
    if (role !== undefined && roles.includes(role)) return undefined;
    const expected = [...options.clients]
      .filter(([, other]) => roles.includes(other))
      .map(([known]) => known);
    const details = `${name} may not call ${path}: expected a certificate with the DNS name ${expected.join(' or ')}`;
    return { code: status.PERMISSION_DENIED, details };
  };

  return ({ path }, call) => {
    let timer: NodeJS.Timeout | undefined;
    return new ServerInterceptingCall(call, {
      start(next) {
        next({
          onReceiveMetadata(metadata, proceed) {
            const refusal = refusalOf(call, path);
            if (refusal !== undefined) {
              refusals.refused({ peer: call.getPeer(), path, reason: refusal.details }, 'call refused');
              call.sendStatus(refusal);
              return;
            }
            timer = setTimeout(() => {
              call.sendStatus({ code: status.DEADLINE_EXCEEDED, details: 'the request did not come' });
            }, requestMs);
            proceed(metadata);
          },
          onReceiveHalfClose(proceed) {
            clearTimeout(timer);
            proceed();
          },
          onCancel() {
            clearTimeout(timer);
          },
        });
      },
    });
  };
}
