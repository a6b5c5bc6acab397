import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CertifiedKey } from '@runtime-enforcer/certs/authority';
import { messageCodec } from '@runtime-enforcer/rpc/message-codec';
import { rawFrame } from '@runtime-enforcer/rpc/raw-client-fixture';
import { agentAddress, agentPair } from './simulated-agents.ts';

const WATCH = '/runtimeenforcer.agent.v1.AgentObserver/Watch';
const GRPC = { ':status': 200, 'content-type': 'application/grpc+proto' };
const report = messageCodec<object>('runtimeenforcer.agent.v1.Report');

/** What an agent that somebody has taken over says to whoever watches it. */
export interface HostileWatch {
  readonly isOpen: boolean;
  /** Bytes that are to be a message; resolved when there is room for more. */
  send(message: Uint8Array, compressed?: boolean): Promise<void>;
  /** Bytes that need not be a frame of gRPC. */
  sendRaw(bytes: Uint8Array): Promise<void>;
}

export interface HostileAgent {
  readonly nodeName: string;
  readonly podName: string;
  readonly address: string;
  /** How often it was asked. */
  readonly watches: number;
  stop(): Promise<void>;
}

/**
 * Serves at the address of one node's agent, with a certificate that is right unless another authority or pod is
 * given, and says what it wants.
 *
 * @param play is called for each watch
 * @param headers of the answer to each
 */
export async function startHostileAgent(options: {
  readonly authority: CertifiedKey;
  readonly index: number;
  readonly port: number;
  readonly play: (watch: HostileWatch) => Promise<void>;
  readonly certifiedPod?: string;
  readonly headers?: Readonly<Record<string, string>>;
}): Promise<HostileAgent> {
  const { authority, index, port, play, headers = {} } = options;
  const [nodeName, podName, address] = [`node-${index}`, `agent-${index}`, agentAddress(index)];
  const pair = await agentPair(authority, options.certifiedPod ?? podName);
  const server = createSecureServer({ cert: pair.certificate, key: pair.key });
  const sessions = new Set<ServerHttp2Session>();
  let watches = 0;
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  server.on('stream', (stream, { ':path': path }) => {
    stream.on('error', () => undefined);
    stream.respond({ ...GRPC, ...headers }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    if (path === WATCH) {
      watches++;
      void play(watchOn(stream)).catch(() => stream.destroy());
    } else stream.end(rawFrame(Buffer.alloc(0)));
  });
  server.listen(port, address);
  await once(server, 'listening');
  return {
    nodeName,
    podName,
    address,
    get watches() {
      return watches;
    },
    async stop() {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function watchOn(stream: ServerHttp2Stream): HostileWatch {
  async function sendRaw(bytes: Uint8Array): Promise<void> {
    if (stream.destroyed || stream.closed) throw new Error('the watch is over');
    if (stream.write(bytes)) {
      await sleep(0);
      return;
    }
    const over = new AbortController();
    const { signal } = over;
    await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]);
    over.abort();
  }
  return {
    get isOpen() {
      return !stream.destroyed && !stream.closed;
    },
    sendRaw,
    send: async (message, compressed) => await sendRaw(rawFrame(message, compressed)),
  };
}

/** A report in the plain form of its message, whose values need make no sense. */
export function encodedReport(plain: object): Buffer {
  return report.encode(plain);
}
